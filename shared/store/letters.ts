/** Table `letters`: what the office knows of each letter. PartitionKey source key, RowKey padded sequence number. */
import { z } from 'zod';
import type { Classification } from '../classify/evidence.ts';
import { causeOf, type Fingerprint, VERSION } from '../classify/fingerprint.ts';
import {
  type IdentifiedLetter,
  isSameMessage,
  type Letter,
  type PlanId,
  parseSequenceNumber,
  type SequenceNumber,
  type SourceKey,
} from '../letter.ts';
import type { Shown } from '../mask.ts';
import { inParallel } from '../parallel.ts';
import type { Sighting } from '../records/group.ts';
import type { LetterFate, LetterRecord } from '../records/letterRecord.ts';
import type { StorageConnection } from './connection.ts';
import {
  currentOf,
  type Grouped,
  groupedRow,
  memberRow,
  type SightingRow,
  sightingOf,
  sightingRow,
  tallyRow,
  toGrouped,
  toSighting,
  UNGROUPED,
} from './groupedRow.ts';
import { inWrites } from './inWrites.ts';
import { fromRow, identityOf, readable, toBareRow, toRegrouped, toRejudged, toRow } from './letterRow.ts';
import { numberKey, time } from './rows.ts';
import {
  type Cell,
  isRefused,
  MAX_STEPS,
  odata,
  type RowWrite,
  type Step,
  StoreConflict,
  type StoredRow,
  Table,
} from './table.ts';

/**
 * What a recording met. `replaced`: the number now belongs to another message. `closed`: the letter is recorded as replayed,
 * discarded or expired, and stays so: whether it is there after all has to be looked at again.
 */
export type Recorded = 'new' | 'known' | 'replaced' | 'closed';

/** Numbers that lie no further apart are read with all that is between them: a page of the store has room for so many. */
const MAX_SPAN = 500n;

/** Rows that are looked up by their keys before the first of them is handed on. */
const LOOKED_UP_AT_ONCE = 100;

/** A letter and its row to be written. */
interface Made {
  readonly letter: Letter;
  readonly row: RowWrite;
}

