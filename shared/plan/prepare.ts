import type { Source } from '../catalog.ts';
import { isMistake, isOfficeError, mistakeText, OfficeError } from '../errors.ts';
import { causesThatCameBack } from '../groups/cameBack.ts';
import {
  compareSequenceNumbers,
  identityDigest,
  type Letter,
  newPlanId,
  type PlanId,
  type SequenceNumber,
} from '../letter.ts';
import { shownRecord } from '../mask.ts';
import type { Office } from '../office.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import {
  type Action,
  type Choices,
  type Chunk,
  type ChunkLetter,
  type Exception,
  type Facts,
  type Finding,
  MAX_BATCH_BYTES,
  NO_COUNTS,
  needsSingles,
  type PlanHead,
  timeToLiveOf,
} from '../records/plan.ts';
import { beginProgress } from '../records/ramp.ts';
import { countLetter, NO_TALLY, type PlanTally } from '../records/tally.ts';
import { matches, refuseMasked, type Selection, selectionToJson } from '../selection.ts';
import { MAX_JOURNAL_ROWS } from '../store/plans.ts';
import { type IdDigest, idDigest } from '../store/sends.ts';
import { activeHolds } from './holds.ts';
import { Journal, loadPlan, newWriteId, TakenOver } from './journal.ts';
import { tellOrigin } from './origin.ts';
import {
  completeFacts,
  countCameBack,
  countExpiry,
  countMaybeSent,
  countOnHold,
  countOutOfReach,
  countRepeated,
  countSkip,
  countUnreadable,
  mayRename,
  plannedRefusal,
  sourceFindings,
  targetOf,
} from './preflight.ts';
import { Sends } from './sends.ts';

/** How long a plan may wait to be run, ms. What it shows grows old. */
export const PLAN_LIFETIME = 24 * 3_600_000;

/** Most letters of a chunk: each may need a row of its own in the transaction that ends the chunk. */
export const MAX_CHUNK = MAX_JOURNAL_ROWS - 3;
/** Bytes a message gains in a batch: its framing and the replay's properties. */
const OVERHEAD = 500;

/** As many as the store gives at once: each page costs it a search. */
const RECORDS_A_PAGE = 1000;

/** What an operator asks to be planned. */
export interface PlanRequest {
  readonly action: Action;
  readonly selection: Selection;
  readonly choices: Choices;
}

/**
 * Makes a plan: looks at the source, then lays the chosen letters into chunks until `deadline` (ms since 1970). Touches
 * no letter. The returned head is `ready`, or `preparing` when the queue has to go on with it.
 * Throws `DLO_BROKER_UNAVAILABLE`, `DLO_STORE_UNAVAILABLE`.
 */
export async function createPlan(
  office: Office,
  source: Source,
  request: PlanRequest,
  operator: string,
  deadline: number,
): Promise<PlanHead> {
  refuseMasked(source, request.selection);
  const selection = selectionText(request.selection);
  const { facts, findings } = await lookAtTarget(office, source, request.action, request.choices);
  const now = office.clock();
  const id = newPlanId(now, office.random(5));
  const head: PlanHead = {
    id,
    source: source.key,
    sourceName: source.name,
    action: request.action,
    target: request.action === 'replay' ? (targetOf(source, request.choices.target) ?? '') : '',
    choices: request.choices,
    selection,
    findings,
    state: 'preparing',
    stateReason: '',
    createdAt: now,
    createdBy: operator,
    expiresAt: now + PLAN_LIFETIME,
    cursor: undefined,
    looked: 0,
    chunks: 0,
    counts: NO_COUNTS,
    tally: NO_TALLY,
    request: 'none',
    runner: '',
    facts,
    seen: false,
    pace: { rate: 0, ramp: undefined },
    progress: beginProgress(0, 0, now),
    startedAt: undefined,
    startedBy: '',
    finishedAt: undefined,
  };
  const where = { key: source.key, name: source.name };
  const audit = await office.store.audit.open({
    at: now,
    operator,
    operation: 'plan.create',
    source: where,
    planId: id,
  });
  await office.store.plans.create(head, newWriteId(office));
  await office.store.sources.indexPlan(source.key, id);
  await office.store.runs.enqueue(id, office.leaseMs); // should this process die while preparing
  const prepared = await continuePreparing(office, source, id, request.selection, deadline);
  const { planned, skipped } = prepared.counts;
  await office.store.audit.close(audit, `${prepared.state}: ${planned} letters, ${skipped} skipped`, office.clock());
  return prepared;
}

