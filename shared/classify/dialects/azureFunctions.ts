import type { Dialect, Evidence } from '../evidence.ts';
import type { Sight } from '../sight.ts';
import { clean, LIMIT } from '../text.ts';

/** The value of `consumedBy` in the catalog that says so. */
export const AZURE_FUNCTIONS = 'azure-functions';

/**
 * Azure Functions. The host abandons a message whose function threw, and writes nothing on it: no exception, no name. All that can
 * be seen is that the delivery limit was reached. That it was a function is known only where the catalog says it (`consumedBy`).
 */
export const azureFunctions: Dialect = {
  name: 'azure-functions',
  layer: 'platform',
  read({ letter, consumedBy }: Sight): Evidence | undefined {
    if (consumedBy !== AZURE_FUNCTIONS) return undefined;
    const reason = clean(letter.reason, LIMIT.reason)?.replace(/\.$/, '').toLowerCase();
    return reason === 'maxdeliverycountexceeded' ? { mechanism: 'delivery-limit' } : undefined;
  },
};
