/** The broker of the replay bench, in a process of its own. Answers what its parent asks over the channel between them. */
import { parseConfig, startBroker } from '../../../local/broker/index.ts';

/** What the parent may ask. */
export type Question =
  /** Empties a queue and its dead-letter queue. */
  | { readonly ask: 'recreate'; readonly queue: string }
  /** Lets everything that waits in any queue expire: it lies in the dead-letter queues then. */
  | { readonly ask: 'expire' }
  /** The numbers of the messages in `path`, in any state, ascending. */
  | { readonly ask: 'numbers'; readonly path: string };

/** Longer than anything here takes; the clock is moved by more than that to end it. */
const TIME_TO_LIVE_MS = 86_400_000;

const [, , ...queues] = process.argv;
const properties = {
  LockDuration: 'PT5M',
  MaxDeliveryCount: 10,
  DefaultMessageTimeToLive: 'P1D',
  DeadLetteringOnMessageExpiration: true,
};
const broker = await startBroker({
  config: parseConfig({
    UserConfig: { Namespaces: [{ Name: 'bench', Queues: queues.map((Name) => ({ Name, Properties: properties })) }] },
  }),
});

function answer(question: Question): string[] {
  if (question.ask === 'recreate') broker.recreate(question.queue);
  if (question.ask === 'expire') broker.clock.advance(2 * TIME_TO_LIVE_MS);
  if (question.ask !== 'numbers') return [];
  return broker.messages(question.path).map(({ sequenceNumber }) => String(sequenceNumber));
}

process.on('message', (question: Question) => void process.send?.(answer(question)));
// Whose parent is gone is asked nothing any more.
process.on('disconnect', () => process.exit());
process.send?.(broker.connectionString);