/** Longest selection that fits beside the rest of the head's row, characters of JSON. */
const MAX_SELECTION = 24_000;

/** The selection as stored; it is read back when preparing goes on in another process. */
function selectionText(selection: Selection): string {
  const text = JSON.stringify(selectionToJson(selection));
  if (text.length <= MAX_SELECTION) return text;
  const message = `body.selection: is ${text.length} characters long, more than ${MAX_SELECTION}`;
  throw new OfficeError('DLO_BAD_REQUEST', message);
}

/**
 * Reads what is known of the target and judges it: before a plan is made, and again when it is started or resumed, of the target
 * `frozen` in it.
 */
export async function lookAtTarget(
  office: Pick<Office, 'broker'>,
  source: Source,
  action: Action,
  choices: Choices,
  frozen?: string,
): Promise<{ facts: Facts; findings: Finding[] }> {
  const target = action === 'replay' ? frozen || targetOf(source, choices.target) : undefined;
  const read = target === undefined ? ({ from: 'none' } as const) : await office.broker.facts(source, target);
  const facts = completeFacts(source, read);
  const findings = sourceFindings(source, action, choices, facts);
  const isKnownToFail = findings.some(({ code }) => code === 'target-unknown' || code === 'target-disabled');
  if (target !== undefined && !isKnownToFail) findings.push(...(await reachFindings(office, source, target)));
  return { facts, findings };
}

/** Whether the target takes our link: it is opened and closed again. */
async function reachFindings(office: Pick<Office, 'broker'>, source: Source, target: string): Promise<Finding[]> {
  try {
    await (await office.broker.openTarget(source, target)).close();
    return [];
  } catch (error) {
    if (!isOfficeError(error, 'DLO_TARGET_UNAVAILABLE')) throw error;
    return [{ code: 'target-unreachable', level: 'block', letters: 0, message: `${target}: ${error.message}` }];
  }
}

/** Goes on laying letters into chunks until `deadline`. Another process doing the same ends this one quietly. */
export async function continuePreparing(
  office: Office,
  source: Source,
  id: PlanId,
  selection: Selection,
  deadline: number,
): Promise<PlanHead> {
  const journal = new Journal(office, await loadPlan(office, id));
  if (journal.head.state !== 'preparing') return journal.head;
  // Whoever takes the head last goes on; the others' next write fails.
  const runner = newWriteId(office);
  try {
    await journal.commit((head) => ({ ...head, runner }));
    return await layOut(office, source, journal, selection, deadline);
  } catch (error) {
    if (error instanceof TakenOver) return (await loadPlan(office, id)).head;
    if (isMistake(error)) {
      // Nobody goes on with it: what the plan waits for is told where it is looked at.
      await journal.commit((head) => ({ ...head, stateReason: `a mistake of the program: ${mistakeText(error)}` }));
    }
    throw error;
  }
}

