/** The office's part of a letter's way: held, taken, reset, sent back, completed, by the adapter that runs in Azure. */
import { randomBytes } from 'node:crypto';
import { parseCatalog } from '../../shared/catalog.ts';
import { newPlanId } from '../../shared/letter.ts';
import { createServiceBus } from '../../shared/serviceBus/index.ts';

const WAIT_MS = 10_000;

/** Sends the one letter in the dead-letter queue of `queue` back to it. Throws when a step does not do what it should. */
export async function replayOne(connectionString: string, queue: string): Promise<void> {
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
    const letters = await office.open(source);
    const [received] = await letters.receive(1, WAIT_MS);
    if (!received) throw new Error('no letter came out of the dead-letter queue');
    equal(await letters.hold([received.lock]), ['settled'], 'holding');
    const { locked } = await letters.take([received.letter.sequenceNumber]);
    const [taken] = locked;
    if (!taken) throw new Error('the held letter could not be taken');
    const target = await office.openTarget(source, queue);
    const message = office.reset(taken.message, {
      replayCount: 1,
      replayedAt: Date.now(),
      planId: newPlanId(Date.now(), randomBytes(8)),
      replayOf: taken.letter.sequenceNumber,
      bypass: false,
    });
    equal(await target.send([message], WAIT_MS), { kind: 'accepted' }, 'sending');
    equal(await letters.complete([taken.lock]), ['settled'], 'completing');
    await target.close();
    await letters.close();
  } finally {
    await office.close();
  }
}

function equal(seen: unknown, expected: unknown, what: string): void {
  const [a, b] = [JSON.stringify(seen), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what}: expected ${b}, seen ${a}`);
}
