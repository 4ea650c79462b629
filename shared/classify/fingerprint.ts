/** The fingerprint: which letters died of one cause, over all sources, and that cause in words. Values only. */
import { createHash } from 'node:crypto';
import type { Evidence } from './evidence.ts';
import { frameOf } from './frame.ts';
import { templateOf } from './template.ts';

declare const brand: unique symbol;

/** Identity of a cause, e.g. `f1-Qm3…` (22 more characters). The number is the version of the rules that made it. */
export type Fingerprint = string & { readonly [brand]: 'Fingerprint' };

/** What a letter died of. */
export interface Cause {
  readonly fingerprint: Fingerprint;
  /** For people, without any value from the message: `TimeoutException: The request to <url> timed out`. */
  readonly words: string;
}

/** Stands for a cause whose words the store does not take. */
export const NOT_RECORDED = '(its words are not recorded)';

/** Longest cause in words. */
export const MAX_CAUSE = 300;

const FINGERPRINT = /^f[1-9]\d{0,2}-[\w-]{22}$/;

/** `text` as a fingerprint of any version, or `undefined` when it does not have the form of one. */
export function parseFingerprint(text: string): Fingerprint | undefined {
  return FINGERPRINT.test(text) ? (text as Fingerprint) : undefined;
}

/** Reasons that the broker gives by itself: it decided, and its text tells no more. */
const BROKER_REASONS: ReadonlyMap<string, string> = new Map([
  ['maxdeliverycountexceeded', 'Delivery limit reached, no exception told'],
  ['ttlexpiredexception', 'Time to live ended'],
  ['headersizeexceeded', 'Header too large'],
  ['session id is null', 'Session id missing'],
  ['maxtransferhopcountexceeded', 'Forwarded too often'],
]);

/**
 * Failures of something outside of the program: which of its lines was waiting is chance, and a cause over four queues would
 * be four causes.
 */
const OUTSIDE =
  /time[d -]{0,2}out|deadline ?exceeded|deadlock|lock wait|connection.{0,20}(?:refused|reset|aborted|closed|forcibly)|econn|enotfound|etimedout|eai_again|getaddrinfo|no route|unreachable|unavailable|too ?many ?requests|throttl|rate ?limit|server ?busy|bad gateway|socket hang up|broken pipe|name resolution|unknownhost|\b(?:status|http)\b.{0,20}\b(?:408|429|5\d\d)\b/i;

/**
 * The cause that evidence tells of: of the innermost exception its type, its text without values, and where in the
 * application's own code it was thrown; without an exception the reason and its description. Neither source nor message type are in it: a group
 * is one cause, wherever it strikes. The same evidence has the same fingerprint in every release. Never throws.
 */
export function causeOf(evidence: Evidence): Cause {
  let cause = known.get(evidence);
  if (cause === undefined) {
    cause = findCause(evidence);
    known.set(evidence, cause);
  }
  return cause;
}

/** The record, the groups and the signals all ask for it. */
const known = new WeakMap<Evidence, Cause>();

function findCause(evidence: Evidence): Cause {
  const reason = nonEmpty(evidence.reason, 4000);
  const code = reason?.replace(/\.$/, '').toLowerCase() ?? '';
  const broker = BROKER_REASONS.get(code);
  const type = nonEmpty(evidence.causeType, 1000) ?? nonEmpty(evidence.exceptionType, 1000);
  // The broker's description of its own reason is no account of an exception.
  const description = broker === undefined ? nonEmpty(evidence.description) : undefined;
  const message = nonEmpty(evidence.causeMessage) ?? nonEmpty(evidence.exceptionMessage);
  if (type === undefined && message === undefined) {
    return broker === undefined ? withoutException(reason, description) : cause(['broker', code], broker);
  }
  const name = type === undefined ? '' : shortName(type);
  const ownReason = broker === undefined && reason !== type ? reason : undefined;
  const text = templateOf(withoutName(message ?? description ?? ownReason ?? '', type, name));
  const isOutside = OUTSIDE.test(name) || OUTSIDE.test(text.key);
  const frame = isOutside ? '' : frameOf(evidence.frame ?? '');
  const told = [name, text.words].filter((part) => part !== '').join(': ');
  return cause(['exception', name.toLowerCase(), text.key, frame], frame === '' ? told : `${told} (in ${frame})`);
}

function withoutException(reason: string | undefined, description: string | undefined): Cause {
  if (reason === undefined && description === undefined) return cause(['nothing'], 'No reason told');
  const why = templateOf(reason ?? '');
  const how = templateOf(description ?? '');
  const told = [why.words, how.words === why.words ? '' : how.words].filter((part) => part !== '').join(': ');
  return cause(['reason', why.key, how.key === why.key ? '' : how.key], told);
}

function cause(parts: readonly string[], words: string): Cause {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
  const fingerprint = `f1-${hash.slice(0, 22)}` as Fingerprint;
  return { fingerprint, words: (words || 'No reason told').slice(0, MAX_CAUSE) };
}

/** No longer than what is recorded, so that a letter's record has the fingerprint that the letter had. */
function nonEmpty(text: string | undefined, max = 8000): string | undefined {
  const trimmed = text?.slice(0, max).trim();
  return trimmed === '' ? undefined : trimmed;
}

/**
 * The class without its namespace: one framework tells the whole name and another only the end of it. A type is the
 * sender's word too; what is no name is taken for a text.
 */
function shortName(type: string): string {
  const plain = type
    .slice(0, 1000)
    .replace(/(?:`\d{1,3}|\[|<|,).*$/s, '')
    .trim();
  const last = plain.split(/[.\\:+$/]/).at(-1) ?? '';
  if (!/^[\p{L}_]\w{0,150}$/u.test(last) || /\d{4}/.test(last)) return templateOf(type).words.slice(0, 100);
  return last;
}

/** `System.TimeoutException: The operation …` says its type twice. */
function withoutName(message: string, type: string | undefined, name: string): string {
  for (const one of [type, name]) {
    if (one && message.startsWith(`${one}:`)) return message.slice(one.length + 1).trimStart();
  }
  return message;
}
