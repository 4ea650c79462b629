/** A namespace that is not ours: Microsoft's emulator, or Azure. Time passes as it does. */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { ServiceBusAdministrationClient } from '@azure/service-bus';
import { type Belief, NotCheckable, show } from '../belief.ts';
import type { Column, Place, Target } from '../target.ts';
import { administrationOf, isEmulator } from './administration.ts';
import { make } from './create.ts';
import { emptied, type Named } from './named.ts';

/** How a namespace is tested. */
export interface RemoteOptions {
  readonly connectionString: string;
  /** What is shown of it. Default: the name of its column. */
  readonly name: string | undefined;
  /** Entities to use in place of own ones. */
  readonly named: Named | undefined;
  /** Where an emulator's administration interface is. */
  readonly adminPort: number | undefined;
  /** Takes a line about what the person who runs it should know. */
  readonly say: (line: string) => void;
}

const PATIENCE_MS = 5_000;
const SLOWNESS_MS = 60_000;
/** The emulator takes ten connections, and a belief may open four. */
const EMULATOR_AT_ONCE = 2;
const AZURE_AT_ONCE = 6;

/** Throws when nothing can be tested there, and says what to do about it. */
export async function remoteTarget(options: RemoteOptions): Promise<Target> {
  const { connectionString, named, say } = options;
  const onEmulator = isEmulator(connectionString);
  const client = administrationOf(connectionString, options.adminPort);
  const probe = await askAdministration(client, onEmulator);
  if (probe.refused !== undefined && named === undefined) {
    throw new Error(
      `The administration client may not be used there (${probe.refused}), so no entities can be made. Use a key ` +
        'with the right to manage, or name entities with --entities.',
    );
  }
  const column = onEmulator ? 'emulator' : (probe.column ?? columnNamed(options.name));
  const administration = probe.refused === undefined ? client : undefined;
  return {
    column,
    name: options.name ?? column,
    atOnce: named ? 1 : onEmulator ? EMULATOR_AT_ONCE : AZURE_AT_ONCE,
    close: async () => {},
    async prepare(belief) {
      const base = { connectionString, pass: (ms: number) => wait(ms), ...PACE };
      if (named) {
        // Beliefs that use the administration client may remove entities; named ones are not theirs.
        const names = await emptied(named, connectionString, belief);
        return { ...base, nameOf: (shape) => names.get(shape) ?? shape, dispose: async () => {} };
      }
      if (!administration) throw new NotCheckable('no entities can be made');
      return prepareOwn(base, administration, belief, onEmulator, say);
    },
  };
}

const PACE = { patienceMs: PATIENCE_MS, slownessMs: SLOWNESS_MS };

async function prepareOwn(
  base: Pick<Place, 'connectionString' | 'pass' | 'patienceMs' | 'slownessMs'>,
  administration: ServiceBusAdministrationClient,
  { id, needs }: Belief,
  onEmulator: boolean,
  say: (line: string) => void,
): Promise<Place> {
  const prefix = `dlo-conform-${randomBytes(4).toString('hex')}-${id.toLowerCase()}`;
  const key = randomBytes(32).toString('base64');
  const wantsKey = needs.abilities?.includes('rights') && !onEmulator;
  const rule = { claimType: 'SharedAccessKey', keyName: 'listen', primaryKey: key, secondaryKey: key };
  const rules = wantsKey ? [{ ...rule, accessRights: ['Listen' as const] }] : [];
  const { names, remove } = await make(administration, prefix, needs.entities, rules);
  return {
    ...base,
    administration,
    nameOf: (shape) => names.get(shape) ?? shape,
    ...(wantsKey ? { listenOnly: withKey(base.connectionString, 'listen', key) } : {}),
    async dispose() {
      const left = await remove();
      if (left.length > 0) say(`could not be removed: ${left.join(', ')}`);
    },
  };
}

/** The same endpoint with another key. */
export function withKey(connectionString: string, name: string, key: string): string {
  return connectionString
    .replace(/SharedAccessKeyName=[^;]*/, `SharedAccessKeyName=${name}`)
    .replace(/SharedAccessKey=[^;]*/, `SharedAccessKey=${key}`);
}

/** Whether the administration client is of use, and which tier the namespace is of. */
async function askAdministration(
  client: ServiceBusAdministrationClient,
  onEmulator: boolean,
): Promise<{ column?: Column; refused?: string }> {
  try {
    if (onEmulator) {
      await client.queueExists('dlo-conform-probe');
      return {};
    }
    const { messagingSku } = await client.getNamespaceProperties();
    return { column: messagingSku === 'Premium' ? 'premium' : 'standard' };
  } catch (error) {
    return { refused: show(error) };
  }
}

function columnNamed(name = ''): Column {
  if (/premium/i.test(name)) return 'premium';
  if (/standard/i.test(name)) return 'standard';
  throw new Error(
    'Say which tier the namespace is of: --name "Azure Standard, westeurope" or --name "Azure Premium, …".',
  );
}
