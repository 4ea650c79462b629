/** Table `letters`: what the office knows of each letter. PartitionKey source key, RowKey padded sequence number. */
import { z } from 'zod';
import { ADVICES, CATEGORIES, type Classification } from '../classify/evidence.ts';
import {
  isSameMessage,
  type Letter,
  type LetterProperty,
  type PlanId,
  parsePlanId,
  parseSequenceNumber,
  type SequenceNumber,
  type SourceKey,
} from '../letter.ts';
import type { StorageConnection } from './connection.ts';
import { Cutter, checked, dateCell, json, numberKey, time } from './rows.ts';
import { type Cell, MAX_STEPS, odata, type RowWrite, StoreConflict, type StoredRow, Table } from './table.ts';

/** How a letter left. `gone`: it was not there any more, and not by the office's doing. */
export const FATES = ['replayed', 'discarded', 'expired', 'gone'] as const;
export type LetterFate = (typeof FATES)[number];

/** A letter as recorded. Bodies are never stored. Times are ms since 1970. */
export interface LetterRecord {
  readonly source: SourceKey;
  /** The office that recorded it. */
  readonly office: string;
  /** As read; `state` is what it was then. */
  readonly letter: Letter;
  readonly classification: Classification;
  readonly firstSeen: number;
  /** Columns that were cut to the table's limits. */
  readonly cut: readonly string[];
  /** A plan that may have sent it already, although the letter is still here. */
  readonly maybeSentBy?: PlanId;
  /** Absent while the letter is open. */
  readonly closed?: { readonly fate: LetterFate; readonly at: number; readonly planId?: PlanId };
}

/** Whether a recording was the first of its kind. `replaced`: the number now belongs to another message. */
export type Recorded = 'new' | 'known' | 'replaced';

// Rows of one transaction together must stay below 4 MiB; a row here is at most about 60 KiB.
const ROWS_PER_WRITE = 50;

