import type { DeadLetterQueue } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { isOfficeError } from '../errors.ts';
import { isSameMessage, type SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import { begunPlans, unendedChunks } from '../store/inFlight.ts';
import type { VersionedLetter } from '../store/letters.ts';
import { tellReopened } from '../telemetry/tell.ts';

/**
 * Opens the records of letters again that are in the dead-letter queue although their records say that they have left. A record
 * is closed only after its letter was removed; so each is looked at once more after its closed record was read: what is still
 * there then was not removed. A letter of a chunk that a run has not ended is that run's business. Returns how many.
 */
export async function reopen(
  office: Office,
  source: Source,
  queue: DeadLetterQueue,
  numbers: readonly SequenceNumber[],
): Promise<number> {
  if (numbers.length === 0) return 0;
  const waited = await unendedNumbers(office, source);
  const reopened: SequenceNumber[] = [];
  for (const number of numbers) {
    if (waited.has(number)) continue;
    const version = await readableVersion(office, source, number);
    if (version?.record.closed === undefined) continue;
    const there = await queue.peekOne(number);
    if (there === undefined || !isSameMessage(there.letter, version.record.letter)) continue;
    if (await office.store.letters.reopen(version)) reopened.push(number);
  }
  if (reopened.length === 0) return 0;
  const where = { key: source.key, name: source.name };
  const entry = { at: office.clock(), operator: `watch of ${office.catalog.office}`, source: where, letters: reopened };
  const outcome = `${reopened.length} letters were recorded as gone from the dead-letter queue and are there: open again`;
  await office.store.audit.note({ ...entry, operation: 'letters.reopen' }, outcome);
  office.log(`reopen ${source.name}: ${outcome}`);
  tellReopened(office, source, reopened.length);
  return reopened.length;
}

async function unendedNumbers({ store }: Office, source: Source): Promise<ReadonlySet<SequenceNumber>> {
  const numbers = new Set<SequenceNumber>();
  for await (const { chunk, isGivenUp } of unendedChunks(store, await begunPlans(store, source.key))) {
    if (!isGivenUp) for (const { number } of chunk.letters) numbers.add(number);
  }
  return numbers;
}

/** One that has become unreadable since it was met is recorded anew by the next pass. */
async function readableVersion(
  office: Office,
  source: Source,
  number: SequenceNumber,
): Promise<VersionedLetter | undefined> {
  try {
    return await office.store.letters.getVersion(source.key, number);
  } catch (error) {
    if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return undefined;
    throw error;
  }
}
