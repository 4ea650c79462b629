/** What people say of a cause: values and the words for them. No input or output here. */
import { z } from 'zod';
import type { Fingerprint } from '../classify/fingerprint.ts';

/** What an operator can set. */
export const TRIAGE_STATES = ['open', 'on-hold', 'resolved'] as const;
export type TriageState = (typeof TRIAGE_STATES)[number];

/** What is shown: a resolved cause that struck again is `regressed`. */
export const SHOWN_STATES = [...TRIAGE_STATES, 'regressed'] as const;
export type ShownState = (typeof SHOWN_STATES)[number];

/** What has been said of a cause, over all sources. Times are ms since 1970; empty texts are none. */
export interface Triage {
  readonly fingerprint: Fingerprint;
  /** The cause in words, for when no letter of it is left. */
  readonly cause: string;
  readonly state: TriageState;
  readonly owner: string;
  readonly note: string;
  readonly bug: string;
  readonly changedAt: number;
  readonly changedBy: string;
  /** When it was resolved, while it is. */
  readonly resolvedAt: number | undefined;
  /** When the first letter after that was seen. */
  readonly regressedAt: number | undefined;
}

/** One line, printable. */
const line = (max: number) =>
  z
    .string()
    .max(max)
    .regex(/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u, 'must be one line of printable characters');

/** A change of triage at the door: what is not given stays, `null` takes it away. */
export const triageSchema = z
  .strictObject({
    state: z.enum(TRIAGE_STATES).optional(),
    owner: line(100).nullable().optional(),
    note: z.string().max(2000).nullable().optional(),
    /** Where the bug is tracked: a http or https address. */
    bug: z
      .url({ protocol: /^https?$/, error: 'must be a http or https URL' })
      .max(1000)
      .regex(/^[^\s<>"]*$/, 'must be a URL without blanks, quotes and angle brackets')
      .nullable()
      .optional(),
  })
  .refine((change) => Object.values(change).some((value) => value !== undefined), {
    error: 'must change something: state, owner, note or bug',
  });
export type TriageChange = z.infer<typeof triageSchema>;

/** Triage after a change. Resolving again, or leaving `resolved`, ends a regression. */
export function changed(
  before: Triage | undefined,
  change: TriageChange,
  by: { readonly fingerprint: Fingerprint; readonly cause: string; readonly at: number; readonly operator: string },
): Triage {
  const state = change.state ?? before?.state ?? 'open';
  const isResolvedAnew = change.state === 'resolved' || before?.state !== 'resolved';
  const text = (name: 'owner' | 'note' | 'bug') =>
    change[name] === undefined ? (before?.[name] ?? '') : (change[name] ?? '').trim();
  return {
    fingerprint: by.fingerprint,
    cause: by.cause,
    state,
    owner: text('owner'),
    note: text('note'),
    bug: text('bug'),
    changedAt: by.at,
    changedBy: by.operator,
    resolvedAt: state !== 'resolved' ? undefined : isResolvedAnew ? by.at : before?.resolvedAt,
    regressedAt: state !== 'resolved' || isResolvedAnew ? undefined : before?.regressedAt,
  };
}

/**
 * What is shown, and since when a cause is back. `lastSeen` is the newest letter of it: should the moment itself not have been
 * noted, it still tells that there is one.
 */
export function shownState(
  triage: Triage | undefined,
  lastSeen: number | undefined,
): { readonly state: ShownState; readonly regressedSince: number | undefined } {
  if (triage?.state !== 'resolved') return { state: triage?.state ?? 'open', regressedSince: undefined };
  const isLater = lastSeen !== undefined && triage.resolvedAt !== undefined && lastSeen > triage.resolvedAt;
  const regressedSince = triage.regressedAt ?? (isLater ? lastSeen : undefined);
  return { state: regressedSince === undefined ? 'resolved' : 'regressed', regressedSince };
}

/** A cause as triage is looked for: by its fingerprint, and by those that an earlier version of the rules gave to letters of it. */
export interface Named {
  readonly fingerprint: Fingerprint;
  readonly formerly: readonly Fingerprint[];
}

/**
 * What counts for a cause: what was said of it, else what was said of it when an earlier version called it otherwise. Where that was
 * several causes, a hold goes before all else, then what was said last.
 */
export function triageOf(said: ReadonlyMap<Fingerprint, Triage>, { fingerprint, formerly }: Named): Triage | undefined {
  const own = said.get(fingerprint);
  if (own !== undefined) return own;
  const before = formerly.flatMap((one) => said.get(one) ?? []).sort((a, b) => b.changedAt - a.changedAt);
  return before.find(({ state }) => state === 'on-hold') ?? before[0];
}

/** A change in words, for the audit. No note: it may be long, and it is in the group. */
export function changeText(before: Triage | undefined, after: Triage): string {
  const parts = [`${after.state} (was ${before?.state ?? 'open'})`];
  for (const name of ['owner', 'bug'] as const) {
    if (after[name] !== (before?.[name] ?? '')) parts.push(`${name}: ${after[name] || 'none'}`);
  }
  if (after.note !== (before?.note ?? '')) parts.push(after.note === '' ? 'note removed' : 'note changed');
  return parts.join('; ');
}
