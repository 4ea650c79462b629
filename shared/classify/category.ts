/** Category and advice from evidence, by rules from specific to general. */
import { errorInJson } from './errorJson.ts';
import type { Evidence, Layer, Mechanism, Verdict } from './evidence.ts';
import { findException } from './exceptions.ts';
import { familyOf, familyOfText } from './families.ts';

/** What the broker's own reasons mean. The consumer had no say in these, whatever exception an earlier attempt has left. */
const BROKER_DECIDED: Partial<Record<Mechanism, Verdict>> = {
  expired: { category: 'expired', advice: 'investigate', rule: 'system:expired' },
  'header-size': { category: 'oversized', advice: 'fix-first', rule: 'system:header-size' },
  'session-missing': { category: 'topology', advice: 'fix-first', rule: 'system:session-missing' },
  'hop-count': { category: 'topology', advice: 'fix-first', rule: 'system:hop-count' },
  'filter-error': { category: 'topology', advice: 'fix-first', rule: 'system:filter-error' },
};

/** Reasons of BabelQueue beside `failed`, which tells nothing: the envelope or its type cannot be handled at all. */
const BABELQUEUE: Readonly<Record<string, Verdict>> = {
  poison: { category: 'poison', advice: 'fix-first', rule: 'babelqueue:poison' },
  unknown_urn: { category: 'poison', advice: 'fix-first', rule: 'babelqueue:unknown-urn' },
};

/**
 * Judges evidence. First what the broker decided alone; then what a framework says of the kind of failure; then the exception,
 * the innermost first; then the delivery limit. An application's own reason says that the consumer decided, not what the cause
 * was: have a look.
 */
export function judge(evidence: Evidence, layers: readonly Layer[]): Verdict {
  return (
    (evidence.mechanism && BROKER_DECIDED[evidence.mechanism]) ??
    frameworkVerdict(layers) ??
    exceptionVerdict(evidence) ??
    plainVerdict(evidence, layers)
  );
}

function frameworkVerdict(layers: readonly Layer[]): Verdict | undefined {
  for (const { dialect, evidence } of layers) {
    if (evidence.mechanism === 'skipped')
      return { category: 'topology', advice: 'fix-first', rule: `${dialect}:skipped` };
    const { reason } = evidence;
    if (dialect === 'babelqueue' && reason !== undefined && Object.hasOwn(BABELQUEUE, reason))
      return BABELQUEUE[reason];
  }
  return undefined;
}

/** What the exception says, or the text of an error without one; `undefined` when neither is certain. */
export function exceptionVerdict(evidence: Evidence): Verdict | undefined {
  const { causeType, causeMessage, exceptionType, exceptionMessage } = evidence;
  // Several that are not of one kind: none of them stands for all.
  if (causeType === undefined && causeMessage !== undefined) return undefined;
  const cause = causeType === undefined ? undefined : familyOf(causeType, causeMessage);
  if (exceptionType !== undefined) return cause ?? familyOf(exceptionType, exceptionMessage);
  return cause ?? textVerdict(evidence);
}

/** Some languages have errors and no types for them: what they say is in the description, or in the reason itself. */
function textVerdict({ exceptionMessage, mechanism, reason, description }: Evidence): Verdict | undefined {
  if (exceptionMessage !== undefined) return familyOfText(exceptionMessage);
  if (mechanism !== undefined && mechanism !== 'dead-lettered') return undefined;
  return jsonVerdict(description) ?? familyOfText(description) ?? familyOfText(reason);
}

const AS_IT_IS = { word: (word: string) => word, text: (text: string) => text, plain: (told: string) => told };

/** An error that is told as JSON has a type there. */
function jsonVerdict(description: string | undefined): Verdict | undefined {
  const told = description === undefined ? undefined : errorInJson(description, AS_IT_IS);
  if (told === undefined) return undefined;
  const { exceptionType, exceptionMessage, causeType, causeMessage } = findException(told);
  return (
    (causeType === undefined ? undefined : familyOf(causeType, causeMessage)) ??
    (exceptionType === undefined ? undefined : familyOf(exceptionType, exceptionMessage))
  );
}

function plainVerdict({ reason, exceptionType, mechanism }: Evidence, layers: readonly Layer[]): Verdict {
  if (mechanism === 'delivery-limit') {
    const isFunction = layers.some(({ dialect }) => dialect === 'azure-functions');
    const rule = isFunction && exceptionType === undefined ? 'azure-functions:delivery-limit' : 'system:delivery-limit';
    return { category: 'consumer-fault', advice: 'fix-first', rule };
  }
  if (exceptionType !== undefined && exceptionType !== reason) {
    return { category: 'unknown', advice: 'investigate', rule: 'exception:unrecognised' };
  }
  if (reason === undefined) return { category: 'unknown', advice: 'investigate', rule: 'no-reason' };
  return { category: 'unknown', advice: 'investigate', rule: 'application-reason' };
}
