/** The head line: what died, of how many causes, since when, and what may be done. Values in, one sentence out. */
import type { Advice } from '../classify/evidence.ts';
import type { Counted } from '../records/group.ts';
import type { ShownState } from '../records/triage.ts';

/** A cause with its open letters. Times are ms since 1970. */
export interface CauseLine {
  readonly cause: string;
  readonly count: number;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly advices: Counted<Advice>;
  /** Sources that have open letters of it. */
  readonly sources: readonly Place[];
  readonly state: ShownState;
  readonly regressedSince: number | undefined;
}

/** A source, as people call it. */
export interface Place {
  readonly name: string;
  readonly kind: 'queue' | 'subscription';
}

/** One cause with so many of all letters is the story, the rest are others. */
const MAIN_SHARE = 0.8;
/** Most causes told one by one where none is the story. */
const MAX_TOLD = 3;

/**
 * The sentence for the one who is woken up, times in UTC, with dates when they are not of the day of `now`:
 * `3,970 letters on four queues, one cause: "TimeoutException: …", between 02:10 and 02:31 UTC, safe to send back; 30 others will fail again.`
 * The order of `causes` does not matter.
 */
export function headLine(causes: readonly CauseLine[], now: number): string {
  const sorted = causes
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count || (a.cause < b.cause ? -1 : 1));
  const [main, ...others] = sorted;
  if (main === undefined) return 'No open letters.';
  const total = sum(sorted);
  if (main.count >= MAIN_SHARE * total) {
    const parts = [`${letters(main.count)} on ${places([main])}, one cause: ${causeText(main, now)}`];
    if (others.length > 0) parts.push(othersText(others));
    return `${parts.join('; ')}.`;
  }
  const told = sorted.slice(0, MAX_TOLD).map((cause) => `${grouped(cause.count)} of ${causeText(cause, now)}`);
  const rest = sorted.slice(MAX_TOLD);
  if (rest.length > 0) told.push(othersText(rest));
  return `${letters(total)} on ${places(sorted)}, ${inWords(sorted.length)} causes: ${told.join('; ')}.`;
}

function sum(causes: readonly { count: number }[]): number {
  return causes.reduce((all, { count }) => all + count, 0);
}

function causeText(line: CauseLine, now: number): string {
  const { cause, firstSeen, lastSeen, state, regressedSince } = line;
  const prospects = prospectsOf([line]);
  const [only] = prospects;
  const what =
    prospects.length === 1 && only !== undefined
      ? PROSPECTS[only[0]].of
      : prospects.map(([prospect, count]) => `${grouped(count)} ${PROSPECTS[prospect].of}`).join(', ');
  const back =
    state === 'regressed' && regressedSince !== undefined
      ? `, back since ${momentText(regressedSince, now)} after it was resolved`
      : '';
  return `"${cause}", ${spanText(firstSeen, lastSeen, now)}, ${what}${back}`;
}

function othersText(causes: readonly CauseLine[]): string {
  const count = sum(causes);
  const prospects = prospectsOf(causes);
  const who = `${grouped(count)} other${count === 1 ? '' : 's'}${causes.length > 1 ? ` of ${inWords(causes.length)} causes` : ''}`;
  const [only] = prospects;
  if (prospects.length === 1 && only !== undefined) return `${who} ${PROSPECTS[only[0]][count === 1 ? 'one' : 'many']}`;
  return `${who}: ${prospects.map(([prospect, n]) => `${grouped(n)} ${PROSPECTS[prospect].of}`).join(', ')}`;
}

/** What can be done, in words: beside a cause, of one letter, of several. */
const PROSPECTS = {
  replay: { of: 'safe to send back', one: 'is safe to send back', many: 'are safe to send back' },
  'fix-first': { of: 'will fail again', one: 'will fail again', many: 'will fail again' },
  investigate: { of: 'to be looked at', one: 'is to be looked at', many: 'are to be looked at' },
  'on-hold': { of: 'on hold', one: 'is on hold', many: 'are on hold' },
} as const;
type Prospect = keyof typeof PROSPECTS;

/** Nobody is told that what is on hold could be sent back. */
function prospectsOf(causes: readonly CauseLine[]): [Prospect, number][] {
  const counts = new Map<Prospect, number>();
  for (const { state, count, advices } of causes) {
    const parts: Counted<Prospect> = state === 'on-hold' ? [['on-hold', count]] : advices;
    for (const [prospect, n] of parts) counts.set(prospect, (counts.get(prospect) ?? 0) + n);
  }
  const order = Object.keys(PROSPECTS);
  return [...counts].sort(([a, n], [b, m]) => m - n || order.indexOf(a) - order.indexOf(b));
}

function letters(count: number): string {
  return `${grouped(count)} letter${count === 1 ? '' : 's'}`;
}

/** 3,970: the same on every machine, whatever its language. */
function grouped(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');
}

const WORDS = [
  'zero',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
];

function inWords(count: number): string {
  return WORDS[count] ?? grouped(count);
}

function places(causes: readonly CauseLine[]): string {
  const all = new Map(causes.flatMap(({ sources }) => sources.map((place) => [place.name, place.kind])));
  const [name] = all.keys();
  if (all.size === 1 && name !== undefined) return name;
  const kinds = new Set(all.values());
  const [kind] = kinds;
  return `${inWords(all.size)} ${kinds.size === 1 ? `${kind}s` : 'sources'}`;
}

function day(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 16);
}

function momentText(at: number, now: number): string {
  return `${day(at) === day(now) ? '' : `${day(at)} `}${clock(at)} UTC`;
}

function spanText(first: number, last: number, now: number): string {
  if (day(first) !== day(last)) return `between ${day(first)} ${clock(first)} and ${day(last)} ${clock(last)} UTC`;
  const on = day(first) === day(now) ? '' : `on ${day(first)} `;
  const from = clock(first);
  return from === clock(last) ? `${on}at ${from} UTC` : `${on}between ${from} and ${clock(last)} UTC`;
}
