/** The local broker as a target: one of its own for every belief, and waiting is moving its clock. */
import { parseConfig, startBroker } from '../../../local/broker/index.ts';
import { type Belief, NotCheckable } from '../belief.ts';
import { configOf } from '../emulatorConfig.ts';
import type { Place, Target } from '../target.ts';

/** Takes no argument: everything about it is in the beliefs' needs. */
export function localTarget(): Target {
  return { column: 'local', name: 'Local broker', atOnce: 4, prepare, close: async () => {} };
}

async function prepare({ needs }: Belief): Promise<Place> {
  const broker = await start(configOf(needs.entities));
  return {
    connectionString: broker.connectionString,
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
    return await startBroker({ config: parseConfig(config) });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new NotCheckable(`the local broker cannot be set up for it: ${text.replaceAll(/\s+/g, ' ')}`);
  }
}
