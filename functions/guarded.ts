import { errorText } from '../shared/errors.ts';
import type { Office } from '../shared/office.ts';

/** A handler that reports what goes wrong and throws nothing to the host: a timer comes again by itself. */
export function guarded(office: Office, name: string, act: () => Promise<void>): () => Promise<void> {
  return async () => {
    try {
      await act();
    } catch (error) {
      office.log(`${name}: failed, tried again next time: ${errorText(error)}`);
    }
  };
}
