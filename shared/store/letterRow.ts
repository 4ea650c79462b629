/** A letter's record and the row it is stored in. */
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { ADVICES, CATEGORIES, type Classification, type Evidence } from '../classify/evidence.ts';
import { causeOf, isCurrent, NOT_RECORDED } from '../classify/fingerprint.ts';
import { formerFingerprint } from '../classify/former/fingerprint.ts';
import { clean, LIMIT, present } from '../classify/text.ts';
import {
  identityDigest,
  type Letter,
  type LetterProperty,
  parsePlanId,
  parseSequenceNumber,
  type SourceKey,
} from '../letter.ts';
import type { Shown } from '../mask.ts';
import { FATES, type LetterRecord } from '../records/letterRecord.ts';
import { foundCell, foundText, NOTHING_FOUND } from './foundCell.ts';
import { Cutter, checked, cutCell, dateCell, fingerprintCell, json, numberKey, time } from './rows.ts';
import type { RowWrite, StoredRow } from './table.ts';

const propertySchema = z.object({
  name: z.string(),
  type: z.string(),
  value: z.union([z.string(), z.number(), z.boolean(), z.null()]),
});

/** A cell with a sequence number. */
export const sequenceNumber = z.string().transform((text, context) => {
  const number = parseSequenceNumber(text);
  if (number !== undefined) return number;
  context.addIssue({ code: 'custom', message: 'is not a sequence number' });
  return z.NEVER;
});
/** Names of fields, none of which has a comma. */
export const hiddenCell = z.string().transform((text) => (text === '' ? [] : text.split(',')));
const planId = z.string().transform((text) => parsePlanId(text));

const rowSchema = z.object({
  partitionKey: z.string().transform((key) => key as SourceKey),
  sequenceNumber,
  office: z.string(),
  state: z.enum(['active', 'held']),
  messageId: z.string().optional(),
  correlationId: z.string().optional(),
  subject: z.string().optional(),
  contentType: z.string().optional(),
  sessionId: z.string().optional(),
  partition: z.string().optional(),
  to: z.string().optional(),
  replyTo: z.string().optional(),
  deadLetterSource: z.string().optional(),
  enqueuedAt: time,
  timeToLive: z.number().optional(),
  deliveryCount: z.number(),
  reason: z.string().optional(),
  description: z.string().optional(),
  properties: json(z.array(propertySchema)),
  /** Absent in rows written before their sizes mattered. */
  longestProperty: z.number().default(0),
  propertyBytes: z.number().default(0),
  bodyKind: z.enum(['data', 'data-several', 'value', 'sequence', 'none']),
  bodyBytes: z.number(),
  bodyHash: z.string(),
  bytes: z.number(),
  replayCount: z.number(),
  replayId: planId.optional(),
  replayOf: sequenceNumber.optional(),
  replayedAt: time.optional(),
  category: z.enum(CATEGORIES),
  advice: z.enum(ADVICES),
  rule: z.string(),
  evidenceReason: z.string().optional(),
  exceptionType: z.string().optional(),
  messageType: z.string().optional(),
  dialects: z.string(),
  classifyError: z.string().optional(),
  fingerprint: fingerprintCell.optional(),
  cause: z.string().optional(),
  /** Absent in rows written before there was a second version of fingerprints. */
  formerly: fingerprintCell.optional().catch(undefined),
  /** Absent in rows written before there was more evidence than has columns. */
  found: foundCell.optional(),
  firstSeen: time,
  cut: json(z.array(z.string())),
  /** Absent in rows written before texts were hidden by value. */
  hidden: hiddenCell.optional(),
  /** Absent in rows written before there were bare records. */
  refused: z.string().optional(),
  fate: z.enum(['open', ...FATES]),
  closedAt: time.optional(),
  closedBy: planId.optional(),
  maybeSentBy: planId.optional(),
});

/** A stored row as a record. Throws `DLO_RECORD_UNREADABLE`. */
export function fromRow(row: StoredRow): LetterRecord {
  return toRecord(checked(rowSchema, row, 'letters'));
}

