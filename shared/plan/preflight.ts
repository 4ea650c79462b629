/** What could go wrong with a plan, decided from values. Nothing is read or written here. */
import type { TargetFacts } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import type { Fingerprint } from '../classify/fingerprint.ts';
import type { Letter } from '../letter.ts';
import type { LetterRecord } from '../records/letterRecord.ts';
import type { Holds } from '../records/onHold.ts';
import type { Action, Choices, Facts, Finding, FindingCode, PlanHead, SkipReason } from '../records/plan.ts';
import { isInDuplicateWindow } from './duplicates.ts';

/** Bytes that the replay's own properties can add to a message, rounded up. */
const ADDED_BYTES = 400;
/** Longest name or value of an application property, characters, and bytes of all together (Microsoft, "Service Bus quotas"). */
const MAX_PROPERTY = 32_767;
const MAX_PROPERTIES = 65_536;

/**
 * Where letters of a source go back to: its queue; for a subscription the queue it forwards to or its replay queue. The
 * topic, which reaches every other subscription too, only by choice. `undefined` when there is no such place.
 */
export function targetOf(source: Source, target: Choices['target'] = 'origin'): string | undefined {
  if (target === 'sandbox') return source.replay.sandboxQueue;
  if (target === 'topic') return source.of.kind === 'subscription' ? source.of.topic : undefined;
  if (source.of.kind === 'queue') return source.of.queue;
  return source.replay.forwardQueue ?? source.replay.replayQueue;
}

/** What is known of the target: what was read of it, and where nothing was, what the catalog states. */
export function completeFacts(source: Source, read: TargetFacts): Facts {
  const stated = source.entity;
  return {
    from: read.from,
    ...(read.forbidden !== undefined && { forbidden: read.forbidden }),
    status: read.status,
    duplicateDetection: read.duplicateDetection ?? stated.duplicateDetection,
    requiresSession: read.requiresSession ?? stated.requiresSession,
    partitioned: read.partitioned ?? stated.partitioned,
    deadLettersOnExpiry: read.deadLettersOnExpiry ?? stated.deadLettersOnExpiry,
    ...(read.defaultTimeToLive !== undefined && { defaultTimeToLive: read.defaultTimeToLive }),
    maxMessageBytes: read.maxMessageBytes ?? stated.maxMessageBytes,
  };
}

/** Findings that concern the source and the target as a whole. */
export function sourceFindings(source: Source, action: Action, choices: Choices, facts: Facts): Finding[] {
  const codes: FindingCode[] = [];
  if (action === 'discard') return codes.map(blocking);
  if (targetOf(source, choices.target) === undefined) {
    codes.push(choices.target === 'sandbox' ? 'no-sandbox' : 'no-direct-target');
  }
  if (facts.status === 'missing') codes.push('target-unknown');
  if (facts.status === 'disabled' || facts.status === 'send-disabled') codes.push('target-disabled');
  const warnings = [...forbiddenFindings(facts), ...(renamesNothing(choices, facts) ? [IDLE] : [])];
  // Copies in a sandbox are thrown away: what would lose a letter cannot lose one there.
  if (choices.target === 'sandbox') return [...codes.map(blocking), ...warnings];
  if (facts.duplicateDetection === undefined) codes.push('duplicate-detection-unknown');
  if (facts.requiresSession === undefined) codes.push('sessions-unknown');
  if (facts.requiresSession === true && source.mode === 'defer') codes.push('sessions-held');
  if (facts.deadLettersOnExpiry === undefined) codes.push('expiry-unknown');
  return [...codes.map(blocking), ...warnings, ...fanOutFindings(source, choices)];
}

/** `new-id` is for a target that remembers ids. A consumer that does is helped by another choice, which is easily missed. */
const IDLE: Finding = {
  code: 'new-id-idle',
  level: 'warn',
  letters: 0,
  message:
    'onDuplicate "new-id" changes nothing here: the target detects no duplicates. If its consumers remember message ids, plan with messageId "new"',
};

function renamesNothing({ onDuplicate, messageId }: Choices, { duplicateDetection }: Facts): boolean {
  return onDuplicate === 'new-id' && messageId !== 'new' && duplicateDetection === false;
}

/** A plan sends to the target that it showed; that the catalog names another by now is for a new plan to show. */
export function targetFindings(source: Source, { action, choices, target }: PlanHead): Finding[] {
  if (action === 'discard' || target === '') return [];
  const today = targetOf(source, choices.target);
  return today === target ? [] : [blocking('target-changed')];
}

