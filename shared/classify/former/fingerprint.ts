/**
 * Fingerprints of version 1, as they were made: what people said of a cause then (a hold above all) has to be found by letters
 * that come now. Nothing in this folder may change; it can go when no triage under an `f1-` fingerprint is left anywhere.
 */
import { createHash } from 'node:crypto';
import type { Evidence } from '../evidence.ts';
import type { Fingerprint } from '../fingerprint.ts';
import { frameOf } from './frame.ts';
import { templateOf } from './template.ts';

/** Reasons that the broker gives by itself: it decided, and its text tells no more. */
const BROKER_REASONS: ReadonlySet<string> = new Set([
  'maxdeliverycountexceeded',
  'ttlexpiredexception',
  'headersizeexceeded',
  'session id is null',
  'maxtransferhopcountexceeded',
]);

/**
 * Failures of something outside of the program: which of its lines was waiting is chance, and a cause over four queues would
 * be four causes.
 */
const OUTSIDE =
  /time[d -]{0,2}out|deadline ?exceeded|deadlock|lock wait|connection.{0,20}(?:refused|reset|aborted|closed|forcibly)|econn|enotfound|etimedout|eai_again|getaddrinfo|no route|unreachable|unavailable|too ?many ?requests|throttl|rate ?limit|server ?busy|bad gateway|socket hang up|broken pipe|name resolution|unknownhost|\b(?:status|http)\b.{0,20}\b(?:408|429|5\d\d)\b/i;

/** The fingerprint that version 1 gave to evidence. Never throws. */
export function formerFingerprint(evidence: Evidence): Fingerprint {
  let fingerprint = known.get(evidence);
  if (fingerprint === undefined) {
    fingerprint = findFingerprint(evidence);
    known.set(evidence, fingerprint);
  }
  return fingerprint;
}

/** The record and the groups both ask for it. */
const known = new WeakMap<Evidence, Fingerprint>();

function findFingerprint(evidence: Evidence): Fingerprint {
  const reason = nonEmpty(evidence.reason, 4000);
  const code = reason?.replace(/\.$/, '').toLowerCase() ?? '';
  const broker = BROKER_REASONS.has(code);
  const type = nonEmpty(evidence.causeType, 1000) ?? nonEmpty(evidence.exceptionType, 1000);
  // The broker's description of its own reason is no account of an exception.
  const description = broker ? undefined : nonEmpty(evidence.description);
  const message = nonEmpty(evidence.causeMessage) ?? nonEmpty(evidence.exceptionMessage);
  if (type === undefined && message === undefined) {
    return broker ? hashed(['broker', code]) : withoutException(reason, description);
  }
  const name = type === undefined ? '' : shortName(type);
  const ownReason = !broker && reason !== type ? reason : undefined;
  const text = templateOf(withoutName(message ?? description ?? ownReason ?? '', type, name));
  const isOutside = OUTSIDE.test(name) || OUTSIDE.test(text.key);
  const frame = isOutside ? '' : frameOf(evidence.frame ?? '');
  return hashed(['exception', name.toLowerCase(), text.key, frame]);
}

function withoutException(reason: string | undefined, description: string | undefined): Fingerprint {
  if (reason === undefined && description === undefined) return hashed(['nothing']);
  const why = templateOf(reason ?? '');
  const how = templateOf(description ?? '');
  return hashed(['reason', why.key, how.key === why.key ? '' : how.key]);
}

function hashed(parts: readonly string[]): Fingerprint {
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('base64url');
  return `f1-${hash.slice(0, 22)}` as Fingerprint;
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
