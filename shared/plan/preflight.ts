/** What could go wrong with a plan, decided from values. Nothing is read or written here. */
import type { Source } from '../catalog.ts';
import type { Letter } from '../letter.ts';
import type { LetterRecord } from '../store/letterRow.ts';
import type { Action, Choices, Finding, FindingCode, SkipReason } from './plan.ts';

/** Bytes that the replay's own properties can add to a message, rounded up. */
const ADDED_BYTES = 400;

/**
 * Where letters of a source go back to: its queue; for a subscription the queue it forwards to or its replay queue, and
 * never the topic, which would reach every other subscription too. `undefined` when there is no such place.
 */
export function targetOf(source: Source): string | undefined {
  if (source.of.kind === 'queue') return source.of.queue;
  return source.replay.forwardQueue ?? source.replay.replayQueue;
}

/** Findings that concern the source as a whole. */
export function sourceFindings(source: Source, action: Action): Finding[] {
  const findings: Finding[] = [];
  const block = (code: FindingCode, message: string) => findings.push({ code, level: 'block', letters: 0, message });
  if (source.mode === 'observe') {
    block(
      'observe-source',
      'letters of an observe source are not held by the office: set its mode to "defer" in the catalog',
    );
  }
  if (action === 'discard') return findings;
  if (targetOf(source) === undefined) {
    block(
      'no-direct-target',
      'a topic would hand the letters to every subscription: give the subscription a forwardQueue or replayQueue in the catalog',
    );
  }
  const { duplicateDetection, requiresSession, deadLettersOnExpiry } = source.entity;
  if (duplicateDetection === undefined) {
    block(
      'duplicate-detection-unknown',
      'state entity.duplicateDetection of the target in the catalog: false, or its window',
    );
  }
  if (requiresSession === undefined) {
    block('sessions-unknown', 'state entity.requiresSession of the target in the catalog');
  } else if (requiresSession) {
    block('sessions-unsupported', 'letters of session entities cannot be held, and so not be taken by number');
  }
  if (deadLettersOnExpiry === undefined) {
    block('expiry-unknown', 'state entity.deadLettersOnExpiry of the target in the catalog');
  }
  return findings;
}

/** Whether a message id that was last sent at `lastSent` is still known to the target at `now` (ms since 1970). */
export function isInDuplicateWindow(source: Source, letter: Letter, now: number): boolean {
  const window = source.entity.duplicateDetection;
  if (window === undefined || window === false || letter.messageId === undefined) return false;
  // The window counts from the last send, and a replay is one.
  const lastSent = Math.max(letter.enqueuedAt, letter.replay.at ?? 0);
  return now - lastSent < window;
}

/** Why a letter must not be sent, or `undefined` when it may. The same question is asked again with the letter in hand. */
export function refusal(source: Source, choices: Choices, letter: Letter, now: number): SkipReason | undefined {
  if (letter.replay.count >= source.replay.maxReplays) return 'over-limit';
  if (letter.body.kind === 'none') return 'no-body';
  if (letter.body.bytes + ADDED_BYTES > source.entity.maxMessageBytes) return 'too-large';
  if (choices.onDuplicate === 'skip' && isInDuplicateWindow(source, letter, now)) return 'duplicate-window';
  return undefined;
}

/** {@link refusal} for a recorded letter, which has advice as well. */
export function plannedRefusal(
  source: Source,
  action: Action,
  choices: Choices,
  record: LetterRecord,
  now: number,
): SkipReason | undefined {
  if (action === 'discard') return undefined;
  const reason = refusal(source, choices, record.letter, now);
  if (reason !== undefined) return reason;
  return record.classification.advice === 'fix-first' && !choices.includeFixFirst ? 'fix-first' : undefined;
}

const SKIP_MESSAGES: Readonly<Partial<Record<SkipReason, string>>> = {
  'over-limit':
    'these were sent back as often as replay.maxReplays allows and failed again: fix the cause, or discard them',
  'no-body': 'these have no body and are never sent',
  'too-large': 'these are larger than entity.maxMessageBytes and would be refused',
  'duplicate-window':
    'the target would recognise these message ids and silently drop them: wait until the window has passed, or plan with onDuplicate "new-id"',
  'fix-first': 'these will fail again unless the cause is fixed: plan with includeFixFirst when it is',
};

/** Adds one letter to the finding of its skip reason. */
export function countSkip(findings: readonly Finding[], reason: SkipReason): Finding[] {
  const message = SKIP_MESSAGES[reason] ?? reason;
  return countFinding(findings, reason as FindingCode, message);
}

/** Notes a letter whose time to live starts anew: on a target that drops what expires, it could vanish unseen. */
export function countExpiry(findings: readonly Finding[], source: Source, letter: Letter): Finding[] {
  if (letter.timeToLive === undefined || source.entity.deadLettersOnExpiry !== false) return [...findings];
  const message = 'these have a time to live and the target drops what expires: make sure a consumer is running';
  return countFinding(findings, 'expiry-drops', message);
}

/** Notes a letter that an earlier run may have sent already, although it is still in the dead-letter queue. */
export function countMaybeSent(findings: readonly Finding[], record: LetterRecord): Finding[] {
  if (record.maybeSentBy === undefined) return [...findings];
  const message =
    'an earlier run may have sent these already, and was ended before it could make sure: they may be doubled';
  return countFinding(findings, 'maybe-sent', message);
}

function countFinding(findings: readonly Finding[], code: FindingCode, message: string): Finding[] {
  const known = findings.find((finding) => finding.code === code);
  const counted: Finding = { code, level: 'warn', letters: (known?.letters ?? 0) + 1, message };
  return known ? findings.map((finding) => (finding === known ? counted : finding)) : [...findings, counted];
}