/** A record and its row to be written. */
interface Rejudged extends VersionedLetter {
  readonly row: RowWrite;
}

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
    letters: readonly { letter: Letter; classification: Classification; shown?: Shown }[],
    now: number,
  ): Promise<Recorded[]> {
    const made = letters.map(({ letter, classification, shown }) => ({
      letter,
      row: toRow(source, this.#office, letter, classification, now, shown),
    }));
    return (await inParallel(inWrites(made), (part) => this.#recordPart(part))).flat();
  }

  /** What the store will never take as it is keeps no other letter from being recorded: each goes alone, and then bare. */
  async #recordPart(part: readonly Made[]): Promise<Recorded[]> {
    try {
      return await this.#recordTogether(part);
    } catch (error) {
      if (!isRefused(error)) throw error;
      if (part.length > 1) return (await inParallel(part, (one) => this.#recordPart([one]))).flat();
      return this.#recordTogether(part.map(({ letter, row }) => ({ letter, row: toBareRow(row, error.message) })));
    }
  }

  async #recordTogether(part: readonly Made[]): Promise<Recorded[]> {
    const rows = part.map(({ row }) => row);
    try {
      await this.#table.transact(rows.map((row) => ({ kind: 'insert', row })));
      return part.map(() => 'new');
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
      // Rare: some are known already, after a crash between recording and holding.
      return this.#recordAgain(rows, part);
    }
  }

  /**
   * Records letters some of which are known. In few calls: the locks on them run out meanwhile, and a store that fails now
   * and then would never let a hundred calls in a row through.
   */
  async #recordAgain(rows: readonly RowWrite[], letters: readonly { letter: Letter }[]): Promise<Recorded[]> {
    for (;;) {
      const stored = await inParallel(rows, (row) => this.#table.get(row.partitionKey, row.rowKey));
      const results: Recorded[] = [];
      const steps = rows.map((row, i): Step => {
        const found = stored[i];
        if (found === undefined) {
          results.push('new');
          return { kind: 'insert', row };
        }
        const known = readable(found);
        if (known === undefined || !isSameMessage(known.letter, (letters[i] as { letter: Letter }).letter)) {
          results.push('replaced');
          return { kind: 'replace', row };
        }
        const isClosed = known.closed !== undefined && known.closed.fate !== 'gone';
        results.push(isClosed ? 'closed' : 'known');
        // It is in the DLQ, so a record that calls it gone was too early; any other fate may be younger than what was read.
        const { firstSeen: _kept, fate: _fate, closedAt: _closed, ...evidence } = row;
        const formerly = known.formerly ?? row.formerly; // what it was called then, not what it would be called
        return {
          kind: 'merge',
          row: { ...evidence, formerly, ...(known.closed?.fate === 'gone' && { fate: 'open' }) } as RowWrite,
        };
      });
      try {
        await this.#table.transact(steps);
        return results;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error; // somebody recorded one of them meanwhile: look again
      }
    }
  }

  /**
   * Writes new judgements of recorded letters, where they are still open and still the same messages; first-seen time, fate and
   * all that is read from the message stay. Returns how many were written.
   */
  async rejudge(
    changes: readonly (VersionedLetter & {
      readonly classification: Classification;
      readonly isReread: boolean;
      readonly shown?: Shown;
    })[],
  ): Promise<number> {
    const made = changes.map((change) => ({
      ...change,
      row: toRejudged(change.record, change.classification, change.isReread, change.shown),
    }));
    let written = 0;
    for (const part of inWrites(made)) written += await this.#rejudgePart(part);
    return written;
  }

  /** As {@link #recordPart}. */
  async #rejudgePart(part: readonly Rejudged[]): Promise<number> {
    try {
      return await this.#rejudgeTogether(part);
    } catch (error) {
      if (!isRefused(error)) throw error;
      if (part.length === 1) {
        return this.#rejudgeTogether(part.map((one) => ({ ...one, row: toBareRow(one.row, error.message) })));
      }
      const written = await inParallel(part, (one) => this.#rejudgePart([one]));
      return written.reduce((sum, count) => sum + count, 0);
    }
  }

  async #rejudgeTogether(part: readonly Rejudged[]): Promise<number> {
    try {
      await this.#table.transact(part.map(({ row, etag }) => ({ kind: 'merge', row, etag })));
      return part.length;
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
      return this.#rejudgeChanged(part); // one of them was recorded, closed or removed since it was read
    }
  }

  async #rejudgeChanged(part: readonly { record: LetterRecord; row: RowWrite }[]): Promise<number> {
    for (;;) {
      const stored = await inParallel(part, ({ row }) => this.#table.get(row.partitionKey, row.rowKey));
      const steps = part.flatMap(({ record, row }, i): Step[] => {
        const found = stored[i];
        const known = found && readable(found);
        if (known === undefined || known.closed !== undefined) return [];
        if (!isSameMessage(known.letter, record.letter)) return [];
        return [{ kind: 'merge', row, etag: found?.etag }];
      });
      if (steps.length === 0) return 0;
      try {
        await this.#table.transact(steps);
        return steps.length;
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error; // and again meanwhile: look again
      }
    }
  }

  /** The record of one letter, or `undefined`. Throws `DLO_RECORD_UNREADABLE`. */
  async get(source: SourceKey, number: SequenceNumber): Promise<LetterRecord | undefined> {
    return (await this.getVersion(source, number))?.record;
  }

  /** The same, with the version of its row, for {@link reopen}. */
  async getVersion(source: SourceKey, number: SequenceNumber): Promise<VersionedLetter | undefined> {
    const row = await this.#table.get(source, numberKey(number));
    return row && { record: fromRow(row), etag: row.etag };
  }

  /**
   * Open letters of a source in ascending order, from number `from` (inclusive). Rows that cannot be read are passed
   * over (they keep no letter from being listed) and `onUnreadable` is told; `get` says what is wrong with one.
   */
  async *open(source: SourceKey, options: OpenOptions = {}): AsyncGenerator<LetterRecord> {
    for await (const { record } of this.openVersions(source, options)) yield record;
  }

  /** The same, each with the version of its row, for {@link rejudge}. */
  async *openVersions(source: SourceKey, options: OpenOptions = {}): AsyncGenerator<VersionedLetter> {
    for await (const row of this.#table.query(openFilter(source, options), { pageSize: options.pageSize ?? 500 })) {
      const record = readable(row);
      if (record) yield { record, etag: row.etag };
      else options.onUnreadable?.(numberOfKey(row.rowKey));
    }
  }

  /** Open letters of a source among `numbers`, in ascending order, each looked up by its key. Otherwise like {@link open}. */
  async *openAmong(
    source: SourceKey,
    numbers: readonly SequenceNumber[],
    options: Pick<OpenOptions, 'from' | 'onUnreadable'> = {},
  ): AsyncGenerator<LetterRecord> {
    const keys = [...new Set(numbers.map(numberKey))].toSorted();
    const start = options.from === undefined ? '' : numberKey(options.from);
    const wanted = keys.filter((key) => key >= start);
    for (let i = 0; i < wanted.length; i += LOOKED_UP_AT_ONCE) {
      const rows = await inParallel(wanted.slice(i, i + LOOKED_UP_AT_ONCE), (key) => this.#table.get(source, key));
      for (const row of rows) {
        if (row === undefined || row.fate !== 'open') continue;
        const record = readable(row);
        if (record) yield record;
        else options.onUnreadable?.(numberOfKey(row.rowKey));
      }
    }
  }

  /**
   * Marks letters as having left, in one write a hundred. Overrides `gone`, which is only ever a finding. Entities are recreated:
   * a record under the number of such a letter that is of another message is not touched.
   */
  async close(
    source: SourceKey,
    letters: readonly IdentifiedLetter[],
    fate: LetterFate,
    at: number,
    planId?: PlanId,
  ): Promise<void> {
    const cells = { fate, closedAt: new Date(at), ...(planId !== undefined && { closedBy: planId }) };
    await this.#mergeSame(source, letters, cells);
  }

  /** Notes on letters that are still here that a plan may have sent them already. Those of which there is no record are passed over. */
  async markMaybeSent(source: SourceKey, letters: readonly IdentifiedLetter[], planId: PlanId): Promise<void> {
    await this.#mergeSame(source, letters, { maybeSentBy: planId });
  }

  /**
   * Notes on a letter that `planId` sent that it died again; once, however often it is asked. Returns the letter as groups see it
   * where that was new, `undefined` where it was noted before or the plan did not send it.
   */
  async markReturned(
    source: SourceKey,
    number: SequenceNumber,
    planId: PlanId,
    at: number,
  ): Promise<Sighting | undefined> {
    for (;;) {
      const row = await this.#table.get(source, numberKey(number));
      const record = row && readable(row);
      if (row === undefined || record === undefined || row.returnedAt !== undefined) return undefined;
      // It may die again before the chunk that sent it is closed, or be left here by a run that could not make sure.
      const isSent = record.closed === undefined || record.closed.planId === planId;
      if (!isSent) return undefined;
      try {
        const key = { partitionKey: row.partitionKey, rowKey: row.rowKey };
        await this.#table.merge({ ...key, returnedAt: new Date(at) }, row.etag);
        return sightingOf(record, at);
      } catch (error) {
        if (!(error instanceof StoreConflict)) throw error; // somebody wrote the row meanwhile: look again
      }
    }
  }

  /**
   * Opens the record of a letter again, unless it was changed since it was read. What a run says it has sent back, and did not
   * remove, may be in the target.
   */
  async reopen({ record, etag }: VersionedLetter): Promise<boolean> {
    const { fate, planId } = record.closed ?? {};
    const isSent = fate === 'replayed' && planId !== undefined;
    const key = { partitionKey: record.source, rowKey: numberKey(record.letter.sequenceNumber) };
    try {
      await this.#table.merge({ ...key, fate: 'open', ...(isSent && { maybeSentBy: planId }) }, etag);
      return true;
    } catch (error) {
      if (error instanceof StoreConflict) return false;
      throw error;
    }
  }

  async #mergeSame(
    source: SourceKey,
    letters: readonly IdentifiedLetter[],
    cells: Record<string, Cell>,
  ): Promise<void> {
    for (let i = 0; i < letters.length; i += MAX_STEPS) {
      const identities = new Map(
        letters.slice(i, i + MAX_STEPS).map(({ number, identity }) => [numberKey(number), identity]),
      );
      let isDone = false;
      while (!isDone) isDone = await this.#tryMerge(source, identities, cells); // else somebody wrote one meanwhile
    }
  }

  async #tryMerge(
    source: SourceKey,
    identities: ReadonlyMap<string, string>,
    cells: Record<string, Cell>,
  ): Promise<boolean> {
    const rows = await this.#rows(source, [...identities.keys()]);
    const same = rows.filter((row) => identityOf(row) === identities.get(row.rowKey));
    if (same.length === 0) return true;
    try {
      await this.#table.transact(
        same.map(({ rowKey, etag }) => ({ kind: 'merge', row: { ...cells, partitionKey: source, rowKey }, etag })),
      );
      return true;
    } catch (error) {
      if (error instanceof StoreConflict) return false;
      throw error;
    }
  }

  /** Rows with these keys, as far as they are there: in one call where they lie close together, as those of a chunk do. */
  async #rows(source: SourceKey, keys: readonly string[]): Promise<StoredRow[]> {
    const wanted = new Set(keys);
    const sorted = keys.toSorted();
    const [first = '0', last = '0'] = [sorted[0], sorted.at(-1)];
    if (BigInt(last) - BigInt(first) > MAX_SPAN) {
      const rows = await inParallel(keys, (key) => this.#table.get(source, key));
      return rows.filter((row) => row !== undefined);
    }
    const rows: StoredRow[] = [];
    const filter = odata`PartitionKey eq ${source} and RowKey ge ${first} and RowKey le ${last}`;
    for await (const row of this.#table.query(filter)) if (wanted.has(row.rowKey)) rows.push(row);
    return rows;
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

  /** Message ids that came or went back with a letter of the source after `after`, and when (ms since 1970). What cannot be read is passed over. */
  async *sentSince(source: SourceKey, after: number): AsyncGenerator<{ messageId: string; at: number }> {
    const since = new Date(Math.max(after, 0));
    const isRecent = odata`(enqueuedAt gt ${since} or replayedAt gt ${since} or (fate eq 'replayed' and closedAt gt ${since}))`;
    const select = ['PartitionKey', 'RowKey', ...Object.keys(sentRow.shape)];
    for await (const row of this.#table.query(odata`PartitionKey eq ${source} and ` + isRecent, { select })) {
      const parsed = sentRow.safeParse(row);
      if (!parsed.success) continue;
      const { messageId, enqueuedAt, replayedAt, fate, closedAt } = parsed.data;
      const left = fate === 'replayed' ? closedAt : 0;
      yield { messageId, at: Math.max(enqueuedAt, replayedAt, left) };
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

  /** Whether nothing at all is recorded of a source, neither open nor closed. */
  async isEmpty(source: SourceKey): Promise<boolean> {
    return !(await this.#table.hasAny(odata`PartitionKey eq ${source}`));
  }

  /** Counts and ages of a source's open letters, for a snapshot. */
  async tally(source: SourceKey): Promise<Tally> {
    const byCategory: Record<string, number> = {};
    const byFingerprint = new Map<Fingerprint, number>();
    let open = 0;
    let oldest: number | undefined;
    const select = ['PartitionKey', 'RowKey', ...Object.keys(groupedRow.shape)];
    for await (const row of this.#table.query(openFilter(source, {}), { select })) {
      open++;
      const parsed = tallyRow.safeParse(row);
      if (!parsed.success) continue;
      const { category, firstSeen } = parsed.data;
      byCategory[category] = (byCategory[category] ?? 0) + 1;
      const grouped = groupedRow.safeParse(row);
      const group = grouped.success ? (currentOf(grouped.data.fingerprint) ?? UNGROUPED) : undefined;
      if (group !== undefined) byFingerprint.set(group, (byFingerprint.get(group) ?? 0) + 1);
      if (oldest === undefined || firstSeen < oldest) oldest = firstSeen;
    }
    return { open, byCategory, byFingerprint, oldest };
  }

  /**
   * The letters of a source as groups see them, open ones only if wished. Reads few columns; rows whose group was made by another
   * version, or that have none, are read whole, and noted for the next time.
   */
  async *sightings(
    source: SourceKey,
    options: { openOnly?: boolean; sent?: SentBy; onUnreadable?: () => void } = {},
  ): AsyncGenerator<Sighting> {
    const filter = options.openOnly
      ? openFilter(source, {})
      : options.sent
        ? sentFilter(source, options.sent)
        : odata`PartitionKey eq ${source}`;
    const select = ['PartitionKey', 'RowKey', ...Object.keys(sightingRow.shape)];
    let outdated: SightingRow[] = [];
    for await (const row of this.#table.query(filter, { select })) {
      const parsed = sightingRow.safeParse(row);
      if (!parsed.success) {
        options.onUnreadable?.();
        continue;
      }
      const { fingerprint, cause, formerly } = parsed.data;
      const current = currentOf(fingerprint);
      if (current !== undefined && cause !== undefined) {
        yield toSighting(parsed.data, { fingerprint: current, cause, formerly });
        continue;
      }
      outdated.push(parsed.data);
      if (outdated.length < MAX_STEPS) continue;
      yield* await this.#groupAnew(source, outdated);
      outdated = [];
    }
    yield* await this.#groupAnew(source, outdated);
  }

  /** Rows of one source in ascending order. What can be read of one only in part has told no cause. */
  async #groupAnew(source: SourceKey, outdated: readonly SightingRow[]): Promise<Sighting[]> {
    const steps: Step[] = [];
    const rows = await inParallel(outdated, ({ sequenceNumber }) => this.#table.get(source, numberKey(sequenceNumber)));
    const sightings = outdated.map((seen, i): Sighting => {
      const row = rows[i];
      const record = row && readable(row);
      const { fingerprint, words } = causeOf({}, source);
      const formerly = seen.formerly ?? (currentOf(seen.fingerprint) === undefined ? seen.fingerprint : undefined);
      const group = record ?? { fingerprint, cause: words, formerly };
      const key = { partitionKey: source, rowKey: numberKey(seen.sequenceNumber) };
      if (row !== undefined) {
        const change = record === undefined ? { ...key, fingerprint, cause: words, formerly } : toRegrouped(record);
        steps.push({ kind: 'merge', row: change, etag: row.etag });
      }
      return toSighting(seen, group);
    });
    try {
      if (steps.length > 0) await this.#table.transact(steps);
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error; // somebody wrote one of them meanwhile: the next time
    }
    return sightings;
  }

  /** The open letters of one group, also where it is the group that an earlier version put them in. */
  async *ofGroup(source: SourceKey, group: Fingerprint): AsyncGenerator<Grouped> {
    const filter = `${openFilter(source, {})} and ${odata`(fingerprint eq ${group} or formerly eq ${group})`}`;
    const select = ['PartitionKey', 'RowKey', 'sequenceNumber', 'fingerprint', 'formerly'];
    for await (const row of this.#table.query(filter, { select })) {
      const parsed = memberRow.safeParse(row);
      if (parsed.success) yield toGrouped(parsed.data);
    }
  }

  /** The open letters whose group was made by an earlier version and is not noted anew yet. */
  async *outdated(source: SourceKey): AsyncGenerator<Grouped> {
    const filter = `${openFilter(source, {})} and ${odata`fingerprint lt ${VERSION}`}`;
    for await (const row of this.#table.query(filter)) {
      const record = readable(row);
      if (record === undefined) continue;
      const { letter, fingerprint, formerly } = record;
      yield { number: letter.sequenceNumber, fingerprint, formerly };
    }
  }
}

/** Letters that a plan has sent, from one number to another, both inclusive. */
export interface SentBy {
  readonly planId: PlanId;
  readonly from: SequenceNumber;
  readonly to: SequenceNumber;
}

/** Which open letters: from a number on, seen until a time (ms since 1970). */
export interface OpenOptions {
  readonly from?: SequenceNumber;
  readonly seenUntil?: number;
  readonly pageSize?: number;
  /** Told of each row that cannot be read, by the number that its key is of. */
  readonly onUnreadable?: (number: SequenceNumber | undefined) => void;
}

/** A record and the version of its row. */
export interface VersionedLetter {
  readonly record: LetterRecord;
  readonly etag: string;
}

/** Counts of open letters, and when the oldest of them was first seen (ms since 1970). */
export interface Tally {
  readonly open: number;
  readonly byCategory: Readonly<Record<string, number>>;
  /** Those whose row names no group yet are counted as {@link UNGROUPED}. */
  readonly byFingerprint: ReadonlyMap<Fingerprint, number>;
  readonly oldest: number | undefined;
}

function numberOfKey(rowKey: string): SequenceNumber | undefined {
  return parseSequenceNumber(rowKey.replace(/^0+(?=\d)/, ''));
}

function openFilter(source: SourceKey, options: { from?: SequenceNumber; seenUntil?: number }): string {
  const parts = [odata`PartitionKey eq ${source} and fate eq 'open'`];
  if (options.from !== undefined) parts.push(odata`RowKey ge ${numberKey(options.from)}`);
  if (options.seenUntil !== undefined) parts.push(odata`firstSeen le ${new Date(options.seenUntil)}`);
  return parts.join(' and ');
}

function sentFilter(source: SourceKey, { planId, from, to }: SentBy): string {
  const among = odata`RowKey ge ${numberKey(from)} and RowKey le ${numberKey(to)}`;
  return `${odata`PartitionKey eq ${source}`} and ${among} and ${odata`fate eq ${'replayed'} and closedBy eq ${planId}`}`;
}

const never = time.optional().default(0);
const sentRow = z.object({
  messageId: z.string(),
  enqueuedAt: never,
  replayedAt: never,
  fate: z.string(),
  closedAt: never,
});
