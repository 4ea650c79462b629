/** Some letters of many: by the office, and by a tool that receives until it has found them. What memory a large run takes. */
import { withHeap } from '../../harness/heap.ts';
import { median } from '../row.ts';
import { scan } from './bare.ts';
import { timed } from './move.ts';
import type { BenchOffice, Stage } from './stage.ts';

/** Times are ms, memory is bytes. */
export interface Chosen {
  readonly ofFew: number;
  readonly ofMany: number;
  readonly ofManyPlanned: number;
  readonly scanned: number;
  readonly memoryFew: number;
  readonly memoryMany: number;
}

const CHOSEN = 100;
const ROUNDS = 5;

/** Heap of the office, megabytes: what it leaves lying in a larger one would hide what it needs. */
const HEAP = 128;

/** Chooses 100 of `few` and 100 of `many` letters, then replays `few` and `many` as a whole. */
export async function choose(stage: Stage, few: number, many: number): Promise<Chosen> {
  // So many more that the full number is left after some were chosen.
  const more = CHOSEN * ROUNDS;
  const office = await withHeap(HEAP, () => stage.office());
  try {
    await stage.fill(['thousand'], few);
    await stage.fill(['few'], few + more);
    await stage.fill(['many'], many + more);
    await stage.fill(['twin'], many);
    for (const source of ['thousand', 'few', 'many']) {
      await office.collectAll(source, (await stage.letters(source)).length);
    }
    const memoryFew = await peakOfAll(office, 'thousand', few);
    const some: { few: Timed; many: Timed }[] = [];
    let scanned = 0;
    for (let i = 0; i < ROUNDS; i++) {
      some.push({ few: await replaySome(stage, office, 'few'), many: await replaySome(stage, office, 'many') });
      // In the middle: whoever else keeps the machine busy does so for both.
      if (i === Math.floor(ROUNDS / 2)) scanned = await scanFor(stage, many);
    }
    const memoryMany = await peakOfAll(office, 'many', many);
    return {
      ofFew: median(some.map((one) => one.few.ms)),
      ofMany: median(some.map((one) => one.many.ms)),
      ofManyPlanned: median(some.map((one) => one.many.withPlanning)),
      scanned,
      memoryFew,
      memoryMany,
    };
  } finally {
    await office.close();
  }
}

/** How long it takes to find and replay as many letters that lie evenly over `many`, by receiving, ms. */
async function scanFor(stage: Stage, many: number): Promise<number> {
  const step = many / CHOSEN;
  const isChosen = (id: string) => Number(id.replace('order-', '')) % step === step - 1;
  const { ms } = await timed(() => scan(stage.client, 'twin', CHOSEN, isChosen));
  return ms;
}

interface Timed {
  readonly ms: number;
  readonly withPlanning: number;
}

/** Replays 100 letters that lie evenly over all that are there. */
async function replaySome(stage: Stage, office: BenchOffice, source: string): Promise<Timed> {
  const all = await stage.letters(source);
  const step = Math.floor(all.length / CHOSEN);
  const sequenceNumber = Array.from({ length: CHOSEN }, (_, i) => all[(i + 1) * step - 1]);
  const { result: plan, ms: planning } = await timed(() => office.plan(source, { sequenceNumber }, CHOSEN));
  const { ms } = await timed(() => office.run(plan));
  return { ms, withPlanning: ms + planning };
}

/** The most memory that the office has while it replays all letters of a source. */
async function peakOfAll(office: BenchOffice, source: string, count: number): Promise<number> {
  const plan = await office.plan(source, {}, count);
  await office.forgetPeak();
  await office.run(plan);
  return office.peakMemory();
}
