/**
 * Table `groups`: the causes of a source's letters. PartitionKey source key, RowKey fingerprint. Rows are a summary of the
 * letters table and can be made from it again at any time; what people say of a cause is kept apart, see triage.ts.
 */
import { z } from 'zod';
import { ADVICES, CATEGORIES } from '../classify/evidence.ts';
import { type Fingerprint, NOT_RECORDED, parseFingerprint } from '../classify/fingerprint.ts';
import { parseSequenceNumber, type SourceKey } from '../letter.ts';
import { inParallel } from '../parallel.ts';
import { addTo, type Group, mergeGroups } from '../records/group.ts';
import type { StorageConnection } from './connection.ts';
import { json, readable, time } from './rows.ts';
import {
  isRefused,
  MAX_STEPS,
  odata,
  type RowWrite,
  type Step,
  StoreConflict,
  type StoredRow,
  Table,
} from './table.ts';

/** Name of the table. */
export const GROUPS_TABLE = 'groups';

/** Most causes kept of one source. A sender can make up any number of texts: the rest is counted under {@link OVERFLOW}. */
export const MAX_GROUPS = 500;
/** What stands for the causes beyond the limit. Not the form of a fingerprint, so no letter has it. */
export const OVERFLOW = 'overflow' as Fingerprint;
export const OVERFLOW_CAUSE = `Other causes (more than ${MAX_GROUPS} in this source)`;

/** Tries of an update while others write the same rows; then it is left to the recount. */
const MAX_TRIES = 25;

/** A group with the version in which it was read. */
export interface StoredGroup {
  readonly group: Group;
  readonly etag: string;
}

/** The groups of a source as they were read. */
export interface StoredGroups {
  readonly groups: ReadonlyMap<Fingerprint, StoredGroup>;
  /** Row keys of rows that cannot be read. */
  readonly unreadable: readonly string[];
}

