/** What the storage alone takes for what the office writes: the floor under every replay with a journal. */
import { randomUUID } from 'node:crypto';
import { type SequenceNumber, type SourceKey, sequenceNumber } from '../../../shared/letter.ts';
import { MAX_CHUNK } from '../../../shared/plan/prepare.ts';
import type { Chunk, ChunkState } from '../../../shared/records/plan.ts';
import { openStore } from '../../../shared/store/index.ts';
import { aLetter, aPlan, aRecord, identified } from '../../harness/values.ts';
import { median } from '../row.ts';
import { timed } from './move.ts';

const BATCH = 100;

/** ms each, one after the other. */
export interface StorageWrites {
  /** Marking a chunk's letters. */
  readonly markMs: number;
  /** A chunk's three journal writes and its audit entry. */
  readonly journalMs: number;
  /** Recording a batch of 100. */
  readonly recordMs: number;
}

/** Measures them in an account of its own, over `letters` letters. */
export async function writesOfChunk(storage: string, letters: number): Promise<StorageWrites> {
  const store = openStore({ AzureWebJobsStorage: storage }, 'bench', randomUUID);
  const source = '127.0.0.1|floor' as SourceKey;
  const { classification } = aRecord();
  const now = Date.now();
  const numbers = (from: number, count: number) =>
    Array.from({ length: count }, (_, i): SequenceNumber => sequenceNumber(BigInt(from + i + 1)));

  const letterOf = (number: SequenceNumber) =>
    aLetter({ sequenceNumber: number, messageId: `m-${number}`, enqueuedAt: now });

  const record: number[] = [];
  for (let from = 0; from < letters; from += BATCH) {
    const batch = numbers(from, BATCH).map((number) => ({ letter: letterOf(number), classification }));
    record.push((await timed(() => store.letters.record(source, batch, now))).ms);
  }

  const plan = aPlan();
  await store.plans.create(plan, 'first');
  let etag = (await store.plans.head(plan.id))?.etag ?? '';
  const mark: number[] = [];
  const journal: number[] = [];
  for (let from = 0; from + MAX_CHUNK <= letters; from += MAX_CHUNK) {
    const some = numbers(from, MAX_CHUNK);
    const leaving = some.map((number) => identified(letterOf(number)));
    mark.push((await timed(() => store.letters.close(source, leaving, 'replayed', now, plan.id))).ms);
    const writes = async () => {
      const entry = { at: now, operator: 'bench', operation: 'chunk.replay', planId: plan.id, letters: some } as const;
      const audit = await store.audit.open(entry);
      for (const state of ['sending', 'sent', 'done'] as const) {
        etag = await store.plans.commit(plan, etag, randomUUID(), { chunks: [aChunk(from, state, some, audit)] });
      }
      await store.audit.close(audit, 'done', now);
    };
    journal.push((await timed(writes)).ms);
  }
  return { markMs: median(mark), journalMs: median(journal), recordMs: median(record) };
}

function aChunk(from: number, state: ChunkState, numbers: readonly SequenceNumber[], audit: string): Chunk {
  return {
    key: `chunk:${String(from).padStart(6, '0')}`,
    state,
    letters: numbers.map((number) => ({ number, identity: 'x'.repeat(22) })),
    maybeDuplicate: false,
    sends: 1,
    waitingSince: undefined,
    audit,
  };
}
