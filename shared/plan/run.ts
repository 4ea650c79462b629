/** Running a plan, slice by slice. A slice lasts minutes at most; what is left is done by the next, in any process. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ReplayTarget } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { errorText, isMistake, isOfficeError, mistakeText, OfficeError } from '../errors.ts';
import type { PlanId, SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';
import type { Chunk, PlanHead, PlanState } from '../records/plan.ts';
import { gate, nextStep, PATIENCE } from '../records/ramp.ts';
import type { Lease } from '../store/sources.ts';
import { tellRun } from '../telemetry/tell.ts';
import { collect, noteCounts } from '../watch/collect.ts';
import { workOn } from './chunk.ts';
import { abandonment, markUnclear } from './ending.ts';
import { heldSince } from './holds.ts';
import { Journal, loadPlan, newWriteId, TakenOver } from './journal.ts';
import { sourceOf } from './prepare.ts';
import { splitAt } from './rearrange.ts';
import { isActive } from './repair.ts';
import { hintOfReturned } from './sameDeath.ts';
import { Sends } from './sends.ts';
import { Upcoming } from './upcoming.ts';
import type { ChunkResult, Work } from './work.ts';

/** How a slice ended. */
export type SliceEnd =
  /** Nothing more to do: finished, paused, cancelled, or it was not running at all. */
  | { readonly kind: 'over' }
  /** Another process holds the lease; it goes on. */
  | { readonly kind: 'held' }
  /** The deadline came; go on at once. */
  | { readonly kind: 'more' }
  /** Go on later, ms. */
  | { readonly kind: 'later'; readonly delayMs: number };

/**
 * Runs a plan until `deadline` (ms since 1970), or only carries out what an operator has asked for. Holds the source's lease
 * meanwhile, or goes on with the one that the caller `held` for it. Throws `DLO_STORE_UNAVAILABLE` when not even the journal
 * can be read.
 */
export async function runSlice(office: Office, id: PlanId, deadline: number, held?: Lease): Promise<SliceEnd> {
  const lease = held ?? (await takeLease(office, id));
  if ('kind' in lease) return lease;
  let over = false;
  let slice: Slice | undefined;
  try {
    // Read after the lease was taken: what the last holder wrote is seen, and what it still tries to write is refused.
    const current = await loadPlan(office, id);
    if (!isActive(current.head)) {
      over = true;
      return { kind: 'over' };
    }
    const taken = { ...current.head, runner: lease.token };
    const writeId = newWriteId(office);
    const etag = await office.store.plans.commit(taken, current.etag, writeId);
    const begun = new Slice(office, new Journal(office, { head: taken, etag, writeId }), lease, deadline);
    slice = begun;
    const attributes = { source: taken.sourceName, planId: id, action: taken.action };
    const end = await office.telemetry.span('run', { attributes }, () => begun.run());
    over = end.kind === 'over';
    return end;
  } catch (error) {
    if (error instanceof TakenOver) return { kind: 'held' };
    if (slice !== undefined && isOfficeError(error, 'DLO_RECORD_UNREADABLE', 'DLO_SOURCE_UNKNOWN')) {
      // Trying again would find the same: somebody has to look at it.
      const end = await slice.giveUp('paused', error.message);
      over = true;
      return end;
    }
    if (slice !== undefined && isMistake(error)) {
      const end = await slice.fail(error);
      over = true;
      return end;
    }
    office.log(`run ${id}: interrupted, the journal goes on from here: ${errorText(error)}`);
    return { kind: 'later', delayMs: office.retryMs };
  } finally {
    await office.store.sources.release(lease, over).catch((error: unknown) => {
      office.log(`run ${id}: the lease was not given back and will expire: ${errorText(error)}`);
    });
  }
}

/** The lease on the source of a run that is under way, or how the slice ends without it. */
async function takeLease(office: Office, id: PlanId): Promise<Lease | SliceEnd> {
  const { head } = await loadPlan(office, id);
  if (!isActive(head)) {
    // Whoever ended it may have died before it gave the source back.
    await office.store.sources.vacate(head.source, id, office.clock());
    return { kind: 'over' };
  }
  try {
    return await office.store.sources.acquire(head.source, id, office.clock(), office.leaseMs);
  } catch (error) {
    if (isOfficeError(error, 'DLO_SOURCE_BUSY')) return { kind: 'held' };
    throw error;
  }
}

/** A paused or halted plan can be resumed this long, ms. */
const PAUSED_LIFETIME = 7 * 86_400_000;

