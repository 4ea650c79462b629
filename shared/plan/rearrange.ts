/** Rearranges chunks that cannot be worked on as they are; each time in one write, so that no letter is in two or none. */
import type { Taken } from '../brokers/broker.ts';
import { type Chunk, type ChunkLetter, settle } from '../records/plan.ts';
import type { Sorted } from './decide.ts';
import { BUSY_LIMIT, type ChunkResult, flagged, release, type Work } from './work.ts';

/** Keys of chunks that wait for locks: after all others (`~` sorts behind digits). */
const LATER = 'chunk:~';

/**
 * Letters of a chunk that somebody else has locked. Before anything of the chunk was sent, they move to a chunk of their
 * own at the end; a chunk that may have been sent waits as a whole.
 */
export async function waitForBusy(work: Work, chunk: Chunk, taken: Taken): Promise<ChunkResult | undefined> {
  const { office, journal } = work;
  const since = chunk.waitingSince ?? office.clock();
  if (office.clock() - since >= BUSY_LIMIT) return undefined; // given up: they are left where they are
  const why = `${taken.busy.length} letters are locked by somebody else`;
  await release(work, taken.locked);
  const isLast = chunk.key.startsWith(LATER) && taken.busy.length === chunk.letters.length;
  // A letter of a session must not be overtaken by a later one: then everybody waits.
  const mayOvertake = journal.head.facts.requiresSession !== true;
  if (chunk.state === 'planned' && !isLast && mayOvertake) {
    const busy = chunk.letters.filter(({ number }) => taken.busy.includes(number));
    const free = chunk.letters.filter(({ number }) => !taken.busy.includes(number));
    const later = { ...chunk, key: laterKey(chunk), letters: busy, waitingSince: since };
    await journal.commit((head) => head, {
      chunks: free.length > 0 ? [{ ...chunk, letters: free }, later] : [later],
      removeChunks: free.length > 0 ? [] : [chunk.key],
    });
    return { kind: 'again' };
  }
  if (chunk.waitingSince === undefined) {
    await journal.commit((head) => head, { chunks: [{ ...chunk, waitingSince: since }] });
  }
  return { kind: 'wait', why };
}

/** So many letters, one after the other, are refused by their target and not for what they are. */
const BAD_TARGET = 3;

/**
 * A letter that was refused alone, and the broker did not say why: it is tried once more, after all others where it may be overtaken.
 * If the others are taken it was the letter; if the next ones are refused as well it is the target, and the run pauses.
 */
export async function setAside(work: Work, chunk: Chunk, reason: string): Promise<ChunkResult> {
  const { journal, refusedAlone } = work;
  for (const { number } of chunk.letters) refusedAlone.add(number);
  const mayOvertake = journal.head.facts.requiresSession !== true && !chunk.key.startsWith(LATER);
  await journal.commit((head) => head, {
    chunks: [mayOvertake ? { ...chunk, key: laterKey(chunk) } : chunk],
    removeChunks: mayOvertake ? [chunk.key] : [],
  });
  if (refusedAlone.size >= BAD_TARGET) {
    return {
      kind: 'refused',
      why: `the target refuses: ${reason} (${refusedAlone.size} letters in a row, each alone)`,
    };
  }
  return mayOvertake ? { kind: 'again' } : { kind: 'wait', why: `a letter was refused alone: ${reason}` };
}

function laterKey({ key }: Chunk): string {
  return `${LATER}${key.slice('chunk:'.length)}`;
}

/** Splits a chunk that nothing was done with yet: `size` letters in front, the rest behind. Gives the front. */
export async function splitAt(work: Work, chunk: Chunk, size: number): Promise<Chunk> {
  const front: Chunk = { ...chunk, key: `${chunk.key}.0`, letters: chunk.letters.slice(0, size) };
  const rest: Chunk = { ...chunk, key: `${chunk.key}.1`, letters: chunk.letters.slice(size) };
  await work.journal.commit((head) => ({ ...head, chunks: head.chunks + 1 }), {
    chunks: [front, rest],
    removeChunks: [chunk.key],
  });
  return front;
}

/** Halves a chunk, in its place and order: too many bytes for one transfer, or one message of it is refused. */
export async function divide(work: Work, chunk: Chunk, sorted: Sorted): Promise<ChunkResult> {
  await release(work, [...sorted.release, ...sorted.send.map(({ locked }) => locked)]);
  const letters = sorted.send.map(({ planned }) => planned);
  const middle = Math.ceil(letters.length / 2);
  const half = (suffix: string, part: ChunkLetter[]): Chunk => ({
    ...chunk,
    key: `${chunk.key}.${suffix}`,
    letters: part,
  });
  await work.journal.commit(
    (head) => ({
      ...head,
      chunks: head.chunks + 1,
      counts: settle(head.counts, 0, sorted.exceptions, flagged(sorted.exceptions)),
    }),
    {
      chunks: [half('0', letters.slice(0, middle)), half('1', letters.slice(middle))],
      removeChunks: [chunk.key],
      exceptions: sorted.exceptions,
    },
  );
  return { kind: 'again' };
}
