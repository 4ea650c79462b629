/** Where facts about entities are asked for, from the app settings. */
import { z } from 'zod';
import { OfficeError } from '../../errors.ts';
import { READ_ONCE } from '../../readOnce.ts';

/** Addresses of the interfaces. */
export interface FactSettings {
  readonly resourceManagerUrl: URL;
  /** Where the administration interface is, if not at the namespace's own address. */
  readonly administrationUrl: URL | undefined;
}

/** Names of this machine. */
export const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

const settingsSchema = z.object({
  DLO_RESOURCE_MANAGER_URL: address()
    .default(new URL('https://management.azure.com'))
    .refine((url) => url.protocol === 'https:' || LOOPBACK.test(url.hostname), 'must be https, or on this machine'),
  DLO_ADMINISTRATION_URL: address().optional(),
});

function address() {
  return z.string().transform((text, context): URL => {
    const url = URL.parse(text);
    if (url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`) return url;
    const message = 'must be scheme, host and port, such as https://management.azure.com';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
}

/** Throws `DLO_SETTINGS_INVALID` when a setting would send requests to a wrong place. */
export function readFactSettings(settings: Readonly<Record<string, string | undefined>>): FactSettings {
  const parsed = settingsSchema.safeParse(settings, READ_ONCE);
  if (!parsed.success) {
    const problems = parsed.error.issues.map(({ path, message }) => `${path.join('.')} ${message}`);
    throw new OfficeError('DLO_SETTINGS_INVALID', `the app settings are not valid: ${problems.join('; ')}`);
  }
  const { DLO_RESOURCE_MANAGER_URL: resourceManagerUrl, DLO_ADMINISTRATION_URL: administrationUrl } = parsed.data;
  return { resourceManagerUrl, administrationUrl };
}