/** Longest pause of a slice by itself, ms; a longer one is a queue message. */
const MAX_NAP = 1000;

class Slice {
  readonly #office: Office;
  readonly #journal: Journal;
  readonly #deadline: number;
  #lease: Lease;
  readonly #upcoming: Upcoming;
  /** Whether this slice has looked for groups on hold. */
  #holdsSeen = false;
  /** The chunk before this one, whose letters are in the target and are being completed. */
  #tail: { readonly chunk: Chunk; readonly result: Promise<ChunkResult> } | undefined;

  constructor(office: Office, journal: Journal, lease: Lease, deadline: number) {
    this.#office = office;
    this.#journal = journal;
    this.#lease = lease;
    this.#deadline = deadline;
    this.#upcoming = new Upcoming(office.store.plans, journal.head.id);
  }

  async run(): Promise<SliceEnd> {
    const { head } = this.#journal;
    const early = this.#endBefore(await this.#upcoming.first());
    if (early !== undefined) return early;
    const source = sourceOf(this.#office, head);
    const queue = await this.#office.broker.open(source);
    let target: ReplayTarget | undefined;
    const openTarget = async () => {
      target ??= await this.#office.broker.openTarget(source, head.target);
      return target;
    };
    const assertLeased = () => this.#assertLeased();
    try {
      const mayOverlap = () => this.#mayOverlap();
      const work = {
        office: this.#office,
        source,
        journal: this.#journal,
        queue,
        sends: new Sends(this.#office, source, head),
        refusedAlone: new Set<SequenceNumber>(),
        openTarget,
        assertLeased,
        mayOverlap,
      };
      return await this.#chunks(work);
    } catch (error) {
      // What was sent before has been completed: a chunk in that state comes first and needs no target.
      if (isOfficeError(error, 'DLO_TARGET_UNAVAILABLE')) return this.#finish('paused', error.message);
      throw error;
    } finally {
      await this.#tail?.result.catch(() => {}); // told already, or told by the journal
      await target?.close();
      await queue.close();
    }
  }

  async #chunks(work: Work): Promise<SliceEnd> {
    for (;;) {
      await this.#keepLease();
      const chunk = await this.#upcoming.first();
      const isPressing = chunk === undefined || chunk.state !== 'planned' || this.#journal.head.request !== 'none';
      const end =
        (isPressing ? await this.#joinTail() : undefined) ??
        (await this.#endBefore(chunk)) ??
        (await this.#advance(work, chunk as Chunk));
      if (end !== undefined) return end;
      if (this.#office.clock() >= this.#deadline) return (await this.#joinTail()) ?? { kind: 'more' };
    }
  }

  /** Ends the slice where an operator asked for it or nothing is left; needs no broker. */
  #endBefore(chunk: Chunk | undefined): Promise<SliceEnd> | undefined {
    const { request } = this.#journal.head;
    // What was sent is completed first, whatever was asked for: that letter must not be sent again by anyone.
    if (request !== 'none' && chunk?.state !== 'sent') return this.#obey(request);
    return chunk === undefined ? this.#finish('finished', '') : undefined;
  }

  /** Works on a chunk, if the ramp and the rate let it. What is in flight is finished first, whatever they say. */
  async #advance(work: Work, chunk: Chunk): Promise<SliceEnd | undefined> {
    let part = chunk;
    if (chunk.state === 'planned') {
      const passed = await this.#passGate(work.source);
      if (typeof passed !== 'number') return passed;
      if (passed === 0) return undefined;
      if (passed < chunk.letters.length) {
        part = await splitAt(work, chunk, passed);
        this.#upcoming.reread();
      }
    }
    const result = await workOn(work, part);
    const before = this.#tail;
    this.#tail = undefined;
    if (result.kind === 'sent') {
      // Begun whatever became of the chunk before: these letters are in the target, their copies must go.
      const finished = result.finish();
      finished.catch(() => {}); // it is looked at when it is joined
      this.#upcoming.pass(part.key);
      this.#tail = { chunk: part, result: finished };
    }
    const end = await this.#join(before);
    return end ?? (result.kind === 'sent' ? undefined : this.#after(part, result));
  }

  #joinTail(): Promise<SliceEnd | undefined> {
    const tail = this.#tail;
    this.#tail = undefined;
    return this.#join(tail);
  }

  /** Waits for the completion of a chunk, if there is one under way. */
  async #join(tail: { chunk: Chunk; result: Promise<ChunkResult> } | undefined): Promise<SliceEnd | undefined> {
    return tail && this.#after(tail.chunk, await tail.result);
  }

  /** Only at full speed: a ramp counts what is done, a rate too, and to a topic the first letter must be seen. */
  #mayOverlap(): boolean {
    const { pace, progress, choices, seen } = this.#journal.head;
    const isLastStep = pace.ramp === undefined || progress.step >= pace.ramp.steps.length;
    return isLastStep && pace.rate === 0 && (choices.target !== 'topic' || seen);
  }

  /** How many letters may be sent now; 0 when the next look has to decide anew. */
  async #passGate(source: Source): Promise<number | SliceEnd | undefined> {
    const { store, clock } = this.#office;
    const { pace, progress, counts, id, choices, seen } = this.#journal.head;
    const held = await this.#holdBack();
    if (held !== undefined) return held;
    // To a topic nothing more is sent before the first letter was seen in the subscription.
    if (choices.target === 'topic' && !seen && counts.done === 0) return 1;
    // The halt rule looks at the return alone: consumers that remember ids fail without a word.
    const returned = pace.ramp === undefined ? 0 : await store.plans.countReturned(id);
    const next = gate(pace, progress, counts.done, returned, clock());
    switch (next.kind) {
      case 'send':
        return next.max;
      case 'halt':
        return this.#finish('halted', next.why + (await hintOfReturned(this.#office, this.#journal.head)));
      case 'pace':
        if (next.delayMs > MAX_NAP) return { kind: 'later', delayMs: next.delayMs };
        await delay(next.delayMs);
        return 0;
      case 'observe':
        return this.#observe(source, next.over, returned);
    }
  }

