/** What operators do with plans: start, pause, resume, cancel, stop; and what keeps runs going without them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import type { Source } from '../catalog.ts';
import { errorText, isOfficeError, OfficeError } from '../errors.ts';
import { type PlanId, parsePlanId } from '../letter.ts';
import type { Office } from '../office.ts';
import { type Action, CLOSED_STATES, type Finding, isBlocked, type PlanHead, type PlanState } from '../records/plan.ts';
import { beginProgress, paceOf, type paceSchema } from '../records/ramp.ts';
import { type Selection, selectionSchema } from '../selection.ts';
import type { VersionedHead } from '../store/plans.ts';
import type { Lease } from '../store/sources.ts';
import { StoreConflict } from '../store/table.ts';
import { tellRun } from '../telemetry/tell.ts';
import { refuseUnended } from './conflict.ts';
import { abandonment } from './ending.ts';
import { heldSince } from './holds.ts';
import { loadPlan, newWriteId, unknownPlan } from './journal.ts';
import { targetFindings } from './preflight.ts';
import { continuePreparing, lookAtTarget, sourceOf } from './prepare.ts';
import { freeFrom, repairSources } from './repair.ts';
import { runSlice } from './run.ts';

/** A slice in the background may last this long, ms; the host ends a function after ten minutes. */
const BACKGROUND_SLICE = 240_000;

/**
 * Starts a plan that is ready. `confirm` must repeat the number of letters it will act on. The continuation is stored
 * before anything is sent. Runs until `deadline` if that lies ahead; returns the head as it is then.
 * Throws `DLO_PLAN_STATE`, `DLO_PLAN_BLOCKED`, `DLO_PLAN_EXPIRED`, `DLO_WRONG_ACTION`, `DLO_CONFIRM_MISMATCH`, `DLO_SOURCE_BUSY`,
 * `DLO_LETTERS_UNENDED`.
 */
export async function startPlan(
  office: Office,
  id: PlanId,
  request: { action: Action; confirm: number; pace: z.infer<typeof paceSchema> },
  operator: string,
  deadline: number,
): Promise<PlanHead> {
  const found = await expireIfOld(office, await loadPlan(office, id));
  const { head } = found;
  refuseOther(request.action, head);
  if (head.state === 'expired') throw new OfficeError('DLO_PLAN_EXPIRED', `plan ${id} was made more than 24 hours ago`);
  if (head.state !== 'ready') throw wrongState(head, 'ready');
  if (isBlocked(head.findings)) {
    throw blocked(id, head.findings);
  }
  if (request.confirm !== head.counts.pending) {
    throw new OfficeError(
      'DLO_CONFIRM_MISMATCH',
      `the plan has ${head.counts.pending} letters, not ${request.confirm}`,
      {
        data: { letters: head.counts.pending },
      },
    );
  }
  const pace = paceOf(
    sourceOf(office, head),
    request.pace,
    head.action === 'replay' && head.choices.target !== 'sandbox',
  );
  return begin(office, { ...found, head: { ...head, pace } }, operator, 'plan.run', deadline);
}

/** Callers have a right an action: what needs that of the plan's own is refused to the other. */
function refuseOther(action: Action, head: PlanHead): void {
  if (head.action === action) return;
  throw new OfficeError('DLO_WRONG_ACTION', `plan ${head.id} is a ${head.action} plan`, {
    data: { planAction: head.action },
  });
}

/**
 * Goes on with a paused or halted plan of that action. One that is running goes on at once, too, should nobody be working on it.
 * Throws `DLO_WRONG_ACTION`, `DLO_PLAN_STATE`, `DLO_PLAN_BLOCKED`, `DLO_SOURCE_BUSY`, `DLO_LETTERS_UNENDED`.
 */
export async function resumePlan(
  office: Office,
  id: PlanId,
  request: { action: Action; seen: boolean },
  operator: string,
  deadline: number,
): Promise<PlanHead> {
  const found = await expireIfOld(office, await loadPlan(office, id));
  refuseOther(request.action, found.head);
  if (found.head.state === 'running' || found.head.state === 'observing') {
    await goOnAtOnce(office, found.head, deadline);
    return (await loadPlan(office, id)).head;
  }
  if (found.head.state !== 'paused' && found.head.state !== 'halted') throw wrongState(found.head, 'paused or halted');
  const head = { ...found.head, seen: found.head.seen || request.seen };
  return begin(office, { ...found, head }, operator, 'plan.resume', deadline);
}

