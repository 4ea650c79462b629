import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { main } from '../../cli/drain.ts';
import { findHeld, drain as moveHeld } from '../../cli/drainQueue.ts';
import { chosenBy, lookAtWayOut } from '../../cli/wayOut.ts';
import type { DeadLetterQueue, EncodedMessage } from '../../shared/brokers/broker.ts';
import { readLetter } from '../../shared/brokers/serviceBus/readLetter.ts';
import { type Catalog, parseCatalog, type Source } from '../../shared/catalog.ts';
import { type Bench, holdAll, START, startBench } from '../harness/serviceBus.ts';
import { data, messageOf, types } from '../harness/typedMessage.ts';

const DLQ = 'orders/$DeadLetterQueue';
/** Queues whose letters a send can lose: one drops ids that it knows, one drops what expires. */
const QUEUES = {
  remembering: { RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 'PT10M' },
  sessions: { RequiresSession: true },
};

let bench: Bench;
let queue: DeadLetterQueue;
let root: string;
let said: string[];
let catalog: Catalog;

beforeEach(async () => {
  bench = await startBench(QUEUES);
  queue = await bench.office.open(bench.orders);
  root = await mkdtemp(join(tmpdir(), 'drain-'));
  said = [];
  await writeCatalog();
});
afterEach(async () => {
  await bench.close();
  await rm(root, { recursive: true });
});

/** Writes catalog and settings; without `administration` facts about a queue come from the catalog alone. */
async function writeCatalog(entity: object = {}, administration = true): Promise<void> {
  const shared = { mode: 'defer', owner: { team: 'orders', contact: 'orders@example.com' } };
  const text = {
    version: 1,
    office: 'test',
    namespaces: { main: { connection: 'ServiceBus', operationsPerSecond: 100_000 } },
    sources: [
      { name: 'orders', queue: 'orders', ...shared, entity, replay: { maxReplays: 1 } },
      { name: 'billing', topic: 'events', subscription: 'billing', ...shared },
      { name: 'remembering', queue: 'remembering', ...shared },
    ],
  };
  const settings = {
    ...bench.settings,
    ...(administration && { DLO_ADMINISTRATION_URL: `http://127.0.0.1:${bench.broker.adminPort}` }),
  };
  await writeFile(join(root, 'catalog.json'), JSON.stringify(text));
  await writeFile(join(root, 'local.settings.json'), JSON.stringify({ Values: settings }));
  catalog = parseCatalog(text, settings);
}

function drain(...args: string[]): Promise<number> {
  return main(args, {}, (line) => said.push(line), pathToFileURL(`${root}/`));
}

/** The x-replay-id that the command told last. */
function planIdSaid(): string | undefined {
  return /x-replay-id (\S+)\.$/m.exec(said.join('\n'))?.[1];
}