const BLOCKS: Readonly<Partial<Record<FindingCode, string>>> = {
  'no-direct-target':
    'a topic would hand the letters to every subscription: give the subscription a forwardQueue or replayQueue in the catalog',
  'no-sandbox': 'the source has no sandbox: give it a replay.sandboxQueue in the catalog',
  'target-unknown': 'there is no such entity in the namespace: check the name in the catalog',
  'target-disabled': 'the target takes no messages: enable it',
  'duplicate-detection-unknown': 'state entity.duplicateDetection of the target in the catalog: false, or its window',
  'target-changed': 'the catalog names another target by now than this plan shows: make a new plan',
  'sessions-unknown': 'state entity.requiresSession of the target in the catalog',
  'sessions-held':
    'the target needs sessions, and held letters of session entities have been unreachable: set the mode to "observe"',
  'expiry-unknown': 'state entity.deadLettersOnExpiry of the target in the catalog',
};

function blocking(code: FindingCode): Finding {
  return { code, level: 'block', letters: 0, message: BLOCKS[code] ?? code };
}

/** A warning alone: what the catalog states may be enough, and what is unknown blocks by itself. */
function forbiddenFindings({ forbidden }: Facts): Finding[] {
  if (forbidden === undefined) return [];
  const message = `the target cannot be looked at: ${forbidden}. The roles Data Receiver and Data Sender on it include that; where there is no such entity, the answer is the same`;
  return [{ code: 'facts-forbidden', level: 'warn', letters: 0, message }];
}

function fanOutFindings(source: Source, { target, acceptFanOut }: Choices): Finding[] {
  if (target !== 'topic' || source.of.kind !== 'subscription') return [];
  const { topic } = source.of;
  const isAccepted = acceptFanOut === topic;
  const everybody = `every subscription of "${topic}" gets the letters, also those that never failed`;
  const message = isAccepted ? everybody : `${everybody}: accept it by planning with acceptFanOut "${topic}"`;
  return [{ code: 'fan-out', level: isAccepted ? 'warn' : 'block', letters: 0, message }];
}

/**
 * Why a letter must not be sent, or `undefined` when it may. The same question is asked again with the letter in hand. `otherSend`: when
 * its message id was sent to the target otherwise, if that is known (ms since 1970).
 */
export function refusal(
  source: Source,
  choices: Choices,
  facts: Facts,
  letter: Letter,
  now: number,
  otherSend = 0,
): SkipReason | undefined {
  const isCopy = choices.target === 'sandbox';
  if (!isCopy && letter.replay.count >= source.replay.maxReplays) return 'over-limit';
  if (letter.body.kind === 'none') return 'no-body';
  if (facts.requiresSession === true && letter.sessionId === undefined) return 'no-session';
  if (letter.body.bytes + ADDED_BYTES > facts.maxMessageBytes) return 'too-large';
  const { longest, total } = letter.propertySize;
  if (longest > MAX_PROPERTY || total + ADDED_BYTES > MAX_PROPERTIES) return 'properties-too-large';
  const { sessionId, partitionKey } = letter;
  if (sessionId !== undefined && partitionKey !== undefined && sessionId !== partitionKey) return 'keys-differ';
  if (!mayRename(choices) && isInDuplicateWindow(facts, choices, letter, now, otherSend)) return 'duplicate-window';
  return undefined;
}

/** Whether a letter whose id the target would recognise is sent under a new one. */
export function mayRename({ onDuplicate, messageId }: Choices): boolean {
  return onDuplicate === 'new-id' || messageId === 'new';
}

/** {@link refusal} for a recorded letter, which has advice and a group as well. `holds`: groups on hold that the plan does not include. */
export function plannedRefusal(
  source: Source,
  { action, choices, facts }: Pick<PlanHead, 'action' | 'choices' | 'facts'>,
  record: LetterRecord,
  now: number,
  holds: Pick<Holds, 'of'> = { of: () => undefined },
  otherSend = 0,
): SkipReason | undefined {
  // Whoever looks into a cause needs its letters: they are not removed either.
  if (holds.of(record) !== undefined) return 'on-hold';
  if (action === 'discard') return undefined;
  const reason = refusal(source, choices, facts, record.letter, now, otherSend);
  if (reason !== undefined) return reason;
  return record.classification.advice === 'fix-first' && !choices.includeFixFirst ? 'fix-first' : undefined;
}

/** Reach of the office (`Office.reach`) but in tests that lower it. */
export const REACH = 2000;

/** A letter of an `observe` source that lies behind too many others. */
export function countOutOfReach(findings: readonly Finding[], reach: number): Finding[] {
  const message = `these lie behind more than ${reach} others: send back or discard those first, or set the mode to "defer"`;
  return countFinding(findings, 'out-of-reach', message, 'block');
}

