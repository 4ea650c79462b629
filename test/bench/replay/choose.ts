/** Some letters of many: by the office, and by a tool that receives until it has found them. What memory a large run takes. */
import { withHeap } from '../../harness/heap.ts';
import { median } from '../row.ts';
import { hold, scan } from './bare.ts';
import { timed } from './move.ts';
import type { BenchOffice, Stage } from './stage.ts';

/** Times are ms, memory is bytes. */
export interface Chosen {
  readonly ofFew: number;
  readonly ofMany: number;
  readonly ofManyPlanned: number;
  /** By receiving: until they were sent, and until the others were given back. */
  readonly scanned: { readonly found: number; readonly all: number };
  readonly memoryFew: number;
  readonly memoryMany: number;
}

const CHOSEN = 100;
const ROUNDS = 5;

/** Heap of the office, megabytes: what it leaves lying in a larger one would hide what it needs. */
const HEAP = 256;

/** Chooses 100 of `few` and 100 of `many` letters, then replays `few` and `many` as a whole. */
export async function choose(stage: Stage, few: number, many: number): Promise<Chosen> {
  // So many more that the full number is left after some were chosen.
  const more = CHOSEN * ROUNDS;
  const office = await withHeap(HEAP, () => stage.office());
  try {
    await stage.fill(['thousand'], few + CHOSEN);
    await stage.fill(['few'], few + more);
    await stage.fill(['many'], many + more);
    await stage.fill(['twin'], many);
    // How they came to be held and recorded is not what is measured here: this way takes less time.
    const numbers = {
      few: await holdAll(stage, 'few'),
      many: await holdAll(stage, 'many'),
      thousand: await holdAll(stage, 'thousand'),
    };
    await office.reconcile();
    await replaySome(office, 'thousand', numbers.thousand, 0); // warms it up
    const memoryFew = await peakOfAll(office, 'thousand', few);
    const some: { few: Timed; many: Timed }[] = [];
    let scanned = { found: Number.NaN, all: Number.NaN };
    for (let i = 0; i < ROUNDS; i++) {
      some.push({
        few: await replaySome(office, 'few', numbers.few, i),
        many: await replaySome(office, 'many', numbers.many, i),
      });
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

/** The same by receiving, for as many letters that lie evenly over `many`. */
function scanFor(stage: Stage, many: number): ReturnType<typeof scan> {
  const step = many / CHOSEN;
  const isChosen = (id: string) => Number(id.replace('order-', '')) % step === step - 1;
  return scan(stage.client, 'twin', CHOSEN, isChosen);
}

interface Timed {
  readonly ms: number;
  readonly withPlanning: number;
}

/** Sets all letters of a source aside. Gives their numbers, ascending. */
async function holdAll(stage: Stage, source: string): Promise<string[]> {
  const numbers = await stage.letters(source);
  await hold(stage.client, source, numbers.length);
  return numbers;
}

/** Replays 100 letters that lie evenly over all; in each round others. */
async function replaySome(
  office: BenchOffice,
  source: string,
  numbers: readonly string[],
  round: number,
): Promise<Timed> {
  const step = Math.floor(numbers.length / CHOSEN);
  const sequenceNumber = Array.from({ length: CHOSEN }, (_, i) => numbers[i * step + round]);
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