  /** A group that was put on hold while the run was under way pauses it: looked at once a slice, so within minutes. */
  async #holdBack(): Promise<SliceEnd | undefined> {
    if (this.#holdsSeen) return undefined;
    this.#holdsSeen = true;
    const [finding] = await heldSince(this.#office, this.#journal.head);
    if (finding === undefined) return undefined;
    const why = `on-hold: ${finding.letters} of its letters belong to ${finding.groups?.join(', ') ?? 'a group on hold'}`;
    return (await this.#joinTail()) ?? this.#finish('paused', why);
  }

  /** Watches a step: what comes back is collected, and without a sign of a consumer the run does not go on. */
  async #observe(source: Source, over: boolean, returned: number): Promise<number | SliceEnd> {
    const { clock, retryMs } = this.#office;
    const { pace, progress, target, id, counts } = this.#journal.head;
    const observeMs = pace.ramp?.observeMs ?? 0;
    if (progress.observedFrom === 0) {
      await this.#journal.commit((head) => ({
        ...head,
        state: 'observing',
        stateReason: `watching step ${progress.step + 1}`,
        progress: { ...head.progress, observedFrom: clock() },
      }));
      return { kind: 'later', delayMs: Math.min(observeMs, retryMs) };
    }
    await collect(this.#office, source);
    if (!over) return { kind: 'later', delayMs: retryMs };
    // What was collected just now counts before the next step begins.
    if ((await this.#office.store.plans.countReturned(id)) !== returned) return 0;
    if ((await this.#office.broker.isWaiting(source, target, id)) === 'yes') {
      const waited = clock() - progress.observedFrom;
      if (waited < PATIENCE * observeMs) return { kind: 'later', delayMs: retryMs };
      return this.#finish('paused', 'no-evidence: nobody has consumed the letters of this step');
    }
    await this.#journal.commit((head) => ({
      ...head,
      state: 'running',
      stateReason: '',
      progress: nextStep(progress, counts.done, returned, clock()),
    }));
    return 0;
  }

  async #after(chunk: Chunk, result: ChunkResult): Promise<SliceEnd | undefined> {
    if (result.kind === 'again') this.#upcoming.reread();
    if (result.kind === 'next') this.#upcoming.pass(chunk.key);
    if (result.kind === 'again' || result.kind === 'next') return undefined;
    if (result.kind === 'sent') return this.#after(chunk, await result.finish());
    if (result.kind === 'refused') return this.#finish('paused', result.why);
    this.#office.log(`run ${this.#journal.head.id}: waits: ${result.why}`);
    const head = await this.#journal.refresh();
    if (head.request !== 'none') return { kind: 'later', delayMs: 1000 };
    await this.#journal.commit((now) => ({ ...now, stateReason: result.why }));
    return { kind: 'later', delayMs: this.#office.retryMs };
  }

  /** Carries out what an operator asked for. Letters not sent yet stay where they are. */
  async #obey(request: 'pause' | 'cancel'): Promise<SliceEnd> {
    if (request === 'pause') return this.#finish('paused', 'paused by an operator');
    const abandon = await abandonment(this.#office, this.#journal.head, 'cancelled by an operator');
    return this.#finish('cancelled', '', abandon);
  }

  /** Stops the run where it is: going on would meet the same again. */
  giveUp(state: 'paused' | 'halted', reason: string): Promise<SliceEnd> {
    return this.#finish(state, reason);
  }

  /** Halts for a mistake of the program, also where what is done before a run ends makes it again. */
  async fail(error: Error): Promise<SliceEnd> {
    const { log, clock } = this.#office;
    const { id } = this.#journal.head;
    const stateReason = `a mistake of the program: ${mistakeText(error)}`;
    log(`run ${id}: a mistake of the program: ${error.stack ?? mistakeText(error)}`);
    try {
      return await this.#finish('halted', stateReason);
    } catch (again) {
      if (!isMistake(again)) throw again;
      log(`run ${id}: halted without noting more: ${again.stack ?? mistakeText(again)}`);
      // Nobody sends its letters meanwhile: its chunks are looked at before another plan starts.
      const expiresAt = clock() + PAUSED_LIFETIME;
      await this.#journal.commit((head) => ({
        ...head,
        state: 'halted',
        stateReason,
        request: 'none',
        runner: '',
        expiresAt,
      }));
      return { kind: 'over' };
    }
  }

  async #finish(
    state: PlanState,
    reason: string,
    change: (head: PlanHead) => PlanHead = (head) => head,
  ): Promise<SliceEnd> {
    try {
      return await endRun(this.#office, this.#journal, state, reason, (head) => {
        // Seen here also when it came in while this was being written: a pause would swallow it.
        if (!isOver(state) && head.request === 'cancel') throw new CancelAsked();
        return change(head);
      });
    } catch (error) {
      if (error instanceof CancelAsked) return this.#obey('cancel');
      throw error;
    }
  }

  async #keepLease(): Promise<void> {
    const { clock, leaseMs, store } = this.#office;
    if (this.#lease.until - clock() > leaseMs / 2) return;
    this.#lease = await store.sources.renew(this.#lease, clock(), leaseMs);
  }

  #assertLeased(): void {
    if (this.#office.clock() < this.#lease.until) return;
    throw new OfficeError('DLO_SOURCE_BUSY', 'the lease on the source ended before the act');
  }
}

