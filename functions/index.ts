/** The single entry of the app: reads the settings and the catalog, then registers every function. */
import { openOffice } from '../shared/open.ts';
import { registerUnhealthy } from './http.ts';
import { registerOffice } from './register.ts';

const log = (line: string) => console.log(line);

try {
  registerOffice(openOffice({ root: new URL('../', import.meta.url), settings: process.env, log }));
} catch (error) {
  // Thrown at load, this would show as an app with no functions and no word of why.
  log(`the office cannot open: ${error instanceof Error ? error.message : String(error)}`);
  registerUnhealthy(error, log);
}