/** The row of a letter seen for the first time. */
export function toRow(
  source: SourceKey,
  office: string,
  letter: Letter,
  found: Classification,
  now: number,
  shown: Shown = { classification: found, hidden: [] },
): RowWrite {
  const cutter = new Cutter();
  const properties = fittingProperties(letter.properties, cutter);
  return {
    partitionKey: source,
    rowKey: numberKey(letter.sequenceNumber),
    sequenceNumber: letter.sequenceNumber,
    office,
    state: letter.state,
    messageId: cutter.text('messageId', letter.messageId, 512),
    correlationId: cutter.text('correlationId', letter.correlationId, 512),
    subject: cutter.text('subject', letter.subject, 1024),
    contentType: cutter.text('contentType', letter.contentType, 256),
    sessionId: cutter.text('sessionId', letter.sessionId, 512),
    partition: cutter.text('partitionKey', letter.partitionKey, 512),
    to: cutter.text('to', letter.to, 1024),
    replyTo: cutter.text('replyTo', letter.replyTo, 1024),
    deadLetterSource: cutter.text('deadLetterSource', letter.deadLetterSource, 512),
    enqueuedAt: dateCell(letter.enqueuedAt) ?? new Date(0),
    timeToLive: letter.timeToLive,
    deliveryCount: letter.deliveryCount,
    reason: cutter.text('reason', letter.reason, 4096),
    description: cutter.text('description', letter.description),
    properties: JSON.stringify(properties),
    longestProperty: letter.propertySize.longest,
    propertyBytes: letter.propertySize.total,
    bodyKind: letter.body.kind,
    bodyBytes: letter.body.bytes,
    bodyHash: letter.body.hash,
    bytes: letter.bytes,
    replayCount: letter.replay.count,
    replayId: letter.replay.planId,
    replayOf: letter.replay.of,
    replayedAt: dateCell(letter.replay.at),
    ...foundCells(found, cutter),
    ...causeCells(source, shown.classification),
    formerly: formerFingerprint(found.evidence),
    hidden: shown.hidden.join(','),
    firstSeen: new Date(now),
    cut: cutCell(cutter.cut),
    refused: '',
    fate: 'open',
  };
}

/** What stands in the columns with strangers' words when the store does not take them. The message's identity stays. */
const BARE: Readonly<Record<string, string | undefined>> = {
  correlationId: undefined,
  subject: undefined,
  contentType: undefined,
  to: undefined,
  replyTo: undefined,
  deadLetterSource: undefined,
  reason: undefined,
  description: undefined,
  properties: '[]',
  evidenceReason: '',
  exceptionType: '',
  messageType: '',
  classifyError: '',
  found: NOTHING_FOUND,
  cause: NOT_RECORDED,
  cut: cutCell([
    'correlationId',
    'subject',
    'contentType',
    'to',
    'replyTo',
    'deadLetterSource',
    'reason',
    'description',
    'properties',
    'evidence',
  ]),
};

/** The same row without strangers' words, for a store that refuses it for good; `why` is told on the record. */
export function toBareRow(row: RowWrite, why: string): RowWrite {
  const cells = Object.entries(row).map(([name, cell]) => [name, name in BARE ? BARE[name] : cell] as const);
  return {
    ...Object.fromEntries(cells),
    partitionKey: row.partitionKey,
    rowKey: row.rowKey,
    refused: why.slice(0, 500),
  };
}

/** Columns of a classification. None is left out: a merge would keep what an earlier one has found. */
function foundCells(found: Classification, cutter: Cutter) {
  const { evidence } = found;
  return {
    category: found.category,
    advice: found.advice,
    rule: found.rule.slice(0, 600),
    evidenceReason: cutter.text('evidence.reason', evidence.reason, 4096) ?? '',
    exceptionType: cutter.text('evidence.exceptionType', evidence.exceptionType, 1024) ?? '',
    messageType: cutter.text('evidence.messageType', evidence.messageType, 1024) ?? '',
    dialects: found.dialects.join(','),
    classifyError: cutter.text('error', found.error, 1024) ?? '',
    found: foundText(found, cutter),
  };
}

/** The group and cause, of what may be shown: they stand in lists, signals and head lines. In the words of the rule that knows it where one does. */
function causeCells(source: SourceKey, { evidence, label }: Pick<Classification, 'evidence' | 'label'>) {
  const { fingerprint, words } = causeOf(evidence, source);
  return { fingerprint, cause: label ?? words };
}

/**
 * What changes in the row of `record` when its letter is judged anew. `isReread`: the letter itself was read again; else the
 * evidence is the recorded one, and what was cut of it stays cut.
 */
export function toRejudged(
  record: LetterRecord,
  found: Classification,
  isReread: boolean,
  shown: Shown = { classification: found, hidden: [] },
): RowWrite {
  const cutter = new Cutter();
  const cells = foundCells(found, cutter);
  const kept = record.cut.filter((name) => !isReread || !/^(?:evidence(?:\.|$)|layers$|error$)/.test(name));
  return {
    partitionKey: record.source,
    rowKey: numberKey(record.letter.sequenceNumber),
    ...cells,
    ...causeCells(record.source, shown.classification),
    formerly: record.formerly,
    hidden: [...new Set([...shown.hidden, ...(isReread ? [] : (record.hidden ?? []))])].join(','),
    // Made of recorded evidence, which may be cut, it could be another one.
    ...(!isReread && { fingerprint: record.fingerprint }),
    cut: cutCell([...kept, ...cutter.cut]),
    ...(isReread && { refused: '' }),
  };
}

/** What changes in a row whose group was made by an earlier version, or that has none. */
export function toRegrouped({ source, letter, fingerprint, cause, formerly }: LetterRecord): RowWrite {
  return { partitionKey: source, rowKey: numberKey(letter.sequenceNumber), fingerprint, cause, formerly };
}

