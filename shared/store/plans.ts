/**
 * Table `plans`: plan and journal. PartitionKey plan id; RowKey `head`, `chunk:…`, `letter:<number>` for letters whose fate
 * differs from their chunk's, `returned:<source>:<number>` for letters that came back.
 */
import { z } from 'zod';
import { NOT_RECORDED } from '../classify/fingerprint.ts';
import { type PlanId, parsePlanId, parseSequenceNumber, type SequenceNumber, type SourceKey } from '../letter.ts';
import {
  ACTIONS,
  type Chunk,
  choicesSchema,
  type Exception,
  FINDING_CODES,
  factsSchema,
  NO_COUNTS,
  PLAN_STATES,
  type PlanHead,
  SKIP_REASONS,
} from '../records/plan.ts';
import { NO_TALLY, tallySchema } from '../records/tally.ts';
import { fingerprintSchema } from '../selection.ts';
import type { StorageConnection } from './connection.ts';
import { checked, json, numberKey, time } from './rows.ts';
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

const HEAD = 'head';

/** A plan's head together with the version it was read in. */
export interface VersionedHead {
  readonly head: PlanHead;
  readonly etag: string;
  /** Names the last write, so that a writer whose answer was lost can tell that it was its own. */
  readonly writeId: string;
}

/** A letter of a plan that came back to a dead-letter queue. */
export interface Returned {
  readonly source: SourceKey;
  readonly number: SequenceNumber;
  /** Number it had when it was sent back. */
  readonly of: SequenceNumber | undefined;
  readonly reason: string;
  /** When it was seen again, ms since 1970. */
  readonly at: number;
}

/** Changes to chunk and exception rows that go together with a change of the head. */
export interface JournalRows {
  readonly chunks?: readonly Chunk[];
  readonly removeChunks?: readonly string[];
  readonly exceptions?: readonly Exception[];
}

/** Most rows that one journal write can take beside the head. */
export const MAX_JOURNAL_ROWS = MAX_STEPS - 1;

/** The plans table. Every method throws `DLO_STORE_UNAVAILABLE` when the store does not answer. */
export class PlanStore {
  readonly #table: Table;

  constructor(connection: StorageConnection) {
    this.#table = new Table(connection, 'plans');
  }