/** The groups table. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class GroupStore {
  readonly #table: Table;
  readonly #newId: () => string;
  /** Updates of this process that wait for the one under way: taken together, they are one write and do not contend. */
  readonly #waiting = new Map<SourceKey, Map<Fingerprint, Group>>();
  readonly #working = new Map<SourceKey, Promise<void>>();

  constructor(connection: StorageConnection, newId: () => string) {
    this.#table = new Table(connection, GROUPS_TABLE);
    this.#newId = newId;
  }

  /**
   * Adds letters to the groups of a source: a read a cause and one write, however many letters. No count is lost to another
   * writer. Throws {@link StoreConflict} when the rows are never left alone long enough.
   */
  async add(source: SourceKey, groups: Iterable<Group>): Promise<void> {
    const waiting = this.#waiting.get(source) ?? new Map<Fingerprint, Group>();
    this.#waiting.set(source, waiting);
    for (const group of groups) addTo(waiting, group);
    const before = this.#working.get(source) ?? Promise.resolve();
    const work = before.catch(() => {}).then(() => this.#flush(source));
    this.#working.set(source, work);
    try {
      await work;
    } finally {
      if (this.#working.get(source) === work) this.#working.delete(source);
    }
  }

  async #flush(source: SourceKey): Promise<void> {
    const groups = [...(this.#waiting.get(source)?.values() ?? [])];
    this.#waiting.delete(source);
    for (let i = 0; i < groups.length; i += MAX_STEPS) await this.#mergePart(source, groups.slice(i, i + MAX_STEPS));
  }

  /** What the store will never take as it is keeps no other group from being counted: each goes alone, and then without its words. */
  async #mergePart(source: SourceKey, groups: readonly Group[]): Promise<void> {
    try {
      await this.#merge(source, groups);
    } catch (error) {
      if (!isRefused(error)) throw error;
      if (groups.length === 1) await this.#merge(source, groups.map(wordless));
      else for (const group of groups) await this.#mergePart(source, [group]);
    }
  }

  async #merge(source: SourceKey, groups: readonly Group[]): Promise<void> {
    const writeId = this.#newId();
    for (let tries = 1; ; tries++) {
      const rows = await inParallel(groups, ({ fingerprint }) => this.#table.get(source, fingerprint));
      // All or nothing, so one row of ours tells that everything was written and only the answer was lost.
      if (rows.some((row) => row?.writeId === writeId)) return;
      const room = rows.every((row) => row !== undefined) ? groups.length : await this.#room(source);
      try {
        await this.#table.transact(await this.#mergeSteps(source, groups, rows, room, writeId));
        return;
      } catch (error) {
        if (!(error instanceof StoreConflict) || tries >= MAX_TRIES) throw error;
        await pause(tries);
      }
    }
  }

  async #mergeSteps(
    source: SourceKey,
    groups: readonly Group[],
    rows: readonly (StoredRow | undefined)[],
    room: number,
    writeId: string,
  ): Promise<Step[]> {
    const steps: Step[] = [];
    let left = room;
    let overflow: Group | undefined;
    for (const [i, group] of groups.entries()) {
      const row = rows[i];
      if (row !== undefined || left > 0) {
        if (row === undefined) left--;
        steps.push(stepFor(source, group, row, writeId));
        continue;
      }
      const other = { ...group, fingerprint: OVERFLOW, cause: OVERFLOW_CAUSE };
      overflow = overflow === undefined ? other : mergeGroups(overflow, other);
    }
    if (overflow !== undefined) {
      steps.push(stepFor(source, overflow, await this.#table.get(source, OVERFLOW), writeId));
    }
    return steps;
  }

  /** How many more groups a source may have. */
  async #room(source: SourceKey): Promise<number> {
    let rows = 0;
    const select = ['PartitionKey', 'RowKey'];
    for await (const row of this.#table.query(odata`PartitionKey eq ${source}`, { select })) {
      if (row.rowKey !== OVERFLOW) rows++;
    }
    return Math.max(0, MAX_GROUPS - rows);
  }

  /** The groups of a source; rows that cannot be read are named and hide none of the others. */
  async list(source: SourceKey): Promise<StoredGroups> {
    const groups = new Map<Fingerprint, StoredGroup>();
    const unreadable: string[] = [];
    for await (const row of this.#table.query(odata`PartitionKey eq ${source}`)) {
      const group = readable(rowSchema, row);
      if (group === undefined) unreadable.push(row.rowKey);
      else groups.set(group.fingerprint, { group, etag: row.etag });
    }
    return { groups, unreadable };
  }

  /** One group of a source, or `undefined` when there is none that can be read. */
  async get(source: SourceKey, fingerprint: Fingerprint): Promise<Group | undefined> {
    const row = await this.#table.get(source, fingerprint);
    return row && readable(rowSchema, row);
  }

  /**
   * Notes how many letters of each group are open, where that has changed. A group that somebody has written since it was read
   * keeps what that one wrote, until the next time.
   */
  async noteOpen(source: SourceKey, counts: ReadonlyMap<Fingerprint, number>, read: StoredGroups): Promise<void> {
    const steps: Step[] = [];
    for (const [fingerprint, { group, etag }] of read.groups) {
      const open = counts.get(fingerprint) ?? 0;
      if (open === group.open) continue;
      // A letter that is open is on record: a smaller total comes of an update that was never made.
      const row = { partitionKey: source, rowKey: fingerprint, open, total: Math.max(group.total, open) };
      steps.push({ kind: 'merge', row, etag });
    }
    await this.#inTurn(steps);
  }

  /**
   * Writes the groups of a source anew: `groups` as given, each only if it is still as it was `read`; the rows `obsolete`
   * are removed. Returns whether everything was written.
   */
  async replaceAll(
    source: SourceKey,
    groups: readonly Group[],
    read: StoredGroups,
    obsolete: readonly string[],
  ): Promise<boolean> {
    const writeId = this.#newId();
    const unreadable = new Set(read.unreadable);
    const steps = groups.map((group): Step => {
      const row = toRow(source, group, writeId);
      const stored = read.groups.get(group.fingerprint);
      if (stored !== undefined) return { kind: 'merge', row, etag: stored.etag };
      return unreadable.has(group.fingerprint) ? { kind: 'replace', row } : { kind: 'insert', row };
    });
    for (const rowKey of obsolete) steps.push({ kind: 'delete', partitionKey: source, rowKey });
    return this.#inTurn(steps);
  }

  /**
   * Steps of one partition, a hundred at a time; where one of them is lost to another writer or not taken, each alone, and without
   * its words. Returns whether none was lost.
   */
  async #inTurn(steps: readonly Step[]): Promise<boolean> {
    let isComplete = true;
    for (let i = 0; i < steps.length; i += MAX_STEPS) {
      const part = steps.slice(i, i + MAX_STEPS);
      if ((await this.#try(part)) === 'written') continue;
      for (const step of part) {
        let outcome = await this.#try([step]);
        if (outcome === 'refused' && 'row' in step) outcome = await this.#try([withoutWords(step)]);
        isComplete &&= outcome === 'written';
      }
    }
    return isComplete;
  }

  async #try(steps: readonly Step[]): Promise<'written' | 'lost' | 'refused'> {
    try {
      await this.#table.transact(steps);
      return 'written';
    } catch (error) {
      if (error instanceof StoreConflict) return 'lost';
      if (isRefused(error)) return 'refused';
      throw error;
    }
  }

  /** Removes groups of a source by their row keys. */
  async remove(source: SourceKey, keys: readonly string[]): Promise<void> {
    await this.#inTurn(keys.map((rowKey) => ({ kind: 'delete', partitionKey: source, rowKey })));
  }

  /** Whether nothing is kept of a source. */
  async isEmpty(source: SourceKey): Promise<boolean> {
    return !(await this.#table.hasAny(odata`PartitionKey eq ${source}`));
  }
}

/** Instances that write the same row take turns sooner when they do not come back all at once. */
async function pause(tries: number): Promise<void> {
  const ms = Math.random() * Math.min(10 * tries, 100);
  await new Promise((resolve) => setTimeout(resolve, ms));
}

/** A group without strangers' words. */
function wordless(group: Group): Group {
  return { ...group, cause: NOT_RECORDED, messageTypes: [] };
}

function withoutWords(step: Exclude<Step, { kind: 'delete' }>): Step {
  const { cause, messageTypes } = step.row;
  const bare = {
    ...(cause !== undefined && { cause: NOT_RECORDED }),
    ...(messageTypes !== undefined && { messageTypes: '[]' }),
  };
  return { ...step, row: { ...step.row, ...bare } };
}

function stepFor(source: SourceKey, group: Group, row: StoredRow | undefined, writeId: string): Step {
  if (row === undefined) return { kind: 'insert', row: toRow(source, group, writeId) };
  const stored = readable(rowSchema, row);
  // A row that nobody can read is worth nothing: the recount makes the whole of it again.
  if (stored === undefined) return { kind: 'replace', row: toRow(source, group, writeId) };
  return { kind: 'merge', row: toRow(source, mergeGroups(stored, group), writeId), etag: row.etag };
}

function toRow(source: SourceKey, group: Group, writeId: string): RowWrite {
  return {
    partitionKey: source,
    rowKey: group.fingerprint,
    writeId,
    cause: group.cause,
    total: group.total,
    open: group.open,
    firstSeen: new Date(group.firstSeen),
    lastSeen: new Date(group.lastSeen),
    trend: JSON.stringify(group.trend),
    categories: JSON.stringify(group.categories),
    advices: JSON.stringify(group.advices),
    messageTypes: JSON.stringify(group.messageTypes),
    examples: JSON.stringify(group.examples),
    sent: group.sent,
    returned: group.returned,
    lastReturned: group.lastReturned === undefined ? undefined : new Date(group.lastReturned),
    formerly: JSON.stringify(group.formerly),
  };
}

const count = z.number().int().min(0);
const pairs = <Key extends z.ZodType>(key: Key) => json(z.array(z.tuple([key, count])).max(100));
const rowSchema = z
  .object({
    rowKey: z.string().transform((text, context): Fingerprint => {
      const fingerprint = text === OVERFLOW ? OVERFLOW : parseFingerprint(text);
      if (fingerprint !== undefined) return fingerprint;
      context.addIssue({ code: 'custom', message: 'is not a fingerprint' });
      return z.NEVER;
    }),
    cause: z.string().max(1000),
    total: count,
    open: count,
    firstSeen: time,
    lastSeen: time,
    trend: pairs(z.number()),
    categories: pairs(z.enum(CATEGORIES)),
    advices: pairs(z.enum(ADVICES)),
    messageTypes: pairs(z.string()),
    examples: json(z.array(z.string()).max(100)).transform((texts) =>
      texts.map((text) => parseSequenceNumber(text)).filter((number) => number !== undefined),
    ),
    /** Absent in rows written before replays were counted. */
    sent: count.default(0),
    returned: count.default(0),
    lastReturned: time.optional(),
    /** Absent in rows written before there was a second version of fingerprints. */
    formerly: json(z.array(z.string()).max(100))
      .transform((texts) => texts.map((text) => parseFingerprint(text)).filter((one) => one !== undefined))
      .optional()
      .catch(undefined),
  })
  .transform(
    ({ rowKey, formerly = [], ...row }): Group => ({
      ...row,
      formerly,
      fingerprint: rowKey,
      lastReturned: row.lastReturned,
    }),
  );
