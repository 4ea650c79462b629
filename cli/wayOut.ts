/**
 * What commands ask before they send letters without the office: the same facts, findings and blocks as a plan has, by the same
 * code. What only the store knows they cannot ask: groups on hold, advice, and which letters a run may have sent already.
 */
import type { Broker, ResendChange } from '../shared/brokers/broker.ts';
import { type Catalog, type Source, sourceKey } from '../shared/catalog.ts';
import type { Letter, PlanId } from '../shared/letter.ts';
import { isInDuplicateWindow } from '../shared/plan/duplicates.ts';
import { countExpiry, countRepeated, countSkip, refusal, targetOf } from '../shared/plan/preflight.ts';
import { lookAtTarget } from '../shared/plan/prepare.ts';
import {
  type Choices,
  choicesSchema,
  type Facts,
  type Finding,
  newIdOf,
  type SkipReason,
  timeToLiveOf,
} from '../shared/records/plan.ts';
import { Misused } from './commandLine.ts';

/** The choices of a plan as options of a command line, for `parseArgs`. */
export const CHOICE_OPTIONS = {
  'on-duplicate': { type: 'string' },
  'message-id': { type: 'string' },
  'time-to-live': { type: 'string' },
  'over-limit': { type: 'boolean' },
  yes: { type: 'boolean' },
  'dry-run': { type: 'boolean' },
} as const;

/** How they are told in a usage. */
export const CHOICE_USAGE = `  --on-duplicate skip|new-id             leaves letters whose id the target would recognise and drop, or gives them new ids
  --message-id keep|new                  keeps message ids, or gives every letter a new one; default keep
  --time-to-live keep|drop|<duration>    how long the messages may wait in the target, such as PT1H; default keep
  --over-limit                           sends also letters that were sent back as often as the catalog allows
  --yes                                  does it; without it, what would be done is told and nothing is changed
  --dry-run                              the same as no --yes`;

/** Options as `parseArgs` gives them. */
export interface ChoiceValues {
  readonly 'on-duplicate'?: string | undefined;
  readonly 'message-id'?: string | undefined;
  readonly 'time-to-live'?: string | undefined;
  readonly 'over-limit'?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly 'dry-run'?: boolean | undefined;
}

/** What an operator chose. */
export interface Chosen {
  readonly choices: Choices;
  readonly overLimit: boolean;
  /** To do it, and not only to tell. */
  readonly isTold: boolean;
}

/** Reads the options. Throws `Misused` for a choice that a plan would not take. */
export function chosenBy(values: ChoiceValues): Chosen {
  const { 'on-duplicate': onDuplicate, 'message-id': messageId, 'time-to-live': timeToLive } = values;
  if (values.yes && values['dry-run']) throw new Misused('--yes and --dry-run contradict each other');
  const parsed = choicesSchema.safeParse({
    ...(onDuplicate !== undefined && { onDuplicate }),
    ...(messageId !== undefined && { messageId }),
    ...(timeToLive !== undefined && { timeToLive }),
  });
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => `--${kebab(path.join('.'))}: ${message}`);
    throw new Misused(issues.join('; '));
  }
  return { choices: parsed.data, overLimit: values['over-limit'] === true, isTold: values.yes === true };
}

/** A way to send letters of a source, looked at. */
export interface WayOut {
  /** The source, with the facts that the catalog states of the target. */
  readonly source: Source;
  readonly to: string;
  readonly choices: Choices;
  readonly facts: Facts;
  /** What concerns the target as a whole. */
  readonly findings: readonly Finding[];
}

/** Looks at the queue `to` beside `source`; changes nothing. Throws `DLO_BROKER_UNAVAILABLE`. */
export async function lookAtWayOut(
  broker: Broker,
  { sources }: Catalog,
  source: Source,
  to: string,
  { choices, overLimit }: Chosen,
): Promise<WayOut> {
  const replay = overLimit ? { ...source.replay, maxReplays: Number.POSITIVE_INFINITY } : source.replay;
  const going: Source = { ...source, replay, entity: statedOf(sources, source, to) };
  const { facts, findings } = await lookAtTarget({ broker }, going, 'replay', choices, to);
  // The queue was named, so there is a direct target; and letters are held already, this command is how they are got out.
  const own = findings.filter(({ code }) => code !== 'no-direct-target' && code !== 'sessions-held');
  return { source: going, to, choices, facts, findings: own };
}

