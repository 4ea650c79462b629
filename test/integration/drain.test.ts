import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../local/drain.ts';
import type { DeadLetterQueue } from '../../shared/broker.ts';
import { readLetter } from '../../shared/serviceBus/readLetter.ts';
import { type Bench, holdAll, START, startBench } from '../harness/serviceBus.ts';
import { data, messageOf, types } from '../harness/typedMessage.ts';

const DLQ = 'orders/$DeadLetterQueue';

let bench: Bench;
let queue: DeadLetterQueue;
let root: string;
let said: string[];

beforeEach(async () => {
  bench = await startBench();
  queue = await bench.office.open(bench.orders);
  root = await mkdtemp(join(tmpdir(), 'drain-'));
  said = [];
  const shared = { mode: 'defer', owner: { team: 'orders', contact: 'orders@example.com' } };
  const catalog = {
    version: 1,
    office: 'test',
    namespaces: { main: { connection: 'ServiceBus' } },
    sources: [
      { name: 'orders', queue: 'orders', ...shared, replay: { maxReplays: 1 } },
      { name: 'billing', topic: 'events', subscription: 'billing', ...shared },
    ],
  };
  await writeFile(join(root, 'catalog.json'), JSON.stringify(catalog));
  await writeFile(join(root, 'local.settings.json'), JSON.stringify({ Values: bench.settings }));
});
afterEach(async () => {
  await bench.close();
  await rm(root, { recursive: true });
});

function drain(...args: string[]): Promise<number> {
  return main(args, {}, (line) => said.push(line), pathToFileURL(`${root}/`));
}

function letters(count: number, replays = 0): Buffer[] {
  return Array.from({ length: count }, (_, i) =>
    messageOf({
      properties: [types.Str8(`id-${i}`)],
      applicationProperties: [
        ['n', types.Byte(i % 100)],
        ['x-replay-count', types.Int(replays)],
      ],
      body: [data(`body ${i}`)],
    }),
  );
}

async function hold(count: number, replays = 0): Promise<void> {
  await bench.deadLetter(letters(count, replays));
  await holdAll(queue, count);
}

function idsIn(path: string): (string | undefined)[] {
  return bench.broker.messages(path).map(({ raw }) => readLetter(raw).messageId);
}

describe('drain', () => {
  it('moves every held letter back to its queue in order, and says so', async () => {
    await hold(230);
    expect(await drain('orders')).toBe(0);
    expect(idsIn('orders')).toEqual(Array.from({ length: 230 }, (_, i) => `id-${i}`));
    expect(bench.broker.messages(DLQ)).toEqual([]);
    const [first] = bench.broker.messages('orders').map(({ raw }) => readLetter(raw));
    expect(first).toMatchObject({ reason: undefined, replay: { count: 1, of: '1' } });
    expect(first?.properties[0]).toEqual({ name: 'n', type: 'byte', value: 0 });
    expect(said).toContain(`Moved 230 letters; they carry x-replay-id ${first?.replay.planId}.`);
  });

  it('leaves letters that are not held, and says that other tools can read them', async () => {
    await hold(2);
    await bench.deadLetter(letters(1));
    expect(await drain('orders')).toBe(0);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'active' }]);
    expect(said.join('\n')).toContain('1 letters are not held');
  });

  it('moves letters one by one to a queue of the operator’s choice', async () => {
    await hold(3);
    expect(await drain('orders', '--to', 'parking')).toBe(0);
    expect(idsIn('parking')).toEqual(['id-0', 'id-1', 'id-2']);
  });

  it('holds nothing back for having been replayed too often, but counts it', async () => {
    await hold(2, 5);
    expect(await drain('orders')).toBe(0);
    expect(said.join('\n')).toContain('2 of them had been sent back as often as the catalog allows');
  });

  it('changes nothing on a dry run', async () => {
    await hold(2);
    expect(await drain('orders', '--dry-run')).toBe(0);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }, { locked: false }]);
    expect(said[0]).toContain('2 held letters');
  });

  it('reports letters that somebody else has locked', async () => {
    await hold(3);
    const [first] = await queue.peek(START, 1);
    await queue.take(first ? [first.letter.sequenceNumber] : []);
    expect(await drain('orders')).toBe(1);
    expect(idsIn(DLQ)).toEqual(['id-0']);
    expect(said).toContain('Left 1, locked by somebody else: 1');
  });

  it('finds the letter that the target refuses, and moves the others', async () => {
    await hold(3);
    bench.broker.faults.add({ at: 'send', do: 'refuse', condition: 'amqp:not-allowed', description: 'no', times: 2 });
    expect(await drain('orders')).toBe(1);
    expect(idsIn('orders')).toEqual(['id-1', 'id-2']);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
    expect(said).toContain('Left 1, refused by the target: amqp:not-allowed no: 1');
  });

  it('stops and leaves everything where it does not know whether the target has the letters', async () => {
    await hold(120);
    bench.broker.faults.add({ at: 'send', do: 'drop-connection' });
    expect(await drain('orders')).toBe(1);
    expect(bench.broker.messages('orders')).toHaveLength(100);
    expect(bench.broker.messages(DLQ)).toHaveLength(120);
    expect(said.join('\n')).toMatch(/100 are still in the dead-letter queue, though the target may have them: 1, 2,/);
    expect(said.join('\n')).toMatch(/Left 20, not tried: nobody knows/);
  });

  it('stops when the target is closed', async () => {
    await hold(2);
    bench.broker.faults.add({ at: 'send', do: 'refuse', condition: 'com.microsoft:entity-disabled' });
    expect(await drain('orders')).toBe(1);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ locked: false }, { locked: false }]);
  });

  it.each(['drop-connection', 'refuse'] as const)(
    'removes letters that were sent when %s hits the completion',
    async (fault) => {
      await hold(3);
      bench.broker.faults.add({
        at: 'settle',
        operation: 'complete',
        do: fault,
        condition: 'com.microsoft:message-lock-lost',
      });
      await drain('orders');
      expect(idsIn('orders')).toEqual(['id-0', 'id-1', 'id-2']);
      expect(bench.broker.messages(DLQ)).toEqual([]);
    },
  );

  it('does not send the letters of a subscription to its topic', async () => {
    expect(await drain('billing')).toBe(2);
    expect(said.join('\n')).toContain('hand the letters to every other subscription');
    await bench.deadLetter(letters(1), bench.billing);
    await holdAll(await bench.office.open(bench.billing), 1);
    expect(await drain('billing', '--to', 'parking')).toBe(0);
    expect(idsIn('parking')).toEqual(['id-0']);
  });

  it.each([
    [[], 'sources in the catalog: orders, billing'],
    [['no-such-source'], 'sources in the catalog: orders, billing'],
    [['orders', '--to', 'nowhere'], 'nowhere'],
    [['orders', '--too', 'parking'], '--too'],
  ])('explains itself when called as %j', async (args, expected) => {
    await hold(1);
    expect(await drain(...args)).toBe(2);
    expect(said.join('\n')).toContain(expected);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
  });
});