/** The letters table. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class LetterStore {
  readonly #table: Table;
  readonly #office: string;

  constructor(connection: StorageConnection, office: string) {
    this.#table = new Table(connection, 'letters');
    this.#office = office;
  }

  /**
   * Records letters of one source. What was known keeps its first-seen time and its fate; a number that now belongs
   * to another message (entities are recreated) starts a new record.
   */
  async record(
    source: SourceKey,
    letters: readonly { letter: Letter; classification: Classification }[],
    now: number,
  ): Promise<Recorded[]> {
    const results: Recorded[] = [];
    for (let i = 0; i < letters.length; i += ROWS_PER_WRITE) {
      const part = letters.slice(i, i + ROWS_PER_WRITE);
      const rows = part.map(({ letter, classification }) => toRow(source, this.#office, letter, classification, now));
      try {
        await this.#table.transact(rows.map((row) => ({ kind: 'insert', row })));
        results.push(...part.map(() => 'new' as const));
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error;
        // Rare: some are known already, after a crash between recording and holding.
        for (const [index, row] of rows.entries()) {
          results.push(await this.#recordOne(row, (part[index] as { letter: Letter }).letter));
        }
      }
    }
    return results;
  }

  async #recordOne(row: RowWrite, letter: Letter): Promise<Recorded> {
    try {
      await this.#table.insert(row);
      return 'new';
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
    }
    const stored = await this.#table.get(row.partitionKey, row.rowKey);
    const known = stored && this.#readable(stored);
    if (known && isSameMessage(known.letter, letter)) {
      // It is in the DLQ, so a record that calls it gone was too early; any other fate is a run's word and stays.
      const { firstSeen: _kept, fate: _fate, closedAt: _closed, ...evidence } = row;
      await this.#table.merge({ ...evidence, ...(known.closed?.fate === 'gone' && { fate: 'open' }) } as RowWrite);
      return 'known';
    }
    await this.#table.replace(row);
    return 'replaced';
  }

  /** The record of one letter, or `undefined`. Throws `DLO_RECORD_UNREADABLE`. */
  async get(source: SourceKey, number: SequenceNumber): Promise<LetterRecord | undefined> {
    const row = await this.#table.get(source, numberKey(number));
    return row && fromRow(row);
  }

  /**
   * Open letters of a source in ascending order, from number `from` (inclusive). Rows that cannot be read are passed
   * over here (they keep no letter from being listed); `get` tells what is wrong with one.
   */
  async *open(
    source: SourceKey,
    options: { from?: SequenceNumber; seenUntil?: number; pageSize?: number } = {},
  ): AsyncGenerator<LetterRecord> {
    for await (const row of this.#table.query(openFilter(source, options), { pageSize: options.pageSize ?? 500 })) {
      const record = this.#readable(row);
      if (record) yield record;
    }
  }

  /** Marks letters as having left, in one write a hundred. Overrides `gone`, which is only ever a finding. */
  async close(
    source: SourceKey,
    numbers: readonly SequenceNumber[],
    fate: LetterFate,
    at: number,
    planId?: PlanId,
  ): Promise<void> {
    const cells = { fate, closedAt: new Date(at), ...(planId !== undefined && { closedBy: planId }) };
    await this.#mergeAll(source, numbers, cells);
  }

  /** Notes on letters that are still here that a plan may have sent them already. */
  async markMaybeSent(source: SourceKey, numbers: readonly SequenceNumber[], planId: PlanId): Promise<void> {
    await this.#mergeAll(source, numbers, { maybeSentBy: planId });
  }

  async #mergeAll(source: SourceKey, numbers: readonly SequenceNumber[], cells: Record<string, Cell>): Promise<void> {
    for (let i = 0; i < numbers.length; i += MAX_STEPS) {
      const part = numbers.slice(i, i + MAX_STEPS);
      await this.#table.transact(
        part.map((number) => ({
          kind: 'merge',
          row: { ...cells, partitionKey: source, rowKey: numberKey(number) },
        })),
      );
    }
  }

  /** Marks one open letter as gone, unless somebody closed it in the meantime. */
  async markGone(source: SourceKey, number: SequenceNumber, at: number): Promise<boolean> {
    const row = await this.#table.get(source, numberKey(number));
    if (row?.fate !== 'open') return false;
    try {
      const gone: LetterFate = 'gone';
      const key = { partitionKey: row.partitionKey, rowKey: row.rowKey };
      await this.#table.merge({ ...key, fate: gone, closedAt: new Date(at) }, row.etag);
      return true;
    } catch (error) {
      if (error instanceof StoreConflict) return false;
      throw error;
    }
  }

  /** Removes records of letters that left before `before`, at most `max`. Returns how many. */
  async forgetClosed(source: SourceKey, before: number, max: number): Promise<number> {
    const filter = odata`PartitionKey eq ${source} and fate ne 'open' and closedAt lt ${new Date(before)}`;
    const keys: string[] = [];
    for await (const row of this.#table.query(filter, { select: ['PartitionKey', 'RowKey'] })) {
      keys.push(row.rowKey);
      if (keys.length >= max) break;
    }
    for (let i = 0; i < keys.length; i += MAX_STEPS) {
      const part = keys.slice(i, i + MAX_STEPS);
      await this.#table.transact(part.map((rowKey) => ({ kind: 'delete', partitionKey: source, rowKey })));
    }
    return keys.length;
  }

  /** Counts and ages of a source's open letters, for a snapshot. */
  async tally(source: SourceKey): Promise<Tally> {
    const byCategory: Record<string, number> = {};
    let open = 0;
    let oldest: number | undefined;
    const select = ['PartitionKey', 'RowKey', 'category', 'firstSeen'];
    for await (const row of this.#table.query(openFilter(source, {}), { select })) {
      open++;
      const parsed = tallyRow.safeParse(row);
      if (!parsed.success) continue;
      byCategory[parsed.data.category] = (byCategory[parsed.data.category] ?? 0) + 1;
      if (oldest === undefined || parsed.data.firstSeen < oldest) oldest = parsed.data.firstSeen;
    }
    return { open, byCategory, oldest };
  }

  #readable(row: StoredRow): LetterRecord | undefined {
    const parsed = rowSchema.safeParse(row);
    return parsed.success ? toRecord(parsed.data) : undefined;
  }
}

/** Counts of open letters, and when the oldest of them was first seen (ms since 1970). */
export interface Tally {
  readonly open: number;
  readonly byCategory: Readonly<Record<string, number>>;
  readonly oldest: number | undefined;
}

function openFilter(source: SourceKey, options: { from?: SequenceNumber; seenUntil?: number }): string {
  const parts = [odata`PartitionKey eq ${source} and fate eq 'open'`];
  if (options.from !== undefined) parts.push(odata`RowKey ge ${numberKey(options.from)}`);
  if (options.seenUntil !== undefined) parts.push(odata`firstSeen le ${new Date(options.seenUntil)}`);
  return parts.join(' and ');
}

const tallyRow = z.object({ category: z.enum(CATEGORIES), firstSeen: time });

