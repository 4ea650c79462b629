import { MessagingError } from '@azure/core-amqp';
import { describe, expect, it } from 'vitest';
import { type EncodedMessage, encodedMessage, lockToken, type ReadLetter } from '../../shared/brokers/broker.ts';
import { Look } from '../../shared/brokers/serviceBus/look.ts';
import type { Management } from '../../shared/brokers/serviceBus/management.ts';
import { readLetter } from '../../shared/brokers/serviceBus/readLetter.ts';
import type { Lock } from '../../shared/brokers/serviceBus/receive.ts';
import { seize } from '../../shared/brokers/serviceBus/seize.ts';
import { take } from '../../shared/brokers/serviceBus/take.ts';
import { type SequenceNumber, sequenceNumber } from '../../shared/letter.ts';
import { messageOf, types } from '../harness/typedMessage.ts';

const inPartition = (partition: bigint, number: bigint) => sequenceNumber((partition << 48n) + number);

function letterOf(number: SequenceNumber): EncodedMessage {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(number));
  return messageOf({
    messageAnnotations: [
      ['x-opt-sequence-number', types.Long(bytes)],
      ['x-opt-message-state', types.Int(1)],
    ],
  });
}

const activeLetter = (number: SequenceNumber) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(number));
  return messageOf({ messageAnnotations: [['x-opt-sequence-number', types.Long(bytes)]] });
};

/** A management node that holds `numbers`; `answer` decides what a request to lock gets. */
function nodeWith(numbers: readonly SequenceNumber[], answer: (asked: readonly SequenceNumber[]) => SequenceNumber[]) {
  const asked: SequenceNumber[][] = [];
  const node: Management = {
    isOpen: () => true,
    close: () => {},
    settle: async () => {},
    peek: async (from, count) => {
      const behind = numbers.filter((number) => BigInt(number) >= BigInt(from));
      return behind.slice(0, count).map(letterOf);
    },
    receive: async (wanted) => {
      asked.push([...wanted]);
      return answer(wanted).map((number) => ({ message: letterOf(number), lock: lockToken(`lock of ${number}`) }));
    },
  };
  const context = { node, look: new Look(() => {}), isPartitioned: true, lockEnd: () => 30_000 };
  return { asked, node, context };
}

function notFound(): never {
  const error = new MessagingError('Failed to lock one or more specified messages.');
  error.code = 'MessageNotFoundError';
  throw error;
}

describe('taking letters of a partitioned entity', () => {
  const numbers = [inPartition(1n, 1n), inPartition(2n, 1n), inPartition(1n, 2n)];

  it('asks for those of one partition at a time, and gives them in the order asked for', async () => {
    const { asked, context } = nodeWith(numbers, (wanted) => [...wanted]);
    const { locked } = await take(context, numbers);
    expect(locked.map(({ letter }) => letter.sequenceNumber)).toEqual(numbers);
    expect(asked).toEqual([[numbers[0], numbers[2]], [numbers[1]]]);
  });

  it('keeps the locks of one partition when another refuses', async () => {
    const { context } = nodeWith(numbers, (wanted) =>
      wanted.includes(inPartition(2n, 1n)) ? notFound() : [...wanted],
    );
    const taken = await take(context, numbers);
    expect(taken.locked.map(({ letter }) => letter.sequenceNumber)).toEqual([numbers[0], numbers[2]]);
    expect(taken.busy).toEqual([numbers[1]]);
  });
});

describe('taking letters', () => {
  it('looks for those that an answer leaves out without saying why', async () => {
    const [present, silent, absent] = [1n, 2n, 3n].map(sequenceNumber) as [
      SequenceNumber,
      SequenceNumber,
      SequenceNumber,
    ];
    const { context } = nodeWith([present, silent], (wanted) => wanted.filter((number) => number === present));
    const taken = await take(context, [present, silent, absent]);
    expect(taken.locked.map(({ letter, lockedUntil }) => [letter.sequenceNumber, lockedUntil])).toEqual([
      [present, 30_000],
    ]);
    expect(taken).toMatchObject({ busy: [silent], absent: [absent], active: [] });
  });

  it('does not take trouble with the broker for an answer about letters', async () => {
    const one = sequenceNumber(1n);
    const { context } = nodeWith([one], () => {
      throw new MessagingError('the connection ended');
    });
    await expect(take(context, [one])).rejects.toThrow('the connection ended');
  });
});

describe('seizing letters from the front', () => {
  const all = Array.from({ length: 30 }, (_, i) => sequenceNumber(BigInt(i + 1)));
  const [first, second] = all as [SequenceNumber, SequenceNumber];

  /** A queue of 30 of which `taken` are locked by somebody else, and what was given back. */
  function front(taken: readonly SequenceNumber[], join = true) {
    const free = all.filter((number) => !taken.includes(number));
    const released: string[] = [];
    const read = (numbers: readonly SequenceNumber[]) =>
      numbers.map((number) => ({ letter: readLetter(activeLetter(number)), message: activeLetter(number) }));
    return {
      released,
      context: {
        lock: async (max: number) =>
          new Map<SequenceNumber, Lock>(
            free.splice(0, max).map((number) => [number, { lock: lockToken(number), until: 1, messageId: undefined }]),
          ),
        read: async (numbers: readonly SequenceNumber[]) => read(numbers),
        join: (one: ReadLetter, lock: Lock | undefined) =>
          lock && join ? [{ ...one, lock: lock.lock, lockedUntil: 1 }] : [],
        release: async (locks: readonly string[]) => released.push(...locks),
        take: async (numbers: readonly SequenceNumber[]) => ({
          locked: [],
          absent: numbers.filter((number) => !all.includes(number)),
          busy: [],
          active: numbers.filter((number) => all.includes(number)),
        }),
      },
    };
  }

  it('tells one that somebody else has from one that lies deeper than was looked', async () => {
    const { context } = front([first]);
    const taken = await seize(context, [first, second, '30' as SequenceNumber, '99' as SequenceNumber], 10);
    expect(taken.locked.map(({ letter }) => letter.sequenceNumber)).toEqual([second]);
    expect(taken).toMatchObject({ busy: [first], active: ['30'], absent: ['99'] });
  });

  it('gives back what turns out to be another message, and forgets none', async () => {
    const { context, released } = front([], false);
    expect(await seize(context, [first], 10)).toMatchObject({ locked: [], busy: [first], active: [], absent: [] });
    expect(released).toContain(first);
  });
});

describe('a page of letters', () => {
  it('holds one partition only, so that going on behind it passes nothing over', async () => {
    const mixed = [inPartition(1n, 5n), inPartition(2n, 1n), inPartition(1n, 2n)];
    const { node } = nodeWith(mixed, () => []);
    const page = await new Look(() => {}).page(node, sequenceNumber(0n), 10);
    expect(page.map(({ letter }) => letter.sequenceNumber)).toEqual([inPartition(1n, 2n), inPartition(1n, 5n)]);
  });

  it('is not taken for the end when its messages cannot be read', async () => {
    const { node } = nodeWith([], () => []);
    const garbled = { ...node, peek: async () => [encodedMessage(Buffer.from('garbage'))] };
    await expect(new Look(() => {}).page(garbled, sequenceNumber(0n), 10)).rejects.toThrow('cannot be read');
  });
});
