/** Seeded trouble with the local broker: rules that each strike once, at some act of the office on some queue. */
import type { FaultHandle, FaultRule, RunningBroker } from '../../local/broker/index.ts';
import type { Dice } from './dice.ts';

/** Kinds of trouble; every act may be struck by each of its own. */
const TROUBLES: readonly [Omit<FaultRule, 'entity'>, ...Omit<FaultRule, 'entity'>[]] = [
  { at: 'send', do: 'lose-answer' },
  { at: 'send', do: 'drop-connection', when: 'before' },
  { at: 'send', do: 'drop-connection', when: 'after' },
  { at: 'send', do: 'refuse', condition: 'com.microsoft:server-busy' },
  { at: 'send', do: 'refuse', condition: 'amqp:internal-error' },
  { at: 'settle', operation: 'complete', do: 'drop-connection', when: 'before' },
  { at: 'settle', operation: 'complete', do: 'drop-connection', when: 'after' },
  { at: 'settle', operation: 'complete', do: 'refuse', condition: 'com.microsoft:message-lock-lost' },
  { at: 'settle', operation: 'complete', do: 'refuse', condition: 'com.microsoft:server-busy' },
  { at: 'settle', operation: 'abandon', do: 'drop-connection', when: 'before' },
  { at: 'manage', operation: 'receive-by-sequence-number', do: 'drop-connection', when: 'before' },
  { at: 'manage', operation: 'receive-by-sequence-number', do: 'drop-connection', when: 'after' },
  { at: 'manage', operation: 'receive-by-sequence-number', do: 'refuse', condition: 'com.microsoft:server-busy' },
  { at: 'manage', operation: 'peek-message', do: 'refuse', condition: 'com.microsoft:server-busy' },
  { at: 'manage', operation: 'peek-message', do: 'drop-connection', when: 'after' },
];

/** What was laid out, and how much of it has struck. */
export interface BrokerTrouble {
  readonly hits: number;
  remove(): void;
}

/** Lays out `count` troubles for each of `queues`, in it and in its dead-letter queue. */
export function troubleBroker(
  broker: RunningBroker,
  dice: Dice,
  queues: readonly string[],
  count: number,
): BrokerTrouble {
  const laid: FaultHandle[] = [];
  for (const queue of queues) {
    for (let i = 0; i < count; i++) {
      const trouble = dice.pick(TROUBLES);
      const entity = trouble.at === 'send' ? queue : `${queue}/$DeadLetterQueue`;
      laid.push(broker.faults.add({ ...trouble, entity, skip: dice.int(0, 3) }));
    }
  }
  return {
    get hits() {
      return laid.reduce((sum, { hits }) => sum + hits, 0);
    },
    remove: () => {
      for (const fault of laid) fault.remove();
    },
  };
}