/** A run whose process died would wait for the watchdog, and for the lease of the dead to end: it goes on as soon as it may. */
async function goOnAtOnce(office: Office, { id, source }: PlanHead, deadline: number): Promise<void> {
  const end = await runSlice(office, id, deadline);
  if (end.kind === 'more') await office.store.runs.enqueue(id, 0);
  if (end.kind === 'later') await office.store.runs.enqueue(id, end.delayMs);
  if (end.kind !== 'held') return;
  const row = await office.store.sources.get(source);
  await office.store.runs.enqueue(id, Math.max(0, (row?.leaseUntil ?? 0) - office.clock()));
}

async function begin(
  office: Office,
  { head, etag }: VersionedHead,
  operator: string,
  operation: 'plan.run' | 'plan.resume',
  deadline: number,
): Promise<PlanHead> {
  const source = sourceOf(office, head);
  const now = office.clock();
  // What was true when the plan was made or paused need not be true any more.
  const { facts, findings } = await lookAtTarget(office, source, head.action, head.choices, head.target);
  findings.push(...targetFindings(source, head), ...(await heldSince(office, head)));
  if (isBlocked(findings)) throw blocked(head.id, findings);
  const where = { key: source.key, name: source.name };
  const audit = await office.store.audit.open({ at: now, operator, operation, source: where, planId: head.id });
  let lease: Lease;
  try {
    // Occupies the source for this plan; from here on no other run or cleanup can begin.
    lease = await occupy(office, source, head.id);
    try {
      await refuseUnended(office, head);
    } catch (error) {
      await office.store.sources.release(lease, true);
      throw error;
    }
    try {
      const returned = await office.store.plans.countReturned(head.id);
      const running: PlanHead = {
        ...head,
        facts,
        progress: beginProgress(head.counts.done, returned, now),
        state: 'running',
        stateReason: '',
        request: 'none',
        startedAt: head.startedAt ?? now,
        startedBy: operator,
      };
      await commitStart(office, running, etag);
    } catch (error) {
      // What failed in any other way may have been written: then the watchdog goes on with the run, or frees the source.
      await office.store.sources.release(lease, isOfficeError(error, 'DLO_CONTENDED'));
      throw error;
    }
    await office.store.runs.enqueue(head.id, deadline > now ? deadline - now + office.leaseMs : 0);
    if (deadline <= now) await office.store.sources.release(lease, false);
  } catch (error) {
    await office.store.audit.close(audit, `refused: ${errorText(error, 200)}`, office.clock());
    throw error;
  }
  await office.store.audit.close(audit, 'started', office.clock());
  if (deadline > now) await continueRun(office, head.id, deadline, lease);
  return (await loadPlan(office, head.id)).head;
}

/** A run that has ended gives its source back at once; so often it is waited for, ms between two looks. */
const FAREWELLS = 40;
const FAREWELL_PAUSE = 50;

/**
 * Takes the source for a plan. A run whose end is written but that has not let go yet is waited for: who has seen it end
 * may start the next. Throws `DLO_SOURCE_BUSY` when anything else has the source.
 */
async function occupy(office: Office, source: Source, id: PlanId): Promise<Lease> {
  for (let look = 1; ; look++) {
    try {
      return await office.store.sources.acquire(source.key, id, office.clock(), office.leaseMs);
    } catch (error) {
      const isLeaving = isOfficeError(error, 'DLO_SOURCE_BUSY') && (await hasEnded(office, error.data.holder));
      if (!isLeaving || look >= FAREWELLS) throw error;
      await delay(FAREWELL_PAUSE);
    }
  }
}

async function hasEnded(office: Office, holder: unknown): Promise<boolean> {
  const id = typeof holder === 'string' ? parsePlanId(holder) : undefined;
  const state = id && (await office.store.plans.head(id))?.head.state;
  return state !== undefined && state !== 'running' && state !== 'observing';
}

/** Throws `DLO_CONTENDED` when somebody else has changed the plan, and only then. */
async function commitStart(office: Office, running: PlanHead, etag: string): Promise<void> {
  const writeId = newWriteId(office);
  try {
    await office.store.plans.commit(running, etag, writeId);
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error;
    // It was written, only the answer was lost.
    if ((await loadPlan(office, running.id)).writeId !== writeId) throw contended(running.id);
  }
}

/**
 * Asks a run to pause after the chunk in flight, whatever its action: it takes nothing from anybody, and who may stop one kind
 * of run in an emergency may stop the other. Pausing what is paused does nothing. Throws `DLO_PLAN_STATE`.
 */
export async function pausePlan(office: Office, id: PlanId, operator: string): Promise<PlanHead> {
  return ask(office, id, 'pause', operator, ['running', 'observing'], ['paused', 'halted']);
}

/**
 * Cancels a plan of that action: letters not sent yet stay where they are. Cancelling what is cancelled does nothing. One that never
 * ran is also its planner's to take back, and planning needs the same right for both actions. Throws `DLO_WRONG_ACTION`, `DLO_PLAN_STATE`.
 */