/** What the catalog states of a source holds for the queue its letters go back to. Of another queue only that one's own entry tells. */
function statedOf(sources: readonly Source[], source: Source, to: string): Source['entity'] {
  if (targetOf(source)?.toLowerCase() === to.toLowerCase()) return source.entity;
  const entry = sources.find(({ key }) => key === sourceKey(source.namespace.host, to));
  const { partitioned, maxMessageBytes } = source.entity;
  return entry?.entity ?? { partitioned, maxMessageBytes };
}

/**
 * What is to be done with a letter: why it stays, or what a replay changes on it beside its own properties. `isRepeated`: the
 * target would drop it for a letter that went before it.
 */
export type Verdict =
  | { readonly stays: SkipReason; readonly isRepeated: boolean }
  | { readonly change: Pick<ResendChange, 'newMessageId' | 'timeToLive'>; readonly isRepeated: boolean };

/** Judges letters one after the other, in the order in which they are sent: each id counts as sent from then on. */
export class Judge {
  readonly #way: WayOut;
  readonly #planId: PlanId;
  /** When an id was sent by this command, ms since 1970. */
  readonly #sent = new Map<string, number>();

  constructor(way: WayOut, planId: PlanId) {
    this.#way = way;
    this.#planId = planId;
  }

  /** Decides at `now`, ms since 1970. */
  verdict(letter: Letter, now: number): Verdict {
    const { source, choices, facts } = this.#way;
    const before = letter.messageId === undefined ? undefined : this.#sent.get(letter.messageId);
    const isKnown = isInDuplicateWindow(facts, choices, letter, now, before);
    const isRepeated = isKnown && !isInDuplicateWindow(facts, choices, letter, now);
    const stays = refusal(source, choices, facts, letter, now, before);
    if (stays !== undefined) return { stays, isRepeated };
    const isRenamed = choices.messageId === 'new' || (choices.onDuplicate === 'new-id' && isKnown);
    if (letter.messageId !== undefined && !isRenamed) this.#sent.set(letter.messageId, now);
    const timeToLive = timeToLiveOf(choices);
    return {
      isRepeated,
      change: {
        ...(timeToLive !== 'keep' && { timeToLive }),
        ...(isRenamed && { newMessageId: newIdOf(this.#planId, letter.sequenceNumber) }),
      },
    };
  }
}

/** The findings with one more letter looked at. */
export function withLetter(findings: readonly Finding[], { facts, choices }: WayOut, letter: Letter, verdict: Verdict) {
  const repeated = verdict.isRepeated ? countRepeated(findings, choices) : findings;
  if ('stays' in verdict) {
    return verdict.isRepeated && verdict.stays === 'duplicate-window' ? repeated : countSkip(repeated, verdict.stays);
  }
  return countExpiry(repeated, facts, letter, timeToLiveOf(choices));
}

/** Whether nothing may be sent. */
export function isBlocked(findings: readonly Finding[]): boolean {
  return findings.some(({ level }) => level === 'block');
}

/** What was looked at and found, as lines. */
export function* tellWayOut({ to, facts }: WayOut, findings: readonly Finding[]): Generator<string> {
  yield `target "${to}": ${tellFacts(facts)}`;
  for (const { code, level, letters, message } of findings) {
    yield `${level} ${code}${letters > 0 ? `, ${letters} letters` : ''}: ${optionsIn(message)}`;
  }
}

function tellFacts({ from, status, duplicateDetection, requiresSession, deadLettersOnExpiry }: Facts): string {
  const known = (value: boolean | number | undefined, text: string) => (value === undefined ? `${text} unknown` : text);
  const parts = [
    status ?? 'status unknown',
    known(
      duplicateDetection,
      duplicateDetection ? `duplicates detected for ${seconds(duplicateDetection)}` : 'duplicate detection',
    ) + (duplicateDetection === false ? ' off' : ''),
    known(requiresSession, 'sessions') + (requiresSession === undefined ? '' : requiresSession ? ' needed' : ' off'),
    deadLettersOnExpiry === undefined
      ? 'what becomes of expired messages unknown'
      : `expired messages are ${deadLettersOnExpiry ? 'dead-lettered' : 'dropped'}`,
  ];
  return `${parts.join(', ')} (${from === 'none' ? 'as the catalog states' : `by ${from}`})`;
}

function seconds(ms: number): string {
  return `${ms / 1000} s`;
}

/** Findings speak of plans; here their choices are options. */
function optionsIn(message: string): string {
  return message
    .replaceAll(/plan (?:them )?with (?=onDuplicate|messageId|a longer timeToLive)/g, 'choose ')
    .replaceAll(/\bor with (?=onDuplicate)/g, 'or choose ')
    .replaceAll(/\b(?:onDuplicate|messageId|timeToLive)\b/g, (choice) => `--${kebab(choice)}`);
}

function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
