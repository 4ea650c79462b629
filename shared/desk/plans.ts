/** Looking at plans. */
import { isOfficeError, OfficeError } from '../errors.ts';
import { type PlanId, parseSequenceNumber, type SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { inParallel } from '../parallel.ts';
import { expireIfOld } from '../plan/control.ts';
import { loadPlan } from '../plan/journal.ts';
import type { PlanHead, PlanState } from '../records/plan.ts';
import { iso } from '../timeText.ts';
import { asOf } from '../watch/freshness.ts';
import { chunkLetters, exceptionView } from './fates.ts';

/** Heads read at the same time: each is a row of a partition of its own. */
const HEADS_AT_ONCE = 16;

async function* inGroups<Item>(items: AsyncIterable<Item>, size: number): AsyncGenerator<Item[]> {
  let group: Item[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}

/** Keys of all sources that may have plans, also of those that left the catalog. */
export async function allKeys(office: Office): Promise<SourceKey[]> {
  const rows = await office.store.sources.all();
  return [...new Set([...office.catalog.sources, ...rows].map(({ key }) => key))];
}

/** Plans of `sources`, newest first, and the ids of those on the way that cannot be read. */
export async function listPlans(
  office: Office,
  sources: readonly SourceKey[],
  state: PlanState | undefined,
  top: number,
): Promise<{ heads: PlanHead[]; unreadable: PlanId[] }> {
  const heads: PlanHead[] = [];
  const unreadable: PlanId[] = [];
  for (const source of sources) {
    let found = 0;
    for await (const ids of inGroups(office.store.sources.plans(source), HEADS_AT_ONCE)) {
      const read = await inParallel(ids, (id) => currentHead(office, id, () => unreadable.push(id)));
      const fitting = read.flatMap((head) => (head && (state === undefined || head.state === state) ? [head] : []));
      heads.push(...fitting);
      found += fitting.length;
      if (found >= top) break;
    }
  }
  return { heads: heads.sort((a, b) => b.createdAt - a.createdAt).slice(0, top), unreadable };
}

async function currentHead(office: Office, id: PlanId, onUnreadable: () => void): Promise<PlanHead | undefined> {
  try {
    const stored = await office.store.plans.head(id);
    return stored && (await expireIfOld(office, stored)).head;
  } catch (error) {
    if (!isOfficeError(error, 'DLO_RECORD_UNREADABLE')) throw error;
    onUnreadable();
    return undefined;
  }
}

/** One plan, and how many of its letters had come back by the last pass over its source. Throws `DLO_PLAN_UNKNOWN`. */
export async function getPlan(
  office: Office,
  id: PlanId,
): Promise<{ head: PlanHead; returned: number; asOf: number | undefined }> {
  const { head } = await expireIfOld(office, await loadPlan(office, id));
  const at = await asOf(office, [{ key: head.source }]);
  return { head, returned: await office.store.plans.countReturned(id), asOf: at };
}

/** A page of a plan's letters. */
export interface PlanLetters {
  readonly letters: readonly {
    readonly sequenceNumber: string;
    readonly fate: string;
    readonly reason: string | null;
    readonly maybeDuplicate: boolean;
    /** Numbers under which it is dead again. */
    readonly returnedAs: readonly {
      readonly sequenceNumber: string;
      readonly reason: string;
      readonly at: string | null;
    }[];
  }[];
  readonly continuation: string | null;
  /** Keys of rows on the way that cannot be read: nobody knows what became of the letters in them. */
  readonly unreadable: readonly string[];
}

/**
 * Letters of a plan with their fates: chunk by chunk, then those with a fate of their own. A page ends with a whole chunk
 * and so may have up to 99 letters more than `top`. Throws `DLO_PLAN_UNKNOWN`.
 */
export async function planLetters(
  office: Office,
  id: PlanId,
  top: number,
  continuation: string | undefined,
): Promise<PlanLetters> {
  const { head } = await expireIfOld(office, await loadPlan(office, id));
  const start = startOf(continuation);
  const lines: Omit<PlanLetters['letters'][number], 'returnedAs'>[] = [];
  const unreadable: string[] = [];
  const onUnreadable = (key: string) => unreadable.push(key);
  let next: string | null = null;
  if (start.kind === 'chunk') {
    const options = { onUnreadable, ...(start.after !== '' && { after: start.after }) };
    for await (const chunk of office.store.plans.chunks(id, options)) {
      if (lines.length >= top) break;
      lines.push(...chunkLetters(head, chunk));
      next = `c${chunk.key}`;
    }
  }
  if (lines.length < top) {
    const from = start.kind === 'exception' ? start.from : undefined;
    next = null;
    for await (const exception of office.store.plans.exceptions(id, { from, onUnreadable })) {
      if (lines.length >= top) {
        next = `e${exception.number}`;
        break;
      }
      lines.push(exceptionView(exception));
    }
  }
  const returned = await returnedByOrigin(office, id);
  const letters = lines.map((line) => ({ ...line, returnedAs: returned.get(line.sequenceNumber) ?? [] }));
  return { letters, continuation: next, unreadable };
}

function startOf(continuation: string | undefined) {
  if (continuation === undefined) return { kind: 'chunk', after: '' } as const;
  if (/^cchunk:[\x21-\x7e]+$/.test(continuation)) return { kind: 'chunk', after: continuation.slice(1) } as const;
  const from = continuation.startsWith('e') ? parseSequenceNumber(continuation.slice(1)) : undefined;
  if (from !== undefined) return { kind: 'exception', from } as const;
  throw new OfficeError('DLO_BAD_REQUEST', 'query.continuation: is not one that a list has returned');
}

async function returnedByOrigin(office: Office, id: PlanId) {
  const byOrigin = new Map<string, { sequenceNumber: string; reason: string; at: string | null }[]>();
  for await (const { of, number, reason, at } of office.store.plans.returned(id)) {
    if (of === undefined) continue;
    byOrigin.set(of, [...(byOrigin.get(of) ?? []), { sequenceNumber: number, reason, at: iso(at) }]);
  }
  return byOrigin;
}
