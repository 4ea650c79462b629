/**
 * A plan over very many letters. They are only recorded, not in a broker: preparing reads records and nothing else. It has to
 * answer before it is done, go on by the queue, hold no more in memory than for a small plan, and miss no letter.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type SequenceNumber, type SourceKey, sequenceNumber } from '../../shared/letter.ts';
import { inParallel } from '../../shared/parallel.ts';
import { openStore } from '../../shared/store/index.ts';
import { withHeap } from '../harness/heap.ts';
import { openTestOffice, type PlanJson, type TestOffice } from '../harness/office.ts';
import { aLetter, aRecord } from '../harness/values.ts';

/** Heap of the app, megabytes: a tenth of what a hundred thousand records take, so that holding them would end it. */
const HEAP = 96;
/** So much smaller is the plan that the large one is compared with. */
const SMALLER = 5;
/** Bytes that the large plan may take more than the small one at its peak, most of it what the collector leaves lying. */
const MORE = 128 * 1024 * 1024;
const ROWS_AT_ONCE = 1000;
/** Longest wait for a plan to be ready, ms. */
const LIMIT = 30 * 60_000;

/** Prepares a plan over `count` letters; tells what is not as it must be. */
export async function prepareLarge(storage: string, count: number, say: (line: string) => void): Promise<string[]> {
  const sources = ['small', 'large'].map((name) => ({ name, trigger: false }));
  const office = await withHeap(HEAP, () => openTestOffice({ storage, sources }));
  const problems: string[] = [];
  const small = Math.ceil(count / SMALLER);
  try {
    await record(storage, 'small', small);
    await plan(office, 'small');
    const before = await peakMemory(office);
    const began = Date.now();
    await record(storage, 'large', count);
    say(`${count} letters recorded in ${seconds(began)}`);

    const asked = Date.now();
    const { inline, ready } = await plan(office, 'large');
    say(
      `plan ${ready.id}: ${inline.state} after ${inline.after}, ready after ${seconds(asked)}, ${ready.counts.pending} letters`,
    );
    if (inline.state === 'preparing' && inline.status !== 202)
      problems.push(`still preparing, answered ${inline.status}`);
    if (ready.counts.planned !== count || ready.counts.pending !== count) {
      problems.push(`${count} letters, but the plan has ${JSON.stringify(ready.counts)}`);
    }
    const after = await peakMemory(office);
    say(`peak memory of the app: ${megabytes(before)} after ${small} letters, ${megabytes(after)} after ${count}`);
    if (after - before > MORE)
      problems.push(`the large plan took ${megabytes(after - before)} more than the small one`);

    const paged = Date.now();
    const { letters, pages, isAscending } = await readLetters(office, ready.id);
    say(`${letters} letters read in ${pages} pages in ${seconds(paged)}`);
    if (letters !== count) problems.push(`${letters} letters are told page by page, not ${count}`);
    if (!isAscending) problems.push('the letters are not told in ascending order, each once');
    return problems;
  } finally {
    await office.close();
  }
}

async function record(storage: string, source: string, count: number): Promise<void> {
  const store = openStore({ AzureWebJobsStorage: storage }, 'test', randomUUID);
  const key = `127.0.0.1|${source}` as SourceKey;
  const { classification } = aRecord();
  const starts = Array.from({ length: Math.ceil(count / ROWS_AT_ONCE) }, (_, i) => i * ROWS_AT_ONCE);
  const now = Date.now();
  await inParallel(
    starts,
    async (start) => {
      const letters = Array.from({ length: Math.min(ROWS_AT_ONCE, count - start) }, (_, i) => {
        const number = sequenceNumber(BigInt(start + i + 1));
        return {
          letter: aLetter({ sequenceNumber: number, messageId: `m-${number}`, enqueuedAt: now }),
          classification,
        };
      });
      await store.letters.record(key, letters, now);
    },
    4,
  );
}

async function plan(office: TestOffice, source: string) {
  const began = Date.now();
  const answer = await office.call('replay', 'POST', `sources/${source}/plans`, {});
  if (answer.status >= 300) throw new Error(`plan: ${answer.status} ${answer.text}`);
  const made = answer.json as PlanJson;
  const inline = { state: made.state, status: answer.status, after: seconds(began) };
  for (;;) {
    const now = await office.getPlan(made.id);
    if (now.state === 'ready') return { inline, ready: now };
    if (now.state !== 'preparing' || Date.now() - began > LIMIT) throw new Error(`the plan is ${now.state}`);
    await delay(500);
  }
}

async function readLetters(office: TestOffice, id: string) {
  let [letters, pages, isAscending, last] = [0, 0, true, 0n];
  let continuation = '';
  do {
    const page = await office.get<{ letters: { sequenceNumber: SequenceNumber }[]; continuation: string | null }>(
      `plans/${id}/letters?top=500${continuation && `&continuation=${encodeURIComponent(continuation)}`}`,
    );
    pages++;
    for (const { sequenceNumber: number } of page.letters) {
      letters++;
      isAscending &&= BigInt(number) > last;
      last = BigInt(number);
    }
    continuation = page.continuation ?? '';
  } while (continuation !== '');
  return { letters, pages, isAscending };
}

/** The most memory the app has had so far, bytes; Linux tells it of every process. */
async function peakMemory(office: TestOffice): Promise<number> {
  const status = await readFile(`/proc/${office.process.process.pid}/status`, 'utf8');
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
  if (kilobytes === undefined) throw new Error('this system does not tell the peak memory of a process');
  return Number(kilobytes) * 1024;
}

function megabytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(0)} MB`;
}

function seconds(since: number): string {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`;
}