/** An operator wants the run to be cancelled that was about to pause. */
class CancelAsked extends Error {
  override readonly name = 'CancelAsked';
}

function isOver(state: PlanState): boolean {
  return state === 'finished' || state === 'cancelled';
}

/** Writes the end of a run, or its pause, and audits it. */
async function endRun(
  office: Office,
  journal: Journal,
  state: PlanState,
  reason: string,
  change: (head: PlanHead) => PlanHead = (head) => head,
): Promise<SliceEnd> {
  const over = isOver(state);
  // First: who sees that the run has ended sees what it has left.
  await noteCounts(office, journal.head.source);
  // And who plans over its letters is told which of them it may have sent.
  if (!over) await markUnclear(office, journal.head);
  await journal.commit((head) => ({
    ...change({ ...head, stateReason: reason }),
    state,
    request: 'none',
    runner: '',
    ...(over ? { finishedAt: office.clock() } : { expiresAt: office.clock() + PAUSED_LIFETIME }),
  }));
  await tellRun(office, journal.head);
  const { counts, id, source, sourceName, startedBy, stateReason } = journal.head;
  await office.store.audit.note(
    {
      at: office.clock(),
      operator: startedBy,
      operation: over ? 'plan.finish' : state === 'halted' ? 'plan.halt' : 'plan.pause',
      source: { key: source, name: sourceName },
      planId: id,
    },
    `${state}${stateReason && ` (${stateReason})`}: ${countsText(counts)}`,
  );
  return { kind: 'over' };
}

/** Counts in words, for audit and logs. */
export function countsText(counts: PlanHead['counts']): string {
  const { planned, done, skipped, failed, left, pending, maybeDuplicate } = counts;
  const open = pending > 0 ? `, ${pending} pending` : '';
  const doubled = maybeDuplicate > 0 ? `; ${maybeDuplicate} may be doubled` : '';
  return `${planned} planned = ${done} done, ${skipped} skipped, ${failed} failed, ${left} left${open}${doubled}`;
}
