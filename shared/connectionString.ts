/** Connection strings as Service Bus and storage write them, taken apart once for everybody who reads one. */
import { OfficeError } from './errors.ts';

/** `DLO_SETTINGS_INVALID` for the app setting `name`; `what` quotes no value, which may hold a key. */
export function wrongSetting(name: string, what: string): OfficeError {
  return new OfficeError('DLO_SETTINGS_INVALID', `the app setting "${name}" ${what}`);
}

/**
 * The parts of the connection string in the setting `name`: names in lower case, as the SDKs differ in whether their case matters;
 * blanks and line ends around parts are dropped, as all SDKs do. Throws `DLO_SETTINGS_INVALID` saying what is malformed.
 */
export function connectionParts(name: string, text: string): ReadonlyMap<string, string> {
  // What the platform leaves in the place of a secret that it could not read.
  if (/^\s*@Microsoft\.KeyVault\(/i.test(text)) {
    throw wrongSetting(
      name,
      'is a reference to Key Vault that the platform has not resolved: look at it in the portal',
    );
  }
  if (/^\s*(["']).*\1\s*$/s.test(text)) throw wrongSetting(name, 'is in quotation marks: leave them out');
  const parts = new Map<string, string>();
  for (const part of text.split(';').map((one) => one.trim())) {
    if (part === '') continue;
    const at = part.indexOf('=');
    if (at < 1) throw wrongSetting(name, 'is no connection string: it has a part without a name and "="');
    const key = part.slice(0, at).trim().toLowerCase();
    if (parts.has(key)) throw wrongSetting(name, 'has a part twice');
    parts.set(key, part.slice(at + 1).trim());
  }
  return parts;
}

/** The part called `key`, as it is written in documentation. Throws `DLO_SETTINGS_INVALID` when it is missing or empty. */
export function requiredPart(name: string, parts: ReadonlyMap<string, string>, key: string): string {
  const value = parts.get(key.toLowerCase());
  if (value) return value;
  throw wrongSetting(name, `has no ${key}`);
}
