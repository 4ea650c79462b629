/** The broker that is measured, in a process of its own. Answers questions over the channel to its parent. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parseConfig, startBroker } from '../../../local/broker/index.ts';

/** What the parent may ask; `queue` is for `recreate` only. */
export interface Question {
  readonly ask: 'recreate' | 'cpu' | 'memory';
  readonly queue: string;
}

const queue = (Name: string) => ({ Name, Properties: { LockDuration: 'PT5M', MaxDeliveryCount: 2000 } });
const broker = await startBroker({
  config: parseConfig({ UserConfig: { Namespaces: [{ Name: 'bench', Queues: [queue('q')] }] } }),
});

/** Microseconds of CPU that this process has used. */
function cpu(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Memory in use after everything unused is gone, bytes. */
function memory(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function answer({ ask, queue }: Question): number {
  if (ask === 'cpu') return cpu();
  if (ask === 'memory') return memory();
  broker.recreate(queue);
  return 0;
}

process.on('message', (question: Question) => void process.send?.(answer(question)));
// Whose parent is gone is asked nothing any more.
process.on('disconnect', () => process.exit());
process.send?.(broker.connectionString);
