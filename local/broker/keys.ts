/** Shared access keys as a file states them. */
import { z } from 'zod';
import { RIGHTS, type SasKey } from './sas.ts';

const keys = z
  .array(
    z.strictObject({
      name: z.string().min(1).max(256),
      key: z.string().min(1).max(256),
      rights: z.array(z.enum(RIGHTS)).min(1),
      entity: z.string().min(1).optional(),
    }),
  )
  .min(1, 'at least one key is needed');

/** Validates a list of keys. Throws an error that names the place of everything that is wrong, and never a key. */
export function parseKeys(json: unknown): SasKey[] {
  const result = keys.safeParse(json);
  if (!result.success) {
    const issues = result.error.issues.map(({ path, message }) => `[${path.map(String).join('.')}]: ${message}`);
    throw new Error(`The keys are not valid:\n  ${issues.join('\n  ')}`);
  }
  return result.data.map(({ entity, ...key }) => ({ ...key, ...(entity !== undefined && { entity }) }));
}
