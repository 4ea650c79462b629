/** The local broker as a target: one of its own for every belief, and waiting is moving its clock. */
import { randomBytes } from 'node:crypto';
import { ServiceBusAdministrationClient } from '@azure/service-bus';
import { overHttp, parseConfig, startBroker } from '../../../local/broker/index.ts';
import { type Belief, NotCheckable } from '../belief.ts';
import { configOf } from '../emulatorConfig.ts';
import type { Place, Target } from '../target.ts';

/** Name of the key that may only listen. */
const LISTEN = 'listen';

/** Takes no argument: everything about it is in the beliefs' needs. */
export function localTarget(): Target {
  return { column: 'local', name: 'Local broker', atOnce: 4, prepare, close: async () => {} };
}

async function prepare({ needs }: Belief): Promise<Place> {
  const broker = await start(configOf(needs.entities));
  return {
    connectionString: broker.connectionString,
    listenOnly: broker.connectionStringWith(LISTEN),
    administration: overHttp(new ServiceBusAdministrationClient(broker.adminConnectionString)),
    nameOf: (shape) => shape,
    pass: async (ms) => broker.clock.advance(ms),
    patienceMs: 150,
    slownessMs: 2_000,
    throttle(path) {
      broker.faults.add({ at: 'send', entity: path, do: 'refuse', condition: 'com.microsoft:server-busy' });
    },
    dispose: () => broker.close(),
  };
}

/** A configuration that the broker refuses asks for something it does not do. */
async function start(config: unknown) {
  try {
    const sasKeys = [{ name: LISTEN, key: randomBytes(32).toString('base64'), rights: ['Listen' as const] }];
    return await startBroker({ config: parseConfig(config), sasKeys });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new NotCheckable(`the local broker cannot be set up for it: ${text.replaceAll(/\s+/g, ' ')}`);
  }
}
