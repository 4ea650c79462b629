/** App settings on this machine: where they come from, and how they are looked up. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from './jsonFile.ts';

/** Looks settings up as .NET configuration does: case does not matter, and `__` in a name is the same as `:`. */
export interface Settings {
  get(name: string): string | undefined;
}

/** Settings over a plain table. An empty value counts as not set. */
export function settingsOf(values: Record<string, string | undefined>): Settings {
  const byName = new Map<string, string>();
  for (const [name, value] of Object.entries(values)) {
    if (value) byName.set(normalize(name), value);
  }
  return { get: (name) => byName.get(normalize(name)) };
}

function normalize(name: string): string {
  return name.toLowerCase().replaceAll('__', ':');
}

const localSettingsSchema = z.object({
  IsEncrypted: z.literal(false).optional(),
  Values: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String)).default({}),
});

/**
 * Gathers the settings of the app in `root` and puts them into `env`, where the app reads them. `explicit` wins over the
 * environment, and the environment over `Values` of local.settings.json (as in the Functions Core Tools).
 */
export async function loadSettings(
  root: string,
  explicit: Record<string, string>,
  env: NodeJS.ProcessEnv,
): Promise<Settings> {
  const path = join(root, 'local.settings.json');
  let local: Record<string, string> = {};
  if (existsSync(path)) {
    const parsed = localSettingsSchema.safeParse(await readJson(path));
    if (!parsed.success) throw new Error(`${path} is invalid: ${z.prettifyError(parsed.error)}`);
    local = parsed.data.Values;
  }
  const defaults = { FUNCTIONS_WORKER_RUNTIME: 'node', AZURE_FUNCTIONS_ENVIRONMENT: 'Development' };
  const fixed = { AzureWebJobsScriptRoot: root };
  Object.assign(env, { ...defaults, ...local, ...env, ...explicit, ...fixed });
  return settingsOf(env);
}