async function layOut(
  office: Office,
  source: Source,
  journal: Journal,
  selection: Selection,
  deadline: number,
): Promise<PlanHead> {
  let batch = newBatch();
  const timeToLive = timeToLiveOf(journal.head.choices);
  const from = journal.head.cursor;
  const ids = await PlannedIds.open(office, source, journal.head);
  /** Among letters that are laid out already. */
  let isBehind = from !== undefined && ids.matter;
  const options = {
    pageSize: RECORDS_A_PAGE,
    onUnreadable: () => {
      if (!isBehind) batch.notes.push(countUnreadable);
    },
    // Where ids matter those of the letters before are needed, too: only the store has them, whoever laid these out.
    ...(from !== undefined && !ids.matter && { from }),
    ...(selection.seenTo !== undefined && { seenUntil: selection.seenTo }),
  };
  const holds = await activeHolds(office, source.key, journal.head.choices);
  const cameBack = await causesThatCameBack(office, source.key);
  const { letters } = office.store;
  // Letters that are named are looked up one by one: that does not grow with what else is there. Where a letter can be taken
  // depends on those before it, all have to be counted.
  const records =
    selection.sequenceNumber !== undefined && source.mode === 'defer'
      ? letters.openAmong(source.key, selection.sequenceNumber, options)
      : letters.open(source.key, options);
  const refuse = (record: LetterRecord) =>
    plannedRefusal(source, journal.head, record, office.clock(), holds, ids.lastSend(record.letter));
  for await (const record of records) {
    if (from !== undefined && compareSequenceNumbers(record.letter.sequenceNumber, from) < 0) {
      if (matches(shownRecord(source, record), selection) && refuse(record) === undefined) ids.add(record.letter);
      continue;
    }
    isBehind = false;
    if (office.clock() >= deadline) {
      await flush(journal, batch, record.letter.sequenceNumber);
      return journal.head;
    }
    batch.looked++;
    const isReached = source.mode === 'defer' || journal.head.looked + batch.looked <= office.reach;
    const shown = shownRecord(source, record);
    if (!matches(shown, selection)) continue;
    const { letter } = record;
    const { action, choices, facts } = journal.head;
    const maybeDuplicate = action === 'replay' && record.maybeSentBy !== undefined;
    if (isFull(batch, facts, letter.bytes, maybeDuplicate)) {
      await flush(journal, batch, letter.sequenceNumber);
      batch = newBatch();
    }
    if (letter.deadLetterSource !== undefined) batch.notes.push((findings) => tellOrigin(findings, shown.letter));
    const refused = isReached ? refuse(record) : 'out-of-reach';
    const isRepeated = refused === undefined && ids.add(letter) === 'repeated';
    if (isRepeated) batch.notes.push((findings) => countRepeated(findings, choices));
    const reason = isRepeated && !mayRename(choices) ? 'duplicate-window' : refused;
    if (reason === undefined) {
      batch.maybeDuplicate = maybeDuplicate;
      batch.letters.push({ number: letter.sequenceNumber, identity: identityDigest(letter) });
      batch.bytes += letter.bytes + OVERHEAD;
      const now = office.clock();
      batch.tallies.push((tally) => countLetter(tally, shown, now));
      if (action === 'replay' && choices.target !== 'sandbox') {
        batch.notes.push((findings) => countMaybeSent(countExpiry(findings, facts, letter, timeToLive), record));
        if (cameBack.has(record.fingerprint)) {
          batch.notes.push((findings) => countCameBack(findings, record.fingerprint));
        }
      }
    } else {
      batch.exceptions.push({
        number: letter.sequenceNumber,
        fate: { kind: 'skipped', reason },
        maybeDuplicate: false,
      });
      batch.notes.push((findings) => {
        if (isRepeated) return [...findings]; // told already
        if (reason === 'out-of-reach') return countOutOfReach(findings, office.reach);
        return reason === 'on-hold'
          ? countOnHold(findings, holds.of(record) ?? record.fingerprint)
          : countSkip(findings, reason);
      });
    }
  }
  // In one write: whoever goes on with a plan whose last letters are laid out would lay them out once more.
  await flush(journal, batch, undefined, ready);
  return journal.head;
}

/** The message ids of the letters that a plan has taken so far, where the target may drop the second of two. */
class PlannedIds {
  readonly matter: boolean;
  readonly #sent: ReadonlyMap<IdDigest, number>;
  readonly #taken = new Set<IdDigest>();

  private constructor(matter: boolean, sent: ReadonlyMap<IdDigest, number>) {
    this.matter = matter;
    this.#sent = sent;
  }

  static async open(office: Office, source: Source, head: PlanHead): Promise<PlannedIds> {
    const sends = new Sends(office, source, head);
    return new PlannedIds(sends.matter, await sends.recent());
  }

