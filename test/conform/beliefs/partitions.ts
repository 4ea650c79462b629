/** Partitioned entities. */

import { partitionOf } from '../../../shared/brokers/serviceBus/look.ts';
import { readLetter } from '../../../shared/brokers/serviceBus/readLetter.ts';
import type { SequenceNumber } from '../../../shared/letter.ts';
import { type Belief, see, seeThat } from '../belief.ts';
import { type Context, dlqOf } from '../context.ts';
import { deadLetterNext, lettersOf, lock, next, note, refusal, START, withSender } from '../mail.ts';

const PARTITIONED = { entities: ['partitioned'] } as const;
const PAGE = 'Microsoft, "Partitioned queues and topics"';

export const partitions: readonly Belief[] = [
  {
    id: 'B62',
    belief: 'The top 16 bits of a sequence number are its partition: messages of one key share them, many keys do not.',
    source: 'Microsoft, "Message sequencing and timestamps"',
    needs: PARTITIONED,
    async check(context) {
      const letters = await alive(context, ['k1', 'k1', ...Array.from({ length: 20 }, (_, i) => `key-${i}`)]);
      const same = letters.filter(({ partitionKey }) => partitionKey === 'k1').map((letter) => letter.sequenceNumber);
      see('partitions of one key', new Set(same.map(partitionOf)).size, 1);
      const all = new Set(letters.map(({ sequenceNumber }) => partitionOf(sequenceNumber)));
      seeThat('partitions of many keys', all.size > 1, all.size);
    },
  },
  {
    id: 'B63',
    belief: 'Peeking on behind the last number of a page, cut to its lowest partition, shows every message once.',
    source: `azure-sdk-for-net#17702; ${PAGE}`,
    needs: PARTITIONED,
    async check(context) {
      const path = context.path('partitioned');
      await alive(context, keys(30));
      await deadLetterNext(context, path, 30);
      const letters = await lettersOf(context, path, 30);
      const ids = letters.map(({ letter }) => letter.messageId);
      see('letters', [ids.length, new Set(ids).size], [30, 30]);
    },
  },
  {
    id: 'B64',
    belief: 'Receiving by number letters of two partitions in one request is refused; of one it works.',
    source: 'azure-service-bus#287',
    needs: PARTITIONED,
    async check(context) {
      const path = context.path('partitioned');
      await alive(context, keys(20));
      await deadLetterNext(context, path, 20);
      const locks = await lock(context, dlqOf(path), 20);
      const node = await context.node(dlqOf(path));
      for (const token of locks.values()) await node.settle([token], 'defered');
      const byPartition = Map.groupBy(locks.keys(), partitionOf);
      const [one = [], other = []] = [...byPartition.values()];
      const code = await refusal(node.receive([...one.slice(0, 1), ...other.slice(0, 1)]));
      seeThat('two partitions', code !== 'nothing was refused' && other.length > 0, code);
      see('one partition', (await node.receive(one)).length, one.length);
    },
  },
  {
    id: 'B65',
    belief: 'One disposition settles locks of several partitions.',
    source: 'not documented; the office settles up to a hundred tokens whatever their partitions',
    needs: PARTITIONED,
    async check(context) {
      const path = context.path('partitioned');
      await alive(context, keys(10));
      await deadLetterNext(context, path, 10);
      const locks = await lock(context, dlqOf(path), 10);
      const node = await context.node(dlqOf(path));
      see('the disposition', await refusal(node.settle([...locks.values()], 'defered')), 'nothing was refused');
    },
  },
  {
    id: 'B66',
    belief: 'A batch with messages of several keys is refused by a partitioned entity.',
    source: 'azure-sdk-for-net#31030 (troubleshooting guide); amqpnetlite#120',
    needs: PARTITIONED,
    async check(context) {
      const path = context.path('partitioned');
      const batch = ['k1', 'k2'].map((key) => note(context.id(key), { key }));
      see('the send', (await context.trySend(path, batch)).kind, 'refused-message');
      see('stored', (await letters(context, path)).length, 0);
    },
  },
  {
    id: 'B67',
    belief: 'A batch of one key is accepted by a partitioned entity when the envelope carries the key.',
    source: "seen on the wire of the client, which writes the first message's key on the envelope",
    needs: PARTITIONED,
    async check(context) {
      const path = context.path('partitioned');
      const batch = ['a', 'b'].map((id) => ({ messageId: context.id(id), partitionKey: 'k1', body: id }));
      see('the send', await refusal(withSender(context, path, (s) => s.sendMessages(batch))), 'nothing was refused');
      see('stored', (await letters(context, path)).length, 2);
    },
  },
  {
    id: 'B68',
    belief: 'A raw batch of one key is refused by a partitioned entity when the envelope does not carry the key.',
    source: 'not documented; why the office sends such letters singly',
    needs: PARTITIONED,
    async check(context) {
      const batch = ['a', 'b'].map((id) => note(context.id(id), { key: 'k1' }));
      see('the send', (await context.trySend(context.path('partitioned'), batch)).kind, 'refused-message');
    },
  },
];

const keys = (count: number) => Array.from({ length: count }, (_, i) => `key-${i}`);

/** Sends one message for each key and gives them as they lie in the queue. */
async function alive(context: Context, partitionKeys: readonly string[]) {
  const path = context.path('partitioned');
  for (const [i, key] of partitionKeys.entries()) await context.send(path, note(context.id(`${i}`), { key }));
  return context.until('all messages', async () => {
    const found = await letters(context, path);
    return found.length === partitionKeys.length ? found : undefined;
  });
}

/** Every message of an entity, partition by partition, as the office pages. */
async function letters(context: Context, path: string) {
  const node = await context.node(path);
  const found = new Map<SequenceNumber, ReturnType<typeof readLetter>>();
  for (let from = START; ; ) {
    const page = (await node.peek(from, 250, true)).map(readLetter);
    if (page.length === 0) return [...found.values()];
    const lowest = Math.min(...page.map(({ sequenceNumber }) => partitionOf(sequenceNumber)));
    const part = page.filter(({ sequenceNumber }) => partitionOf(sequenceNumber) === lowest);
    for (const letter of part) found.set(letter.sequenceNumber, letter);
    from = next(part.at(-1)?.sequenceNumber ?? START);
  }
}
