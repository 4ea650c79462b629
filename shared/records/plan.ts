/** What a plan is: the values that preparing, running and showing it share. No input or output here. */
import { z } from 'zod';
import type { Fingerprint } from '../classify/fingerprint.ts';
import { parseDuration } from '../duration.ts';
import type { IdentifiedLetter, PlanId, SequenceNumber, SourceKey } from '../letter.ts';
import { fingerprintSchema } from '../selection.ts';
import type { Pace, Progress } from './ramp.ts';
import type { PlanTally } from './tally.ts';

/** The states of a plan; `observing` and `halted` belong to runs with a ramp. */
export const PLAN_STATES = [
  'preparing',
  'ready',
  'running',
  'observing',
  'paused',
  'halted',
  'cancelled',
  'finished',
  'expired',
] as const;
export type PlanState = (typeof PLAN_STATES)[number];

/**
 * Largest batch, bytes. Premium namespaces take single messages of up to 100 MB and say so on the link, but refuse batches
 * above 1 MB (issues of the .NET and Python clients).
 */
export const MAX_BATCH_BYTES = 1_048_576;

/** States in which a plan will never act again. */
export const CLOSED_STATES: readonly PlanState[] = ['cancelled', 'finished', 'expired'];

export const ACTIONS = ['replay', 'discard'] as const;
export type Action = (typeof ACTIONS)[number];

const MIN_TIME_TO_LIVE = 1000;
const MAX_TIME_TO_LIVE = 49 * 86_400_000;

function isTimeToLive(text: string): boolean {
  const ms = parseDuration(text) ?? 0;
  return text === 'keep' || text === 'drop' || (ms >= MIN_TIME_TO_LIVE && ms <= MAX_TIME_TO_LIVE);
}

/** A plan's choice of time to live, a duration in ms. */
export function timeToLiveOf({ timeToLive }: Choices): 'keep' | 'drop' | number {
  return timeToLive === 'drop' ? 'drop' : (parseDuration(timeToLive ?? 'keep') ?? 'keep');
}

/** The choices an operator makes when planning; a run adds none that change what is sent. */
export const choicesSchema = z.strictObject({
  /** Mark every message with `replay-bypass`, so that handlers skip outside effects that already happened. */
  bypass: z.boolean().default(false),
  /** Send letters whose advice is `fix-first` too: the cause has been fixed. */
  includeFixFirst: z.boolean().default(false),
  /**
   * For letters whose message id the target would still recognise and silently drop: leave them (`skip`), or send them
   * under a new deterministic id with the old one in `x-original-message-id` (`new-id`).
   */
  onDuplicate: z.enum(['skip', 'new-id']).default('skip'),
  /**
   * `keep` the message ids, or send every letter under a `new` one, the old one in `x-original-message-id`: for consumers that remember
   * the ids they have handled and would skip the letter without a word. Not kept where it was not chosen: older readers know no such choice.
   */
  messageId: z.enum(['keep', 'new']).optional(),
  /**
   * `origin`: the queue where they failed (for a subscription its forward or replay queue). `sandbox`: copies to the source's
   * sandbox queue; nothing is completed and nothing is counted. `topic`: to the topic of the subscription.
   */
  target: z.enum(['origin', 'sandbox', 'topic']).default('origin'),
  /** For target `topic`: its name, by which the operator accepts that every other subscription gets the letters too. */
  acceptFanOut: z.string().max(260).optional(),
  /**
   * How long the messages may wait in the target: as long as they could before (`keep`, the default), as long as the target lets any
   * message (`drop`), or an ISO 8601 duration from a second to 49 days (what the header can say).
   */
  timeToLive: z
    .string()
    .refine(isTimeToLive, 'must be keep, drop, or an ISO 8601 duration between PT1S and P49D')
    .optional(),
  /** Groups on hold whose letters are taken all the same, by name. Not kept where there are none: older readers know no such choice. */
  includeOnHold: z.array(fingerprintSchema).min(1).max(50).optional(),
});
export type Choices = z.infer<typeof choicesSchema>;

/**
 * The new id of a letter in a plan. The same for every attempt: where the target detects duplicates, sending again is harmless.
 */
export function newIdOf(id: PlanId, number: SequenceNumber): string {
  return `${id}:${number}`;
}

