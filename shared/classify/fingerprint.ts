/** The fingerprint: which letters died of one cause, over all sources, and that cause in words. Values only. */
import { createHash } from 'node:crypto';
import type { SourceKey } from '../letter.ts';
import type { Evidence } from './evidence.ts';
import { frameOf } from './frame.ts';
import { templateOf } from './template.ts';

declare const brand: unique symbol;

/** Identity of a cause, e.g. `f2-Qm3…` (22 more characters). The number is the version of the rules that made it. */
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

/** The version of the rules here, as fingerprints begin. */
export const VERSION = 'f2-';

const FINGERPRINT = /^f[1-9]\d{0,2}-[\w-]{22}$/;

/** `text` as a fingerprint of any version, or `undefined` when it does not have the form of one. */
export function parseFingerprint(text: string): Fingerprint | undefined {
  return FINGERPRINT.test(text) ? (text as Fingerprint) : undefined;
}

/** Whether a fingerprint was made by the rules here, or by those of an earlier version. */
export function isCurrent(fingerprint: Fingerprint): boolean {
  return fingerprint.startsWith(VERSION);
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
  /time[d -]{0,2}out|deadline[ _]?exceeded|resource[ _]?exhausted|no such host|unknown host|name or service not known|deadlock|lock wait|connection.{0,20}(?:refused|reset|aborted|closed|forcibly)|econn|enotfound|etimedout|eai_again|getaddrinfo|no route|unreachable|unavailable|too[ _]?many ?requests|throttl|rate ?limit|server ?busy|bad gateway|socket hang up|broken pipe|name resolution|unknownhost|\b(?:status|http)\b.{0,20}\b(?:408|429|5\d\d)\b/i;

/** Clients' exceptions for all that goes wrong on the way to another system, in whatever language they tell it. */
const CLIENTS = new Set(
  (
    'httprequestexception httpioexception socketexception webexception httphostconnectexception connectexception webclientrequestexception ' +
    'resourceaccessexception remoteprotocolerror connecterror readerror connectionerror newconnectionerror maxretryerror protocolerror'
  ).split(' '),
);
/** But the other system's refusal of this one letter is not its failure. */
const REFUSED =
  /\b(?:status|http|response|code)\b.{0,40}\b4(?!08|29)\d\d\b|\b4(?!08|29)\d\d (?:client error|bad request|not found)/i;

/** Exceptions that any program throws for anything; without a text they tell nothing. */
const BARE =
  /^(?:exception|error|throwable|baseexception|runtimeexception|runtimeerror|systemexception|applicationexception|aggregateexception)$/;

/**
 * The cause that evidence tells of: of the innermost exception its type, its text without values, and where in the
 * application's own code it was thrown; without an exception the reason and its description. Neither source nor message type are in it: a group
 * is one cause, wherever it strikes. But where the application has told nothing, nothing is known to be common: then the source of
 * the letter and its message type are part of the cause. The same evidence has the same fingerprint in every release. Never throws.
 */
export function causeOf(evidence: Evidence, source: SourceKey): Cause {
  const found = known.get(evidence);
  if (found?.source === source) return found.cause;
  const cause = findCause(evidence, source);
  known.set(evidence, { source, cause });
  return cause;
}

/** The record, the groups and the signals all ask for it. */
const known = new WeakMap<Evidence, { readonly source: SourceKey; readonly cause: Cause }>();

function findCause(evidence: Evidence, source: SourceKey): Cause {
  const reason = nonEmpty(evidence.reason, 4000);
  const code = reason?.replace(/\.$/, '').toLowerCase() ?? '';
  const broker = BROKER_REASONS.get(code);
  const type = nonEmpty(evidence.causeType, 1000) ?? nonEmpty(evidence.exceptionType, 1000);
  // The broker's description of its own reason is no account of an exception.
  const description = broker === undefined ? nonEmpty(evidence.description) : undefined;
  const message = nonEmpty(evidence.causeMessage) ?? nonEmpty(evidence.exceptionMessage);
  if (type === undefined && message === undefined) {
    if (broker !== undefined) return untold(['broker', code], broker, evidence, source);
    return withoutException(reason, description, evidence, source);
  }
  const name = type === undefined ? '' : shortName(type);
  const ownReason = broker === undefined && reason !== type ? reason : undefined;
  const text = templateOf(withoutName(message ?? description ?? ownReason ?? '', type, name));
  const isClients = CLIENTS.has(name.toLowerCase()) && !REFUSED.test(text.key);
  const isOutside = isClients || OUTSIDE.test(name) || OUTSIDE.test(text.key);
  const frame = isOutside ? '' : frameOf(evidence.frame ?? '');
  const told = [name, text.words].filter((part) => part !== '').join(': ');
  const parts = ['exception', name.toLowerCase(), text.key, frame];
  if (frame === '' && !isTold(text.key) && (name === '' || BARE.test(name.toLowerCase()))) {
    return untold(parts, told, evidence, source);
  }
  return cause(parts, frame === '' ? told : `${told} (in ${frame})`);
}

function withoutException(
  reason: string | undefined,
  description: string | undefined,
  evidence: Evidence,
  source: SourceKey,
): Cause {
  if (reason === undefined && description === undefined) {
    const isSkipped = evidence.mechanism === 'skipped';
    return untold(
      ['nothing', isSkipped ? 'skipped' : ''],
      isSkipped ? 'Nobody to handle it' : 'No reason told',
      evidence,
      source,
    );
  }
  const why = templateOf(reason ?? '');
  const how = templateOf(description ?? '');
  const told = [why.words, how.words === why.words ? '' : how.words].filter((part) => part !== '').join(': ');
  const parts = ['reason', why.key, how.key === why.key ? '' : how.key];
  // A framework's own word for it says no more than that it found nobody.
  const isOwn = evidence.mechanism !== 'skipped' && (isTold(why.key) || isTold(how.key));
  return isOwn ? cause(parts, told) : untold(parts, told, evidence, source);
}

/** Whether anything is left of a text beside values. */
function isTold(key: string): boolean {
  return /\p{L}/u.test(key);
}

/** A cause of which nothing is known but how the letter got here: one of its own for each source and message type. */
function untold(parts: readonly string[], words: string, { messageType }: Evidence, source: SourceKey): Cause {
  const type = templateOf(nonEmpty(messageType, 500) ?? '');
  const place = source.split('|').slice(1).join('/');
  const where = type.words === '' ? place : `${type.words} in ${place}`;
  return cause([...parts, 'at', source, type.key], `${words} (${where})`);
}

function cause(parts: readonly string[], words: string): Cause {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
  const fingerprint = `${VERSION}${hash.slice(0, 22)}` as Fingerprint;
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