  /** When its id was last sent to the target, ms since 1970; 0 where nothing is known of it. */
  lastSend({ messageId }: Letter): number {
    return (this.matter && messageId !== undefined && this.#sent.get(idDigest(messageId))) || 0;
  }

  /** Adds a letter that is to be sent. */
  add({ messageId }: Letter): 'first' | 'repeated' {
    if (!this.matter || messageId === undefined) return 'first';
    const id = idDigest(messageId);
    if (this.#taken.has(id)) return 'repeated';
    this.#taken.add(id);
    return 'first';
  }
}

interface Batch {
  readonly letters: ChunkLetter[];
  readonly exceptions: Exception[];
  readonly notes: ((findings: readonly Finding[]) => Finding[])[];
  readonly tallies: ((tally: PlanTally) => PlanTally)[];
  bytes: number;
  /** Records looked at since the last write. */
  looked: number;
  /** Its letters may have been sent by an earlier run. */
  maybeDuplicate: boolean;
}

function newBatch(): Batch {
  return { letters: [], exceptions: [], notes: [], tallies: [], bytes: 0, looked: 0, maybeDuplicate: false };
}

function isFull(batch: Batch, facts: Facts, bytes: number, maybeDuplicate: boolean): boolean {
  // The mark belongs to a chunk as a whole.
  if (batch.letters.length > 0 && batch.maybeDuplicate !== maybeDuplicate) return true;
  return (
    batch.letters.length >= (needsSingles(facts) ? 1 : MAX_CHUNK) ||
    batch.exceptions.length >= MAX_JOURNAL_ROWS - 1 ||
    (batch.letters.length > 0 && batch.bytes + bytes + OVERHEAD > Math.min(facts.maxMessageBytes, MAX_BATCH_BYTES))
  );
}

async function flush(
  journal: Journal,
  batch: Batch,
  cursor: SequenceNumber | undefined,
  end: (head: PlanHead) => PlanHead = (head) => head,
): Promise<void> {
  const chunk: Chunk | undefined =
    batch.letters.length === 0
      ? undefined
      : {
          key: `chunk:${String(journal.head.chunks + 1).padStart(6, '0')}`,
          state: 'planned',
          letters: batch.letters,
          maybeDuplicate: batch.maybeDuplicate,
          sends: 0,
          waitingSince: undefined,
          audit: '',
        };
  await journal.commit(
    (head) =>
      end({
        ...head,
        cursor: cursor ?? head.cursor,
        looked: head.looked + batch.looked,
        chunks: head.chunks + (chunk === undefined ? 0 : 1),
        findings: batch.notes.reduce<readonly Finding[]>((findings, note) => note(findings), head.findings),
        tally: batch.tallies.reduce((tally, count) => count(tally), head.tally),
        counts: {
          ...head.counts,
          planned: head.counts.planned + batch.letters.length + batch.exceptions.length,
          pending: head.counts.pending + batch.letters.length,
          skipped: head.counts.skipped + batch.exceptions.length,
        },
      }),
    { ...(chunk && { chunks: [chunk] }), exceptions: batch.exceptions },
  );
}

function ready(head: PlanHead): PlanHead {
  const nothing: Finding = {
    code: 'nothing-to-send',
    level: 'block',
    letters: 0,
    message: 'no letter fits the selection and may be sent; see the other findings',
  };
  return {
    ...head,
    state: 'ready',
    runner: '',
    findings: head.counts.pending === 0 ? [...head.findings, nothing] : head.findings,
  };
}

/** The source of a plan. Throws `DLO_SOURCE_UNKNOWN` when it has left the catalog. */
export function sourceOf(office: Office, head: PlanHead): Source {
  const source = office.catalog.sources.find(({ key }) => key === head.source);
  if (source !== undefined) return source;
  throw new OfficeError(
    'DLO_SOURCE_UNKNOWN',
    `the source "${head.sourceName}" of this plan is not in the catalog any more`,
  );
}