const propertySchema = z.object({
  name: z.string(),
  type: z.string(),
  value: z.union([z.string(), z.number(), z.boolean(), z.null()]),
});

const sequence = z.string().transform((text, context) => {
  const number = parseSequenceNumber(text);
  if (number !== undefined) return number;
  context.addIssue({ code: 'custom', message: 'is not a sequence number' });
  return z.NEVER;
});
const planId = z.string().transform((text) => parsePlanId(text));

const rowSchema = z.object({
  partitionKey: z.string().transform((key) => key as SourceKey),
  sequenceNumber: sequence,
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
  enqueuedAt: time,
  timeToLive: z.number().optional(),
  deliveryCount: z.number(),
  reason: z.string().optional(),
  description: z.string().optional(),
  properties: json(z.array(propertySchema)),
  bodyKind: z.enum(['data', 'data-several', 'value', 'sequence', 'none']),
  bodyBytes: z.number(),
  bodyHash: z.string(),
  bytes: z.number(),
  replayCount: z.number(),
  replayId: planId.optional(),
  replayOf: sequence.optional(),
  replayedAt: time.optional(),
  category: z.enum(CATEGORIES),
  advice: z.enum(ADVICES),
  rule: z.string(),
  evidenceReason: z.string().optional(),
  exceptionType: z.string().optional(),
  messageType: z.string().optional(),
  dialects: z.string(),
  classifyError: z.string().optional(),
  firstSeen: time,
  cut: json(z.array(z.string())),
  fate: z.enum(['open', ...FATES]),
  closedAt: time.optional(),
  closedBy: planId.optional(),
  maybeSentBy: planId.optional(),
});

function fromRow(row: StoredRow): LetterRecord {
  return toRecord(checked(rowSchema, row, 'letters'));
}

function toRow(source: SourceKey, office: string, letter: Letter, found: Classification, now: number): RowWrite {
  const cutter = new Cutter();
  const { evidence } = found;
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
    enqueuedAt: dateCell(letter.enqueuedAt) ?? new Date(0),
    timeToLive: letter.timeToLive,
    deliveryCount: letter.deliveryCount,
    reason: cutter.text('reason', letter.reason, 4096),
    description: cutter.text('description', letter.description),
    properties: JSON.stringify(properties),
    bodyKind: letter.body.kind,
    bodyBytes: letter.body.bytes,
    bodyHash: letter.body.hash,
    bytes: letter.bytes,
    replayCount: letter.replay.count,
    replayId: letter.replay.planId,
    replayOf: letter.replay.of,
    replayedAt: dateCell(letter.replay.at),
    category: found.category,
    advice: found.advice,
    rule: found.rule,
    evidenceReason: cutter.text('evidence.reason', evidence.reason, 4096),
    exceptionType: cutter.text('evidence.exceptionType', evidence.exceptionType, 1024),
    messageType: cutter.text('evidence.messageType', evidence.messageType, 1024),
    dialects: found.dialects.join(','),
    classifyError: cutter.text('error', found.error, 1024),
    firstSeen: new Date(now),
    cut: JSON.stringify(cutter.cut),
    fate: 'open',
  };
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
    room -= JSON.stringify(entry).length + 1;
    if (room < 0) {
      cutter.cut.push('properties');
      break;
    }
    fitting.push(entry);
  }
  return fitting;
}

function toRecord(row: z.infer<typeof rowSchema>): LetterRecord {
  return {
    source: row.partitionKey,
    office: row.office,
    firstSeen: row.firstSeen,
    cut: row.cut,
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
      enqueuedAt: row.enqueuedAt,
      timeToLive: row.timeToLive,
      deliveryCount: row.deliveryCount,
      reason: row.reason,
      description: row.description,
      properties: row.properties,
      body: { kind: row.bodyKind, bytes: row.bodyBytes, hash: row.bodyHash },
      bytes: row.bytes,
      replay: { count: row.replayCount, planId: row.replayId, of: row.replayOf, at: row.replayedAt },
    },
    classification: {
      category: row.category,
      advice: row.advice,
      rule: row.rule,
      dialects: row.dialects === '' ? [] : row.dialects.split(','),
      ...(row.classifyError !== undefined && { error: row.classifyError }),
      evidence: {
        ...(row.evidenceReason !== undefined && { reason: row.evidenceReason }),
        ...(row.description !== undefined && { description: row.description }),
        ...(row.exceptionType !== undefined && { exceptionType: row.exceptionType }),
        ...(row.messageType !== undefined && { messageType: row.messageType }),
      },
    },
  };
}