export async function cancelPlan(office: Office, id: PlanId, action: Action, operator: string): Promise<PlanHead> {
  const found = await office.store.plans.salvage(id);
  if (found === undefined) throw unknownPlan(id);
  const isKnown = !found.unreadable.includes('action');
  if (isKnown && found.head.startedAt !== undefined) refuseOther(action, found.head);
  const isSpoilt = found.unreadable.length > 0;
  if (isSpoilt || IDLE_STATES.includes(found.head.state)) {
    const spoilt = isSpoilt ? `; its row could not be read: ${found.unreadable.join(', ')}` : '';
    const head = await cancelIdle(office, found, operator, `cancelled by an operator${spoilt}`);
    // One that nobody could run may have been left with its source.
    if (isSpoilt) await office.store.sources.vacate(head.source, id, office.clock());
    return head;
  }
  return ask(office, id, 'cancel', operator, ['running', 'observing'], ['cancelled']);
}

async function ask(
  office: Office,
  id: PlanId,
  request: 'pause' | 'cancel',
  operator: string,
  from: readonly PlanState[],
  already: readonly PlanState[],
): Promise<PlanHead> {
  for (;;) {
    const { head, etag } = await loadPlan(office, id);
    if (already.includes(head.state)) return head;
    if (!from.includes(head.state)) throw wrongState(head, from.join(' or '));
    if (head.request === request || head.request === 'cancel') break;
    try {
      await office.store.plans.commit({ ...head, request }, etag, newWriteId(office));
    } catch (error) {
      if (error instanceof StoreConflict) continue; // the run moved on meanwhile: look again
      throw error;
    }
    const where = { key: head.source, name: head.sourceName };
    const operation = request === 'pause' ? 'plan.pause' : 'plan.cancel';
    await office.store.audit.note({ at: office.clock(), operator, operation, source: where, planId: id }, 'requested');
    break;
  }
  // Between two slices nobody would see the request before the next one is due.
  await continueRun(office, id, office.clock());
  return (await loadPlan(office, id)).head;
}

async function cancelIdle(
  office: Office,
  { head, etag }: VersionedHead,
  operator: string,
  reason: string,
): Promise<PlanHead> {
  const cancelled: PlanHead = { ...(await abandonedPlan(office, head, reason)), state: 'cancelled', request: 'none' };
  const where = { key: head.source, name: head.sourceName };
  const at = office.clock();
  const audit = await office.store.audit.open({
    at,
    operator,
    operation: 'plan.cancel',
    source: where,
    planId: head.id,
  });
  try {
    await office.store.plans.commit(cancelled, etag, newWriteId(office));
  } catch (error) {
    await office.store.audit.close(audit, 'refused: contended', office.clock());
    throw error instanceof StoreConflict ? contended(head.id) : error;
  }
  await tellRun(office, cancelled);
  await office.store.audit.close(audit, 'cancelled', office.clock());
  return cancelled;
}

/** Pauses every run. Returns the plans that were running, and those that could not be asked. */
export async function stopAll(
  office: Office,
  operator: string,
): Promise<{ stopped: PlanHead[]; failed: { planId: PlanId; error: string }[] }> {
  const audit = await office.store.audit.open({ at: office.clock(), operator, operation: 'stop' });
  const stopped: PlanHead[] = [];
  const failed: { planId: PlanId; error: string }[] = [];
  await repairSources(office);
  for (const { occupant } of await office.store.sources.all()) {
    const planId = occupant === undefined ? undefined : parsePlanId(occupant);
    if (planId === undefined) continue;
    try {
      stopped.push(await pausePlan(office, planId, operator));
    } catch (error) {
      if (isOfficeError(error, 'DLO_PLAN_STATE', 'DLO_PLAN_UNKNOWN')) continue; // it ended by itself
      failed.push({ planId, error: errorText(error, 300) }); // and on: in an emergency every run that can be stopped is
    }
  }
  const outcome = `${stopped.length} runs asked to pause${failed.length > 0 ? `, ${failed.length} failed` : ''}`;
  await office.store.audit.close(audit, outcome, office.clock());
  return { stopped, failed };
}

/** What the queue asks for: goes on with a plan, whatever it needs next. Quiet when there is nothing to do. */
export async function continuePlan(office: Office, id: PlanId): Promise<void> {
  const found = await office.store.plans.head(id);
  if (found === undefined) return;
  const deadline = office.clock() + BACKGROUND_SLICE;
  if (found.head.state === 'preparing') {
    await prepareOn(office, found.head, deadline);
  } else {
    await continueRun(office, id, deadline);
  }
}