/** Codes of findings. Stable: runbooks refer to them. */
export const FINDING_CODES = [
  'nothing-to-send',
  'no-direct-target',
  'no-sandbox',
  'fan-out',
  'target-disabled',
  'target-unknown',
  'target-unreachable',
  'facts-forbidden',
  'target-changed',
  'duplicate-detection-unknown',
  'duplicate-window',
  'repeated-id',
  'new-id-idle',
  'sessions-unknown',
  'sessions-held',
  'no-session',
  'keys-differ',
  'properties-too-large',
  'out-of-reach',
  'expiry-unknown',
  'expiry-drops',
  'ttl-short',
  'maybe-sent',
  'over-limit',
  'fix-first',
  'on-hold',
  'came-back',
  'too-large',
  'no-body',
  'unreadable',
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** Something preflight found. `block` keeps the plan from running. */
export interface Finding {
  readonly code: FindingCode;
  readonly level: 'block' | 'warn';
  /** Letters concerned; 0 when it concerns the whole plan. */
  readonly letters: number;
  /** What it is and what to do. */
  readonly message: string;
  /** Fingerprints of the groups concerned, for `on-hold` and `came-back`; the first few. */
  readonly groups?: readonly Fingerprint[] | undefined;
  /** Where the letters say that they came from, for `no-direct-target`; the first few. */
  readonly suggested?: readonly string[] | undefined;
}

/** What is known of the target while the plan is prepared and run: what was read, completed by the catalog. Durations are ms. */
export const factsSchema = z.object({
  from: z.enum(['resource-manager', 'administration', 'none']),
  forbidden: z.string().optional(),
  status: z.enum(['active', 'disabled', 'send-disabled', 'receive-disabled', 'missing']).optional(),
  duplicateDetection: z.union([z.literal(false), z.number()]).optional(),
  requiresSession: z.boolean().optional(),
  deadLettersOnExpiry: z.boolean().optional(),
  defaultTimeToLive: z.number().optional(),
  partitioned: z.boolean(),
  maxMessageBytes: z.number(),
});
export type Facts = z.infer<typeof factsSchema>;

/**
 * Whether messages must be sent one by one: a batch to a session or partitioned entity needs one key for all of it, and the
 * broker takes an envelope without it for another message.
 */
export function needsSingles(facts: Facts): boolean {
  return facts.requiresSession === true || facts.partitioned;
}

/** Why a letter of a plan was not sent. */
export const SKIP_REASONS = [
  'over-limit',
  'fix-first',
  'on-hold',
  'duplicate-window',
  'too-large',
  'no-body',
  'out-of-reach',
  'gone',
  'not-same-message',
  'not-resendable',
  'no-session',
  'keys-differ',
  'properties-too-large',
] as const;
export type SkipReason = (typeof SKIP_REASONS)[number];

/** The end of one planned letter. `done` is the rule; the others are told one by one. */
export type Fate =
  | { readonly kind: 'skipped'; readonly reason: SkipReason }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Still in the dead-letter queue, untouched: the run ended before it, or it was locked or not held yet. */
  | { readonly kind: 'left'; readonly reason: 'cancelled' | 'locked' | 'not-held' };

/** The fate of one letter whose fate differs from its chunk's. */
export interface Exception {
  readonly number: SequenceNumber;
  readonly fate: Fate;
  /** A copy may be in the target although the office could not make sure of it. */
  readonly maybeDuplicate: boolean;
}

/** `planned → sending → sent → done`. For a discard there is nothing to send: `planned → sent → done`. */
export type ChunkState = 'planned' | 'sending' | 'sent' | 'done';

/** One letter of a chunk, as it was planned. */
export type ChunkLetter = IdentifiedLetter;

/** Up to 100 letters of a plan. The row is plan and journal in one. */
export interface Chunk {
  /** Sorts chunks in the order they are run; the halves of a divided chunk stay in its place. */
  readonly key: string;
  readonly state: ChunkState;
  readonly letters: readonly ChunkLetter[];
  /** Sent more than once, or sent without an answer: each of its letters may be in the target twice. */
  readonly maybeDuplicate: boolean;
  /** How often it was begun to be sent: journaled before each send, so that a crash counts too. */
  readonly sends: number;
  /** When its letters were first found locked by somebody else, ms since 1970. */
  readonly waitingSince: number | undefined;
  /** Key of the audit entry that is open for it. */
  readonly audit: string;
}

/** Letters by fate. `planned` is the sum of all others. */
export interface Counts {
  readonly planned: number;
  readonly pending: number;
  readonly done: number;
  readonly skipped: number;
  readonly failed: number;
  readonly left: number;
  /** Flag beside the fates: letters that may be in the target more than once. */
  readonly maybeDuplicate: number;
}

/** The head of a plan. Times are ms since 1970. */
export interface PlanHead {
  readonly id: PlanId;
  readonly source: SourceKey;
  readonly sourceName: string;
  readonly action: Action;
  /** Entity that letters are sent to; empty for a discard or where there is none. */
  readonly target: string;
  readonly choices: Choices;
  /** The selection as it was given, JSON. */
  readonly selection: string;
  readonly findings: readonly Finding[];
  readonly state: PlanState;
  /** Why it is in this state, for people. */
  readonly stateReason: string;
  readonly createdAt: number;
  readonly createdBy: string;
  /** After this it cannot be started or resumed any more. */
  readonly expiresAt: number;
  /** While preparing: the first number not looked at yet. */
  readonly cursor: SequenceNumber | undefined;
  /** While preparing: records looked at so far. */
  readonly looked: number;
  readonly chunks: number;
  readonly counts: Counts;
  /** What kinds of letters it acts on. */
  readonly tally: PlanTally;
  /** What an operator asked for while somebody else was running it. */
  readonly request: 'none' | 'pause' | 'cancel';
  /** Token of the lease under which it is being run; every journal write of another is refused. */
  readonly runner: string;
  readonly facts: Facts;
  /** For a plan that sends to a topic: its first letter was seen in the subscription. */
  readonly seen: boolean;
  readonly pace: Pace;
  readonly progress: Progress;
  readonly startedAt: number | undefined;
  readonly startedBy: string;
  readonly finishedAt: number | undefined;
}

export const NO_COUNTS: Counts = {
  planned: 0,
  pending: 0,
  done: 0,
  skipped: 0,
  failed: 0,
  left: 0,
  maybeDuplicate: 0,
};

/** `counts` after letters left `pending`: `done` of them as planned, the others by their exceptions. */
export function settle(counts: Counts, done: number, exceptions: readonly Exception[], maybeDuplicate: number): Counts {
  const by = (kind: Fate['kind']) => exceptions.filter(({ fate }) => fate.kind === kind).length;
  return {
    planned: counts.planned,
    pending: counts.pending - done - exceptions.length,
    done: counts.done + done,
    skipped: counts.skipped + by('skipped'),
    failed: counts.failed + by('failed'),
    left: counts.left + by('left'),
    maybeDuplicate: counts.maybeDuplicate + maybeDuplicate,
  };
}

/** Whether the plan can be started: no finding blocks it. */
export function isBlocked(findings: readonly Finding[]): boolean {
  return findings.some(({ level }) => level === 'block');
}