const SKIP_MESSAGES: Readonly<Partial<Record<SkipReason, string>>> = {
  'over-limit':
    'these were sent back as often as replay.maxReplays allows and failed again: fix the cause, or discard them',
  'no-body': 'these have no body and are never sent',
  'no-session': 'the target needs sessions and these have no session id: it would refuse them',
  'keys-differ':
    'these have a session id and another partition key: Service Bus takes a message only where both are the same. Send them by other means, or discard them',
  'properties-too-large':
    'these have an application property of more than 32,767 characters, or properties of more than 64 KB together: Service Bus would refuse them. Send them by other means, or discard them',
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

/** A letter whose message id an earlier letter of the same plan has, on a target that would drop the second. */
export function countRepeated(findings: readonly Finding[], choices: Choices): Finding[] {
  const message = mayRename(choices)
    ? 'earlier letters of this plan have the same message ids: these go under new ids'
    : 'earlier letters of this plan have the same message ids, and the target would silently drop the second: these are left; plan them when the window has passed, or with onDuplicate "new-id"';
  return countFinding(findings, 'repeated-id', message);
}

/** Most groups that a finding names. */
const MAX_NAMED = 10;

/** Adds one letter of a group on hold to their finding. */
export function countOnHold(
  findings: readonly Finding[],
  group: Fingerprint,
  level: Finding['level'] = 'warn',
): Finding[] {
  const message = (named: string) =>
    `these belong to a group on hold (${named}): ask its owner, see GET /groups/{fingerprint}; or plan with includeOnHold naming it`;
  return countOfGroup(findings, 'on-hold', group, message, level);
}

/** Adds one letter of a cause whose letters were sent back before and died again. */
export function countCameBack(findings: readonly Finding[], group: Fingerprint): Finding[] {
  const message = (named: string) =>
    `letters of the same cause (${named}) were sent back before and died again: look at what became of them, see GET /groups/{fingerprint}; begin with a small step`;
  return countOfGroup(findings, 'came-back', group, message, 'warn');
}

function countOfGroup(
  findings: readonly Finding[],
  code: FindingCode,
  group: Fingerprint,
  messageFor: (named: string) => string,
  level: Finding['level'],
): Finding[] {
  const named = new Set(findings.find((finding) => finding.code === code)?.groups);
  if (named.size < MAX_NAMED) named.add(group);
  const groups = [...named];
  return countFinding(findings, code, messageFor(groups.join(', ')), level).map((finding) =>
    finding.code === code ? { ...finding, groups } : finding,
  );
}

/** Less than this is no time to be consumed in, ms. */
const SHORT = 60_000;

/** Whether the letter died because its time to live had passed (the broker's own reason, by its documentation). */
function diedOfAge({ reason }: Letter): boolean {
  return reason?.trim().toLowerCase() === 'ttlexpiredexception';
}

/**
 * Notes a letter whose time to live starts anew: one that is as short as the time it died of kills it again, and on a
 * target that drops what expires it vanishes unseen.
 */
export function countExpiry(
  findings: readonly Finding[],
  facts: Facts,
  letter: Letter,
  choice: 'keep' | 'drop' | number,
): Finding[] {
  const own = choice === 'keep' ? letter.timeToLive : choice === 'drop' ? undefined : choice;
  const drops = facts.deadLettersOnExpiry === false;
  if (
    Math.min(own ?? Infinity, facts.defaultTimeToLive ?? Infinity) < SHORT ||
    (choice === 'keep' && diedOfAge(letter))
  ) {
    const end = drops ? 'and the target drops what expires' : 'and die again';
    const message = `these may expire before anybody consumes them, ${end}: make sure a consumer is running, and plan with a longer timeToLive, or "drop"`;
    return countFinding(findings, 'ttl-short', message, drops ? 'block' : 'warn');
  }
  if (own === undefined || !drops) return [...findings];
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

/** Notes a record that cannot be read: nobody can say whether it was chosen. */
export function countUnreadable(findings: readonly Finding[]): Finding[] {
  const message =
    'these records cannot be read, so nobody can say whether the selection takes them: the nightly pass records anew what is there';
  return countFinding(findings, 'unreadable', message);
}

function countFinding(
  findings: readonly Finding[],
  code: FindingCode,
  message: string,
  level: Finding['level'] = 'warn',
): Finding[] {
  const known = findings.find((finding) => finding.code === code);
  const counted: Finding = { code, level, letters: (known?.letters ?? 0) + 1, message };
  return known ? findings.map((finding) => (finding === known ? counted : finding)) : [...findings, counted];
}
