/**
 * The earlier lives of a letter that was sent back: each death it has had. The links are properties of the message and so anybody's
 * word; each is compared with what the office has on record, and where the chain ends it is told why.
 */
import type { Source } from '../catalog.ts';
import { isOfficeError } from '../errors.ts';
import type { PlanId, SequenceNumber, SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import type { PlanHead } from '../records/plan.ts';

/** Most lives that are told. */
const MAX_LIVES = 20;

/** One earlier death. */
export interface EarlierLife {
  /** Name of the source it died in; a letter sent to another queue died elsewhere than it does now. */
  readonly sourceName: string;
  readonly record: LetterRecord;
}

/**
 * Why the chain goes no further. `first`: that was the first death. `missing`: there was an earlier one, but it is not on record.
 * `forged`: the message claims an earlier life that was another message's. `unreadable`: its record cannot be read. `cut`: there are more.
 */
export interface ChainEnd {
  readonly kind: 'first' | 'missing' | 'forged' | 'unreadable' | 'cut';
  readonly message: string;
}

/** A letter's history, latest death first. */
export interface History {
  readonly lives: readonly EarlierLife[];
  readonly end: ChainEnd;
}

interface Where {
  readonly key: SourceKey;
  readonly name: string;
}

/** Follows a letter back to its first death. Throws `DLO_STORE_UNAVAILABLE`. */
export async function historyOf(office: Office, source: Source, record: LetterRecord): Promise<History> {
  const lives: EarlierLife[] = [];
  const seen = new Set([`${source.key}/${record.letter.sequenceNumber}`]);
  let later = record;
  let where: Where = source;
  for (;;) {
    const { count, of, planId } = later.letter.replay;
    if (count === 0 && of === undefined && planId === undefined) return { lives, end: FIRST };
    if (of === undefined) {
      return {
        lives,
        end: missing(`it was sent back ${count} times by its own word, but does not say as which letter`),
      };
    }
    if (lives.length >= MAX_LIVES) return { lives, end: { kind: 'cut', message: `only ${MAX_LIVES} lives are told` } };
    const plan = planId && (await planOf(office, planId));
    // A letter may die elsewhere than before (a subscription's in its replay queue): its plan knows where it was.
    if (plan) where = nameOf(office, plan.source, plan.sourceName);
    if (seen.has(`${where.key}/${of}`))
      return { lives, end: forged(`letter ${of} of ${where.name} would be its own earlier life`) };
    seen.add(`${where.key}/${of}`);
    const earlier = await lifeOf(office, where.key, of);
    if (earlier === 'unreadable') {
      return {
        lives,
        end: { kind: 'unreadable', message: `the record of letter ${of} of ${where.name} cannot be read` },
      };
    }
    if (earlier === undefined) {
      return { lives, end: missing(`letter ${of} of ${where.name} is not on record, or not any more`) };
    }
    const doubt = doubtAbout(earlier, later, plan);
    if (doubt !== undefined) return { lives, end: forged(`it names letter ${of} of ${where.name}, but ${doubt}`) };
    lives.push({ sourceName: where.name, record: earlier });
    later = earlier;
  }
}

const FIRST: ChainEnd = { kind: 'first', message: 'its first death' };

function missing(message: string): ChainEnd {
  return { kind: 'missing', message };
}

function forged(message: string): ChainEnd {
  return { kind: 'forged', message };
}

/** A plan that cannot be read is as good as none. */
async function planOf({ store }: Office, id: PlanId): Promise<PlanHead | undefined> {
  try {
    return (await store.plans.head(id))?.head;
  } catch (error) {
    if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return undefined;
    throw error;
  }
}

async function lifeOf(
  { store }: Office,
  source: SourceKey,
  number: SequenceNumber,
): Promise<LetterRecord | 'unreadable' | undefined> {
  try {
    return await store.letters.get(source, number);
  } catch (error) {
    if (isOfficeError(error, 'DLO_RECORD_UNREADABLE')) return 'unreadable';
    throw error;
  }
}

/** The name it has now; a source that left the catalog keeps the one that the plan noted. */
function nameOf({ catalog }: Office, key: SourceKey, noted: string): Where {
  return { key, name: catalog.sources.find((one) => one.key === key)?.name ?? noted };
}

/** What speaks against a record being an earlier life of a letter; `undefined`: nothing. */
export function doubtAbout(
  earlier: LetterRecord,
  later: LetterRecord,
  plan: Pick<PlanHead, 'choices'> | undefined,
): string | undefined {
  const { planId } = later.letter.replay;
  // The message that goes back is the message that came; only its id may be new, where the target detects duplicates.
  const renamed = planId && `${planId}:${earlier.letter.sequenceNumber}`;
  const sameId = later.letter.messageId === earlier.letter.messageId || later.letter.messageId === renamed;
  if (!sameId) return 'that was another message';
  if (later.letter.body.hash !== earlier.letter.body.hash) return 'that had another body';
  // A copy in a sandbox leaves its original for others; so does a send whose outcome nobody knows.
  const mayBeElsewhere = plan?.choices.target === 'sandbox' || earlier.maybeSentBy === planId;
  if (planId === undefined || mayBeElsewhere) return undefined;
  const sentBy = earlier.closed?.fate === 'replayed' ? earlier.closed.planId : undefined;
  if (sentBy !== undefined && sentBy !== planId) return `that was sent back by plan ${sentBy}`;
  if (plan === undefined && sentBy === undefined) return `there is no plan ${planId}`;
  return undefined;
}
