/** The single entry of the app: reads the settings and the catalog, then registers every function. */
import { checkOpening } from '../shared/opening.ts';
import { loadOnce, registerFront } from './front.ts';
import { ROUTE_TABLE } from './routeTable.ts';
import { registerUnhealthy } from './unhealthy.ts';

const log = (line: string) => console.log(line);

try {
  const opening = checkOpening({ root: new URL('../', import.meta.url), settings: process.env, log });
  const { catalog, telemetry } = opening;
  const back = loadOnce(({ openChecked }) => openChecked(opening));
  registerFront({ catalog, telemetry, log, back }, ROUTE_TABLE);
} catch (error) {
  // Thrown at load, this would show as an app with no functions and no word of why.
  registerUnhealthy(error, log);
}