/** The watchdog looks after runs only: a plan that is still being prepared asks for its own continuation. */
async function prepareOn(office: Office, head: PlanHead, deadline: number): Promise<void> {
  try {
    if (!office.catalog.sources.some(({ key }) => key === head.source)) {
      await giveUpPreparing(office, head);
      return;
    }
    const prepared = await continuePreparing(office, sourceOf(office, head), head.id, readSelection(head), deadline);
    if (prepared.state === 'preparing') await office.store.runs.enqueue(head.id, 0);
  } catch (error) {
    if (isOfficeError(error, 'DLO_STORE_UNAVAILABLE')) await office.store.runs.enqueue(head.id, office.retryMs);
    throw error;
  }
}

/** A plan whose source left the catalog before it was ready. */
async function giveUpPreparing(office: Office, { id }: PlanHead): Promise<void> {
  const { head, etag } = await loadPlan(office, id);
  if (head.state !== 'preparing') return;
  const abandoned = await abandonedPlan(office, head, 'its source left the catalog');
  try {
    await office.store.plans.commit({ ...abandoned, state: 'cancelled' }, etag, newWriteId(office));
  } catch (error) {
    if (!(error instanceof StoreConflict)) throw error; // somebody ended it meanwhile
  }
}

async function continueRun(office: Office, id: PlanId, deadline: number, held?: Lease): Promise<void> {
  const end = await runSlice(office, id, deadline, held);
  if (end.kind === 'more') await office.store.runs.enqueue(id, 0);
  if (end.kind === 'later') await office.store.runs.enqueue(id, end.delayMs);
}

/** The watchdog: enqueues every run that nobody is working on (its process died, or its queue message was lost). */
export async function watchRuns(office: Office): Promise<void> {
  await repairSources(office);
  for (const { key, occupant, leaseUntil } of await office.store.sources.all()) {
    const id = occupant === undefined ? undefined : parsePlanId(occupant);
    if (id === undefined || leaseUntil > office.clock()) continue;
    try {
      if ((await office.store.plans.head(id)) === undefined) await office.store.sources.vacate(key, id, office.clock());
      else await office.store.runs.enqueue(id, 0);
    } catch (error) {
      try {
        if (!isOfficeError(error, 'DLO_RECORD_UNREADABLE')) throw error;
        await freeFrom(office, key, id);
      } catch (again) {
        office.log(`watch ${id}: failed, tried again next time: ${errorText(again)}`);
      }
    }
  }
}

/** States in which a plan holds nothing and waits for somebody. */
const IDLE_STATES: readonly PlanState[] = ['preparing', 'ready', 'paused', 'halted'];

async function abandonedPlan(office: Office, head: PlanHead, reason: string): Promise<PlanHead> {
  const abandon = await abandonment(office, head, reason);
  return { ...abandon(head), runner: '', finishedAt: office.clock() };
}

/** Marks a plan that waited too long as expired, and tells its head as it is now. */
export async function expireIfOld(office: Office, found: VersionedHead): Promise<VersionedHead> {
  const { head, etag } = found;
  if (!IDLE_STATES.includes(head.state) || office.clock() < head.expiresAt) return found;
  const reason = head.startedAt === undefined ? 'not run within 24 hours' : 'not resumed within 7 days';
  const expired: PlanHead = { ...(await abandonedPlan(office, head, reason)), state: 'expired' };
  try {
    const writeId = newWriteId(office);
    const version = await office.store.plans.commit(expired, etag, writeId);
    await tellRun(office, expired);
    return { head: expired, etag: version, writeId };
  } catch (error) {
    if (error instanceof StoreConflict) return loadPlan(office, head.id);
    throw error;
  }
}

/** Whether a plan has ended for good. */
export function isClosed(head: PlanHead): boolean {
  return CLOSED_STATES.includes(head.state);
}

function readSelection(head: PlanHead): Selection {
  return selectionSchema.parse(JSON.parse(head.selection));
}

function blocked(id: PlanId, all: readonly Finding[]): OfficeError {
  const findings = all.filter(({ level }) => level === 'block');
  const codes = findings.map(({ code }) => code).join(', ');
  return new OfficeError('DLO_PLAN_BLOCKED', `plan ${id} is blocked: ${codes}`, { data: { findings } });
}

function wrongState(head: PlanHead, wanted: string): OfficeError {
  const data = { state: head.state, ...(head.stateReason && { reason: head.stateReason }) };
  return new OfficeError('DLO_PLAN_STATE', `plan ${head.id} is ${head.state}, not ${wanted}`, { data });
}

function contended(id: PlanId): OfficeError {
  return new OfficeError('DLO_CONTENDED', `plan ${id} was changed by somebody else at the same time`);
}