/** Whether a classification would be stored just as the record has it. */
export function isStoredAlike(record: LetterRecord, found: Classification, hidden: readonly string[] = []): boolean {
  if (!hidden.every((field) => record.hidden?.includes(field))) return false;
  const cells = (one: Classification) => {
    const { found: text, ...columns } = foundCells(one, new Cutter());
    return { ...columns, found: JSON.parse(text) as unknown };
  };
  return isDeepStrictEqual(cells(record.classification), cells(found));
}

/** A stored row as a record, or `undefined` when it cannot be read. */
export function readable(row: StoredRow): LetterRecord | undefined {
  const parsed = rowSchema.safeParse(row);
  return parsed.success ? toRecord(parsed.data) : undefined;
}

const identityRow = rowSchema.pick({ messageId: true, enqueuedAt: true, bodyHash: true });

/** The digest of the message that a row is of, also where the rest of it cannot be read; `undefined` when it does not say. */
export function identityOf(row: StoredRow): string | undefined {
  const parsed = identityRow.safeParse(row);
  if (!parsed.success) return undefined;
  const { messageId, enqueuedAt, bodyHash } = parsed.data;
  return identityDigest({ messageId, enqueuedAt, body: { hash: bodyHash } });
}

/** As many properties as fit one cell, in their order; long values are cut, and what is missing is told by `cut`. */
function fittingProperties(properties: readonly LetterProperty[], cutter: Cutter): LetterProperty[] {
  const fitting: LetterProperty[] = [];
  let room = 30_000;
  for (const property of properties) {
    const value =
      typeof property.value === 'string'
        ? cutter.text(`properties.${property.name}`, property.value, 2048)
        : property.value;
    const entry = { ...property, value: value ?? null };
    const length = JSON.stringify(entry).length + 1;
    // One that is too large by itself keeps no other from its place.
    if (length > room) cutter.cut.push('properties');
    else {
      room -= length;
      fitting.push(entry);
    }
  }
  return fitting;
}

function toRecord(row: z.infer<typeof rowSchema>): LetterRecord {
  const evidence = evidenceOf(row);
  return {
    source: row.partitionKey,
    office: row.office,
    ...groupIn(row, evidence),
    firstSeen: row.firstSeen,
    cut: row.cut,
    ...(row.refused && { refused: row.refused }),
    ...(row.hidden !== undefined && row.hidden.length > 0 && { hidden: row.hidden }),
    ...(row.maybeSentBy !== undefined && { maybeSentBy: row.maybeSentBy }),
    ...(row.fate !== 'open' && {
      closed: { fate: row.fate, at: row.closedAt ?? 0, ...(row.closedBy !== undefined && { planId: row.closedBy }) },
    }),
    letter: {
      sequenceNumber: row.sequenceNumber,
      state: row.state,
      messageId: row.messageId,
      correlationId: row.correlationId,
      subject: row.subject,
      contentType: row.contentType,
      sessionId: row.sessionId,
      partitionKey: row.partition,
      to: row.to,
      replyTo: row.replyTo,
      deadLetterSource: row.deadLetterSource,
      enqueuedAt: row.enqueuedAt,
      timeToLive: row.timeToLive,
      deliveryCount: row.deliveryCount,
      reason: row.reason,
      description: row.description,
      properties: row.properties,
      propertySize: { longest: row.longestProperty, total: row.propertyBytes },
      body: { kind: row.bodyKind, bytes: row.bodyBytes, hash: row.bodyHash },
      bytes: row.bytes,
      replay: { count: row.replayCount, planId: row.replayId, of: row.replayOf, at: row.replayedAt },
    },
    classification: {
      category: row.category,
      advice: row.advice,
      rule: row.rule,
      dialects: row.dialects === '' ? [] : row.dialects.split(','),
      ...(row.classifyError && { error: row.classifyError }),
      layers: row.found?.layers.map((layer) => ({ ...layer, evidence: present(layer.evidence) })) ?? [],
      ...present({
        label: row.found?.label,
        runbook: row.found?.runbook,
        violations: row.found?.violations,
        unread: row.found?.unread,
        signs: row.found?.signs,
      }),
      evidence,
    },
  };
}

/** The group as it is kept; where another version made it, by the rules of today, with its former name beside it. */
function groupIn(
  { partitionKey, fingerprint, cause, formerly, found }: z.infer<typeof rowSchema>,
  evidence: Evidence,
): Pick<LetterRecord, 'fingerprint' | 'cause' | 'formerly'> {
  if (fingerprint && isCurrent(fingerprint) && cause !== undefined)
    return { fingerprint, cause, ...present({ formerly }) };
  const before = formerly ?? (fingerprint && !isCurrent(fingerprint) ? fingerprint : formerFingerprint(evidence));
  return { ...causeCells(partitionKey, { evidence, ...present({ label: found?.label }) }), formerly: before };
}

function evidenceOf(row: z.infer<typeof rowSchema>): Evidence {
  return present({
    ...row.found?.evidence,
    reason: row.evidenceReason || undefined,
    description: clean(row.description, LIMIT.reason),
    exceptionType: row.exceptionType || undefined,
    messageType: row.messageType || undefined,
  });
}
