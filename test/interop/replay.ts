/** The office's part of a letter's way: held, taken, reset, sent back, completed, by the adapter that runs in Azure. */
import { randomBytes } from 'node:crypto';
import type { Broker, EncodedMessage } from '../../shared/brokers/broker.ts';
import { createServiceBus } from '../../shared/brokers/serviceBus/index.ts';
import { parseCatalog, type Source } from '../../shared/catalog.ts';
import { newPlanId } from '../../shared/letter.ts';

const WAIT_MS = 10_000;

/** Sends the `count` letters in the dead-letter queue of `queue` back to it. Throws when a step does not do what it should. */
export async function replayAll(connectionString: string, queue: string, count: number): Promise<void> {
  await withOffice(connectionString, queue, async (office, source) => {
    const letters = await office.open(source);
    const received = await letters.receive(count, WAIT_MS);
    equal(received.length, count, 'receiving letters');
    const held = await letters.hold(received.map(({ lock }) => lock));
    equal(new Set(held), new Set(['settled']), 'holding');
    const { locked } = await letters.take(received.map(({ letter }) => letter.sequenceNumber));
    equal(locked.length, count, 'taking by number');
    const target = await office.openTarget(source, queue);
    for (const { letter, message, lock } of locked) {
      const copy = office.reset(message, {
        replayCount: 1,
        replayedAt: Date.now(),
        planId: newPlanId(Date.now(), randomBytes(8)),
        replayOf: letter.sequenceNumber,
        bypass: false,
      });
      equal(await target.send([copy], WAIT_MS), { kind: 'accepted' }, 'sending');
      equal(await letters.complete([lock]), ['settled'], 'completing');
    }
    await target.close();
    await letters.close();
  });
}

/** Sends encoded messages to `queue`, byte for byte. */
export async function sendRaw(
  connectionString: string,
  queue: string,
  messages: readonly EncodedMessage[],
): Promise<void> {
  await withOffice(connectionString, queue, async (office, source) => {
    const target = await office.openTarget(source, queue);
    for (const message of messages) equal(await target.send([message], WAIT_MS), { kind: 'accepted' }, 'sending raw');
    await target.close();
  });
}

async function withOffice(
  connectionString: string,
  queue: string,
  work: (office: Broker, source: Source) => Promise<void>,
): Promise<void> {
  const settings = { ServiceBus: connectionString };
  const { sources } = parseCatalog(
    {
      version: 1,
      office: 'interop',
      namespaces: { main: { connection: 'ServiceBus' } },
      sources: [{ name: queue, queue, mode: 'defer', owner: { team: 'interop', contact: 'interop@example.com' } }],
    },
    settings,
  );
  const [source] = sources;
  if (!source) throw new Error('a catalog with one source has one source');
  const office = createServiceBus({ settings, clock: Date.now, log: (line) => process.stderr.write(`${line}\n`) });
  try {
    await work(office, source);
  } finally {
    await office.close();
  }
}

function equal(seen: unknown, expected: unknown, what: string): void {
  const text = (value: unknown) => JSON.stringify(value instanceof Set ? [...value] : value);
  if (text(seen) !== text(expected)) throw new Error(`${what}: expected ${text(expected)}, seen ${text(seen)}`);
}
