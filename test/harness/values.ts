/** Values for unit tests: a letter, its record, a source. Each test says only what it is about. */
import { parseCatalog, type Source } from '../../shared/catalog.ts';
import { LetterBody } from '../../shared/classify/body.ts';
import type { Classification } from '../../shared/classify/evidence.ts';
import { causeOf } from '../../shared/classify/fingerprint.ts';
import { Sight } from '../../shared/classify/sight.ts';
import {
  type IdentifiedLetter,
  identityDigest,
  type Letter,
  type PlanId,
  type SequenceNumber,
  type SourceKey,
} from '../../shared/letter.ts';
import type { LetterRecord } from '../../shared/records/letterRecord.ts';
import type { PlanHead } from '../../shared/records/plan.ts';

type Json = Record<string, unknown>;

export const CONNECTION =
  'Endpoint=sb://office.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=c2VjcmV0';
export const NUMBER = '17' as SequenceNumber;
export const PLAN_ID = '20261130t104512-k3f5q2xa' as PlanId;
/** 2026-11-30T10:45:12Z. */
export const NOW = Date.UTC(2026, 10, 30, 10, 45, 12);

export function aLetter(changes: Partial<Letter> = {}): Letter {
  return {
    sequenceNumber: NUMBER,
    state: 'held',
    messageId: 'm-1',
    correlationId: undefined,
    subject: undefined,
    contentType: 'application/json',
    sessionId: undefined,
    partitionKey: undefined,
    to: undefined,
    replyTo: undefined,
    deadLetterSource: undefined,
    enqueuedAt: NOW - 3_600_000,
    timeToLive: undefined,
    deliveryCount: 3,
    reason: 'UnsupportedCurrency',
    description: 'no such currency',
    properties: [],
    propertySize: { longest: 0, total: 0 },
    body: { kind: 'data', bytes: 100, hash: 'hash-1' },
    bytes: 300,
    replay: { count: 0, planId: undefined, of: undefined, at: undefined },
    ...changes,
  };
}

/** A letter as classification sees it, with `body` for its one section. */
export function aSight(changes: Partial<Letter> = {}, body = '', consumedBy?: string): Sight {
  const bytes = Buffer.from(body);
  const letter = aLetter({ body: { kind: 'data', bytes: bytes.length, hash: 'hash-1' }, ...changes });
  return new Sight(letter, new LetterBody(letter.body, () => [bytes]), consumedBy);
}

/** A letter as a chunk knows it. */
export function identified(letter: Letter): IdentifiedLetter {
  return { number: letter.sequenceNumber, identity: identityDigest(letter) };
}

export function aRecord(changes: Partial<Letter> = {}, found: Partial<Classification> = {}): LetterRecord {
  const letter = aLetter(changes);
  const classification: Classification = {
    category: 'unknown',
    advice: 'investigate',
    rule: 'application-reason',
    evidence: { ...(letter.reason !== undefined && { reason: letter.reason }) },
    dialects: ['service-bus'],
    layers: [],
    ...found,
  };
  const source = 'office.servicebus.windows.net|orders' as SourceKey;
  const { fingerprint, words } = causeOf(classification.evidence, source);
  return {
    source,
    office: 'test',
    letter,
    classification,
    fingerprint,
    cause: words,
    firstSeen: NOW - 1_800_000,
    cut: [],
  };
}

/** The least that a catalog says of a source. */
export function anEntry(changes: Json = {}): Json {
  return { name: 'orders', queue: 'orders', mode: 'defer', owner: { team: 't', contact: 'c' }, ...changes };
}

export function aCatalog(changes: Json = {}): Json {
  const namespaces = { main: { connection: 'ServiceBus' } };
  return { version: 1, office: 'test', namespaces, sources: [anEntry()], ...changes };
}

export const SETTINGS: Record<string, string> = { ServiceBus: CONNECTION };

/** The source of an entry, as the catalog resolves it. */
export function aSource(changes: Json = {}): Source {
  const [source] = parseCatalog(aCatalog({ sources: [anEntry(changes)] }), SETTINGS).sources;
  if (source === undefined) throw new Error('a catalog with one entry has one source');
  return source;
}

/** A subscription's entry. */
export const SUBSCRIPTION: Json = { queue: undefined, topic: 'events', subscription: 'billing' };

export function aPlan(changes: Partial<PlanHead> = {}): PlanHead {
  return {
    id: PLAN_ID,
    source: 'office.servicebus.windows.net|orders' as SourceKey,
    sourceName: 'orders',
    action: 'replay',
    target: 'orders',
    choices: { bypass: false, includeFixFirst: false, onDuplicate: 'skip', target: 'origin' },
    facts: { from: 'none', duplicateDetection: false, partitioned: false, maxMessageBytes: 262_144 },
    seen: false,
    selection: '{}',
    findings: [],
    state: 'ready',
    stateReason: '',
    createdAt: NOW,
    createdBy: 'ada',
    expiresAt: NOW + 86_400_000,
    cursor: undefined,
    looked: 0,
    chunks: 1,
    counts: { planned: 2, pending: 2, done: 0, skipped: 0, failed: 0, left: 0, maybeDuplicate: 0 },
    request: 'none',
    runner: '',
    tally: { reason: {}, category: {}, age: {}, bytes: 0 },
    pace: { rate: 0, ramp: undefined },
    progress: { step: 0, doneBefore: 0, returnedBefore: 0, observedFrom: 0, pacedFrom: 0, pacedDone: 0 },
    startedAt: undefined,
    startedBy: '',
    finishedAt: undefined,
    ...changes,
  };
}