  /** Stores a new plan. Throws {@link StoreConflict} when the id is taken. */
  async create(head: PlanHead, writeId: string): Promise<void> {
    try {
      await this.#table.insert(headRow(head, writeId));
    } catch (error) {
      if (!(error instanceof StoreConflict)) throw error;
      // The insert may have gone through though its answer was lost.
      if ((await this.#table.get(head.id, HEAD))?.writeId !== writeId) throw error;
    }
  }

  /** The head, or `undefined`. Throws `DLO_RECORD_UNREADABLE`. */
  async head(id: PlanId): Promise<VersionedHead | undefined> {
    const row = await this.#table.get(id, HEAD);
    return row && readHead(row);
  }

  /**
   * The head, or what can be read of it, and the columns that cannot: those are as they would be of a plan of which nothing more
   * is known, and that stands still.
   */
  async salvage(id: PlanId): Promise<(VersionedHead & { readonly unreadable: readonly string[] }) | undefined> {
    const row = await this.#table.get(id, HEAD);
    if (row === undefined) return undefined;
    const parsed = headSchema.safeParse(row);
    if (parsed.success) return { ...toHead(parsed.data), unreadable: [] };
    const unreadable = [...new Set(parsed.error.issues.map(({ path }) => String(path[0])))];
    const cells = Object.entries(row).filter(([name]) => !unreadable.includes(name));
    return { ...toHead(headSchema.parse({ ...UNKNOWN_CELLS, ...Object.fromEntries(cells) })), unreadable };
  }

  /**
   * Writes the head and rows beside it, all or nothing, only if the head is still the version that was read. This
   * condition is what keeps a runner that lost its lease from writing. Throws {@link StoreConflict}. Returns the new version.
   */
  async commit(head: PlanHead, etag: string, writeId: string, rows: JournalRows = {}): Promise<string> {
    try {
      return await this.#commit(head, etag, writeId, rows);
    } catch (error) {
      if (!isRefused(error)) throw error;
      // The journal is what counts; the words in it may quote strangers.
      const exceptions = (rows.exceptions ?? []).map(wordlessException);
      return this.#commit(wordlessHead(head), etag, writeId, { ...rows, exceptions });
    }
  }

  async #commit(head: PlanHead, etag: string, writeId: string, rows: JournalRows): Promise<string> {
    const steps: Step[] = [{ kind: 'merge', row: headRow(head, writeId), etag }];
    for (const chunk of rows.chunks ?? []) steps.push({ kind: 'merge', row: chunkRow(head.id, chunk) });
    for (const key of rows.removeChunks ?? []) steps.push({ kind: 'delete', partitionKey: head.id, rowKey: key });
    for (const exception of rows.exceptions ?? []) steps.push({ kind: 'merge', row: exceptionRow(head.id, exception) });
    const [version] = await this.#table.transact(steps);
    return version ?? '';
  }

  /**
   * Chunks in running order, after `after`; with `unfinished`, only those that are not done. Throws `DLO_RECORD_UNREADABLE`, or
   * passes a chunk over that cannot be read and tells `onUnreadable` its key.
   */
  async *chunks(
    id: PlanId,
    options: { after?: string; unfinished?: boolean; onUnreadable?: (key: string) => void } = {},
  ): AsyncGenerator<Chunk> {
    const parts = [odata`PartitionKey eq ${id} and RowKey gt ${options.after ?? 'chunk:'} and RowKey lt 'chunk;'`];
    if (options.unfinished) parts.push("state ne 'done'");
    for await (const row of this.#table.query(parts.join(' and '), { pageSize: 20 })) {
      if (options.onUnreadable === undefined || chunkSchema.safeParse(row).success) yield readChunk(row);
      else options.onUnreadable(row.rowKey);
    }
  }

  /** Letters whose fate differs from their chunk's, ascending, from number `from`. Unreadable ones like those of {@link chunks}. */
  async *exceptions(
    id: PlanId,
    { from, onUnreadable }: { from?: SequenceNumber | undefined; onUnreadable?: (key: string) => void } = {},
  ): AsyncGenerator<Exception> {
    const start = from === undefined ? 'letter:' : `letter:${numberKey(from)}`;
    const filter = odata`PartitionKey eq ${id} and RowKey ge ${start} and RowKey lt 'letter;'`;
    for await (const row of this.#table.query(filter)) {
      if (onUnreadable === undefined || exceptionSchema.safeParse(row).success) yield readException(row);
      else onUnreadable(row.rowKey);
    }
  }

  /** Whether a run of the plan got to that letter: it was sent, is being sent, or may have been. */
  async hasBegun(id: PlanId, number: SequenceNumber): Promise<boolean> {
    const row = await this.#table.get(id, `letter:${numberKey(number)}`);
    if (row !== undefined) return row.maybeDuplicate === true;
    const ignored = () => {};
    for await (const { state, maybeDuplicate, letters } of this.chunks(id, { onUnreadable: ignored })) {
      if (letters.some((letter) => letter.number === number)) return state !== 'planned' || maybeDuplicate;
    }
    return false;
  }

  /** Notes that a letter of the plan came back. Writing it twice changes nothing. */
  async addReturned(id: PlanId, returned: Returned): Promise<void> {
    const row = {
      partitionKey: id,
      rowKey: `returned:${returned.source}:${numberKey(returned.number)}`,
      source: returned.source,
      number: returned.number,
      of: returned.of,
      reason: returned.reason.slice(0, 1024),
      at: new Date(returned.at),
    };
    try {
      await this.#table.merge(row);
    } catch (error) {
      if (!isRefused(error)) throw error;
      await this.#table.merge({ ...row, reason: NOT_RECORDED });
    }
  }

  /** How many letters of the plan came back. */
  async countReturned(id: PlanId): Promise<number> {
    let count = 0;
    const filter = odata`PartitionKey eq ${id} and RowKey ge 'returned:' and RowKey lt 'returned;'`;
    for await (const _row of this.#table.query(filter, { select: ['PartitionKey', 'RowKey'] })) count++;
    return count;
  }

  /** Letters of the plan that came back, by source and number. Rows that cannot be read are passed over. */
  async *returned(id: PlanId): AsyncGenerator<Returned> {
    const filter = odata`PartitionKey eq ${id} and RowKey ge 'returned:' and RowKey lt 'returned;'`;
    for await (const row of this.#table.query(filter)) {
      const returned = returnedSchema.safeParse(row);
      if (returned.success) yield returned.data;
    }
  }

  /** Removes a plan with all its rows. */
  async remove(id: PlanId): Promise<void> {
    const keys: string[] = [];
    const select = ['PartitionKey', 'RowKey'];
    for await (const row of this.#table.query(odata`PartitionKey eq ${id}`, { select })) keys.push(row.rowKey);
    keys.sort((a, b) => Number(a === HEAD) - Number(b === HEAD)); // the head last: what is half removed can be found again
    for (let i = 0; i < keys.length; i += MAX_STEPS) {
      const part = keys.slice(i, i + MAX_STEPS);
      await this.#table.transact(part.map((rowKey) => ({ kind: 'delete', partitionKey: id, rowKey })));
    }
  }
}

/** A head without words that the store may not take. What was selected stays: a plan without it is none. */
function wordlessHead(head: PlanHead): PlanHead {
  return {
    ...head,
    tally: { ...head.tally, reason: {} },
    findings: head.findings.map((finding) => ({ ...finding, message: NOT_RECORDED })),
    stateReason: head.stateReason && NOT_RECORDED,
  };
}

function wordlessException(exception: Exception): Exception {
  return exception.fate.kind === 'failed'
    ? { ...exception, fate: { kind: 'failed', reason: NOT_RECORDED } }
    : exception;
}

const findingSchema = z.object({
  code: z.enum(FINDING_CODES),
  level: z.enum(['block', 'warn']),
  letters: z.number(),
  message: z.string(),
  groups: z.array(fingerprintSchema).optional(),
  suggested: z.array(z.string()).optional(),
});

const sequence = z.string().transform((text, context): SequenceNumber => {
  const number = parseSequenceNumber(text);
  if (number !== undefined) return number;
  context.addIssue({ code: 'custom', message: 'is not a sequence number' });
  return z.NEVER;
});

const paceRow = z.object({
  rate: z.number(),
  ramp: z.object({ steps: z.array(z.number()), observeMs: z.number(), haltAbove: z.number() }).optional(),
});
const progressRow = z.object({
  step: z.number(),
  doneBefore: z.number(),
  returnedBefore: z.number(),
  observedFrom: z.number(),
  pacedFrom: z.number(),
  pacedDone: z.number(),
});

const headSchema = z.object({
  partitionKey: z.string().transform((text, context): PlanId => {
    const id = parsePlanId(text);
    if (id !== undefined) return id;
    context.addIssue({ code: 'custom', message: 'is not a plan id' });
    return z.NEVER;
  }),
  etag: z.string(),
  writeId: z.string(),
  source: z.string().transform((key) => key as SourceKey),
  sourceName: z.string(),
  action: z.enum(ACTIONS),
  target: z.string(),
  choices: json(choicesSchema),
  selection: z.string().refine(isJson, 'is not JSON'),
  findings: json(z.array(findingSchema)),
  state: z.enum(PLAN_STATES),
  stateReason: z.string(),
  createdAt: time,
  createdBy: z.string(),
  expiresAt: time,
  cursor: z.string().transform((text) => parseSequenceNumber(text)),
  looked: z.number(),
  chunks: z.number(),
  planned: z.number(),
  pending: z.number(),
  done: z.number(),
  skipped: z.number(),
  failed: z.number(),
  left: z.number(),
  maybeDuplicate: z.number(),
  request: z.enum(['none', 'pause', 'cancel']),
  runner: z.string(),
  facts: json(factsSchema),
  seen: z.boolean(),
  tally: json(tallySchema),
  pace: json(paceRow),
  progress: json(progressRow),
  startedAt: time.optional(),
  startedBy: z.string(),
  finishedAt: time.optional(),
});

/** Cells of a head of which nothing is known. */
const UNKNOWN_CELLS = {
  writeId: '',
  source: '',
  sourceName: '',
  action: 'replay',
  target: '',
  choices: '{}',
  selection: '{}',
  findings: '[]',
  state: 'paused',
  stateReason: '',
  createdAt: new Date(0),
  createdBy: '',
  expiresAt: new Date(0),
  cursor: '',
  looked: 0,
  chunks: 0,
  ...NO_COUNTS,
  request: 'none',
  runner: '',
  facts: JSON.stringify({ from: 'none', partitioned: false, maxMessageBytes: 0 }),
  seen: false,
  tally: JSON.stringify(NO_TALLY),
  pace: JSON.stringify({ rate: 0 }),
  progress: JSON.stringify({
    step: 0,
    doneBefore: 0,
    returnedBefore: 0,
    observedFrom: 0,
    pacedFrom: 0,
    pacedDone: 0,
  }),
  startedAt: new Date(0),
  startedBy: '',
};

function isJson(text: string): boolean {
  return json(z.unknown()).safeParse(text).success;
}

function headRow(head: PlanHead, writeId: string): RowWrite {
  const {
    id,
    choices,
    findings,
    counts,
    cursor,
    facts,
    tally,
    pace,
    progress,
    createdAt,
    expiresAt,
    startedAt,
    finishedAt,
    ...plain
  } = head;
  return {
    ...plain,
    ...counts,
    partitionKey: id,
    rowKey: HEAD,
    writeId,
    choices: JSON.stringify(choices),
    findings: JSON.stringify(findings),
    facts: JSON.stringify(facts),
    tally: JSON.stringify(tally),
    pace: JSON.stringify(pace),
    progress: JSON.stringify(progress),
    cursor: cursor ?? '',
    createdAt: new Date(createdAt),
    expiresAt: new Date(expiresAt),
    startedAt: startedAt === undefined ? undefined : new Date(startedAt),
    finishedAt: finishedAt === undefined ? undefined : new Date(finishedAt),
  };
}

function readHead(row: StoredRow): VersionedHead {
  return toHead(checked(headSchema, row, 'plans'));
}

function toHead(row: z.infer<typeof headSchema>): VersionedHead {
  const { partitionKey, etag, writeId, planned, pending, done, skipped, failed, left, maybeDuplicate, ...plain } = row;
  const counts = { planned, pending, done, skipped, failed, left, maybeDuplicate };
  const head: PlanHead = {
    ...plain,
    id: partitionKey,
    counts,
    pace: { ...plain.pace, ramp: plain.pace.ramp },
    startedAt: plain.startedAt,
    finishedAt: plain.finishedAt,
  };
  return { head, etag, writeId };
}

const chunkSchema = z.object({
  rowKey: z.string(),
  state: z.enum(['planned', 'sending', 'sent', 'done']),
  letters: json(z.array(z.tuple([sequence, z.string()]))),
  maybeDuplicate: z.boolean(),
  sends: z.number().default(0),
  waitingSince: time.optional(),
  audit: z.string(),
});

function chunkRow(id: PlanId, chunk: Chunk): RowWrite {
  return {
    partitionKey: id,
    rowKey: chunk.key,
    state: chunk.state,
    letters: JSON.stringify(chunk.letters.map(({ number, identity }) => [number, identity])),
    maybeDuplicate: chunk.maybeDuplicate,
    sends: chunk.sends,
    waitingSince: chunk.waitingSince === undefined ? undefined : new Date(chunk.waitingSince),
    audit: chunk.audit,
  };
}

function readChunk(row: StoredRow): Chunk {
  const { rowKey, letters, waitingSince, ...plain } = checked(chunkSchema, row, 'plans');
  const pairs = letters.map(([number, identity]) => ({ number, identity }));
  return { ...plain, key: rowKey, letters: pairs, waitingSince };
}

const exceptionSchema = z
  .object({
    number: sequence,
    fate: z.enum(['skipped', 'failed', 'left']),
    reason: z.string(),
    maybeDuplicate: z.boolean(),
  })
  .transform(({ number, fate, reason, maybeDuplicate }, context): Exception => {
    if (fate === 'failed') return { number, maybeDuplicate, fate: { kind: fate, reason } };
    const parsed = fate === 'skipped' ? skipReason.safeParse(reason) : leftReason.safeParse(reason);
    if (parsed.success)
      return { number, maybeDuplicate, fate: { kind: fate, reason: parsed.data } as Exception['fate'] };
    context.addIssue({ code: 'custom', path: ['reason'], message: 'is not a known reason' });
    return z.NEVER;
  });
const skipReason = z.enum(SKIP_REASONS);
const leftReason = z.enum(['cancelled', 'locked', 'not-held']);

function exceptionRow(id: PlanId, { number, fate, maybeDuplicate }: Exception): RowWrite {
  return {
    partitionKey: id,
    rowKey: `letter:${numberKey(number)}`,
    number,
    fate: fate.kind,
    reason: fate.reason.slice(0, 1024),
    maybeDuplicate,
  };
}

function readException(row: StoredRow): Exception {
  return checked(exceptionSchema, row, 'plans');
}

const returnedSchema = z
  .object({
    source: z.string().transform((key) => key as SourceKey),
    number: sequence,
    of: sequence.optional(),
    reason: z.string(),
    at: time,
  })
  .transform((row): Returned => ({ ...row, of: row.of }));