function letters(count: number, replays = 0): EncodedMessage[] {
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
    expect(await drain('orders', '--yes')).toBe(0);
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
    expect(await drain('orders', '--yes')).toBe(0);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'active' }]);
    expect(said.join('\n')).toContain('1 letters are not held');
  });

  it('moves letters one by one to a queue of the operator’s choice', async () => {
    await hold(3);
    expect(await drain('orders', '--to', 'parking', '--yes')).toBe(0);
    expect(idsIn('parking')).toEqual(['id-0', 'id-1', 'id-2']);
  });

  it('leaves letters that were sent back as often as the catalog allows, unless it is told otherwise', async () => {
    await hold(2, 5);
    expect(await drain('orders', '--yes')).toBe(1);
    expect(said.join('\n')).toContain('Left 2, over-limit: 1, 2');
    expect(bench.broker.messages('orders')).toEqual([]);
    expect(await drain('orders', '--yes', '--over-limit')).toBe(0);
    expect(idsIn('orders')).toEqual(['id-0', 'id-1']);
  });

  it.each([[[]], [['--dry-run']]])('tells what it would do, and does nothing until it is told to: %j', async (args) => {
    await hold(2);
    expect(await drain('orders', ...args)).toBe(0);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }, { locked: false }]);
    expect(said).toEqual([
      'orders: 2 held letters.',
      'target "orders": active, duplicate detection off, sessions off, expired messages are dropped (by administration)',
      'To be moved to "orders": 2; to be left: 0.',
      'Nothing was changed. With --yes this is done.',
    ]);
  });

  it('does not call moved what a target that detects duplicates would drop', async () => {
    const source = catalog.sources[2] as Source;
    await bench.deadLetter(letters(5), source);
    await holdAll(await bench.office.open(source), 5);
    expect(await drain('remembering', '--yes')).toBe(1);
    expect(bench.broker.messages('remembering')).toEqual([]);
    expect(idsIn('remembering/$DeadLetterQueue')).toHaveLength(5);
    expect(said).toContain(`Moved 0 letters; they carry x-replay-id ${planIdSaid()}.`);
    expect(said).toContain('Left 5, duplicate-window: 1, 2, 3, 4, 5');
    expect(said.join('\n')).toMatch(/^warn duplicate-window, 5 letters: .* choose --on-duplicate "new-id"$/m);
    said.length = 0;
    expect(await drain('remembering', '--yes', '--on-duplicate', 'new-id')).toBe(0);
    const arrived = bench.broker.messages('remembering').map(({ raw }) => readLetter(raw));
    expect(arrived.map(({ messageId }) => messageId)).toEqual([1, 2, 3, 4, 5].map((n) => `${planIdSaid()}:${n}`));
    expect(arrived[0]?.properties).toContainEqual({ name: 'x-original-message-id', type: 'string', value: 'id-0' });
    expect(said).toContain('5 of them have a new message id, and the old one in x-original-message-id.');
    expect(bench.broker.messages('remembering/$DeadLetterQueue')).toEqual([]);
  });

  it('sends nothing that would expire unseen, until it is told how long it may wait', async () => {
    await bench.deadLetter([
      messageOf({
        header: [types.True(), types.Ubyte(4), types.Uint(3000)],
        properties: [types.Str8('short')],
        body: [data('x')],
      }),
    ]);
    await holdAll(queue, 1);
    expect(await drain('orders', '--yes')).toBe(2);
    expect(idsIn(DLQ)).toEqual(['short']);
    expect(said.join('\n')).toMatch(/^block ttl-short, 1 letters: .* choose a longer --time-to-live, or "drop"$/m);
    expect(await drain('orders', '--yes', '--time-to-live', 'PT30M')).toBe(0);
    const [arrived] = bench.broker.messages('orders');
    expect(readLetter(arrived?.raw as Buffer)).toMatchObject({ messageId: 'short', timeToLive: 1_800_000 });
  });

  it('is stopped by a target that is disabled, or not there, or of which nothing is known', async () => {
    await hold(1);
    const told = async (...args: string[]) => {
      said.length = 0;
      expect(await drain('orders', '--yes', ...args)).toBe(2);
      expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
      return said.join('\n');
    };
    expect(await told('--to', 'nowhere')).toMatch(/^block target-unknown/m);
    // A topic would hand the letters to all its subscriptions.
    expect(await told('--to', 'events')).toMatch(/^block /m);
    bench.broker.setStatus('parking', 'Disabled');
    expect(await told('--to', 'parking')).toMatch(/^block target-disabled/m);
    bench.broker.setStatus('parking', 'Active');
    await writeCatalog({ duplicateDetection: false, requiresSession: false, deadLettersOnExpiry: false }, false);
    // What the catalog states of one queue says nothing of another.
    expect(await told('--to', 'parking')).toMatch(/^block duplicate-detection-unknown/m);
    expect(await drain('orders', '--yes')).toBe(0);
    expect(idsIn('orders')).toEqual(['id-0']);
  });

  it('leaves letters that the target would refuse, by what is known of it', async () => {
    await hold(1);
    expect(await drain('orders', '--yes', '--to', 'sessions')).toBe(1);
    expect(said).toContain('Left 1, no-session: 1');
    await writeCatalog(
      { duplicateDetection: false, requiresSession: false, deadLettersOnExpiry: true, maxMessageBytes: 1024 },
      false,
    );
    await bench.deadLetter([messageOf({ properties: [types.Str8('large')], body: [data('x'.repeat(1000))] })]);
    await holdAll(queue, 1);
    expect(await drain('orders', '--yes')).toBe(1);
    expect(said).toContain('Left 1, too-large: 2');
    expect(idsIn('orders')).toEqual(['id-0']);
  });

  it('sends no other letter than the one that was shown', async () => {
    await hold(1);
    const chosen = chosenBy({});
    const way = await lookAtWayOut(bench.office, catalog, catalog.sources[0] as Source, 'orders', chosen);
    const clock = () => Date.now();
    const options = { broker: bench.office, way, clock, random: randomBytes, wait: async () => {} };
    const { held } = await findHeld(options, queue);
    const other = held.map(({ number }) => ({ number, identity: 'another' }));
    const { left, moved } = await moveHeld(options, queue, other);
    expect({ moved, left: [...left] }).toEqual({
      moved: [],
      left: [['another letter than the one that was shown', ['1']]],
    });
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
  });

  it('reports letters that somebody else has locked', async () => {
    await hold(3);
    const [first] = await queue.peek(START, 1);
    await queue.take(first ? [first.letter.sequenceNumber] : []);
    expect(await drain('orders', '--yes')).toBe(1);
    expect(idsIn(DLQ)).toEqual(['id-0']);
    expect(said).toContain('Left 1, locked by somebody else: 1');
  });

  it('finds the letter that the target refuses, and moves the others', async () => {
    await hold(3);
    bench.broker.faults.add({ at: 'send', do: 'refuse', condition: 'amqp:not-allowed', description: 'no', times: 2 });
    expect(await drain('orders', '--yes')).toBe(1);
    expect(idsIn('orders')).toEqual(['id-1', 'id-2']);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
    expect(said).toContain('Left 1, refused by the target: amqp:not-allowed no: 1');
  });

  it('stops and leaves everything where it does not know whether the target has the letters', async () => {
    await hold(120);
    bench.broker.faults.add({ at: 'send', do: 'drop-connection' });
    expect(await drain('orders', '--yes')).toBe(1);
    expect(bench.broker.messages('orders')).toHaveLength(100);
    expect(bench.broker.messages(DLQ)).toHaveLength(120);
    expect(said.join('\n')).toMatch(/100 are still in the dead-letter queue, though the target may have them: 1, 2,/);
    expect(said.join('\n')).toMatch(/Left 20, not tried: nobody knows/);
  });

  it('stops when the target is closed', async () => {
    await hold(2);
    bench.broker.faults.add({ at: 'send', do: 'refuse', condition: 'com.microsoft:entity-disabled' });
    expect(await drain('orders', '--yes')).toBe(1);
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
      await drain('orders', '--yes');
      expect(idsIn('orders')).toEqual(['id-0', 'id-1', 'id-2']);
      expect(bench.broker.messages(DLQ)).toEqual([]);
    },
  );

  it('does not send the letters of a subscription to its topic', async () => {
    expect(await drain('billing')).toBe(2);
    expect(said.join('\n')).toContain('hand the letters to every other subscription');
    await bench.deadLetter(letters(1), bench.billing);
    await holdAll(await bench.office.open(bench.billing), 1);
    expect(await drain('billing', '--to', 'parking', '--yes')).toBe(0);
    expect(idsIn('parking')).toEqual(['id-0']);
  });

  it.each([
    [[], 'sources in the catalog: orders, billing'],
    [['no-such-source'], 'sources in the catalog: orders, billing'],
    [['orders', '--too', 'parking'], '--too'],
    [['orders', '--yes', '--dry-run'], '--yes and --dry-run contradict each other'],
    [['orders', '--on-duplicate', 'hope'], '--on-duplicate: '],
    [['orders', '--time-to-live', 'long'], '--time-to-live: must be keep, drop, or'],
  ])('explains itself when called as %j', async (args, expected) => {
    await hold(1);
    expect(await drain(...args)).toBe(2);
    expect(said.join('\n')).toContain(expected);
    expect(bench.broker.messages(DLQ)).toMatchObject([{ state: 'deferred', locked: false }]);
  });
});
