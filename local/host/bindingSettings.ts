/** What bindings and functions make of app settings. */
import type { Settings } from '../../cli/settings.ts';
import type { Binding } from './core.ts';

/**
 * Replaces every `%NAME%` in the strings of a trigger by the setting of that name.
 *
 * @throws Error naming the function and the missing setting.
 */
export function resolveBinding(functionName: string, binding: Binding, settings: Settings): Binding {
  const resolved: Binding = { ...binding };
  for (const [key, value] of Object.entries(binding)) {
    // A route's own percent signs are URL encoding.
    if (typeof value !== 'string' || key === 'route') continue;
    resolved[key] = value.replace(/%([^%\s]+)%/g, (_, name: string) => {
      const setting = settings.get(name);
      if (setting === undefined) {
        throw new Error(`Function "${functionName}": ${key} is "${value}", but there is no setting "${name}".`);
      }
      return setting;
    });
  }
  return resolved;
}

/** Whether the setting `AzureWebJobs.<name>.Disabled` switches the function off. */
export function isDisabled(functionName: string, settings: Settings): boolean {
  const value =
    settings.get(`AzureWebJobs.${functionName}.Disabled`) ??
    settings.get(`AzureWebJobs__${functionName}__Disabled`) ??
    settings.get(`AzureWebJobs_${functionName}_Disabled`);
  return value !== undefined && ['true', '1'].includes(value.toLowerCase());
}
