/** What the tables' columns share: keys, cutting to the store's limits, and reading rows that cannot be trusted. */
import { z } from 'zod';
import { parseFingerprint } from '../classify/fingerprint.ts';
import { OfficeError } from '../errors.ts';
import type { SequenceNumber } from '../letter.ts';
import type { StoredRow } from './table.ts';

/** Row key of a letter: its number, padded so that key order is numeric order. */
export function numberKey(number: SequenceNumber): string {
  return number.padStart(20, '0');
}

/**
 * Longest text in one cell. Azure allows 64 KiB of UTF-16, a row 1 MiB, and a transaction of 100 rows 4 MiB.
 */
export const MAX_TEXT = 8000;

/** Cuts texts for one row and remembers which were cut, so that the record can say so. */
export class Cutter {
  readonly cut: string[] = [];

  text(name: string, value: string | undefined, max: number = MAX_TEXT): string | undefined {
    if (value === undefined || value.length <= max) return value;
    this.cut.push(name);
    return value.slice(0, max).replace(LONE_HALF, '');
  }
}

/** The first half of a character whose second was cut off. */
const LONE_HALF = /[\ud800-\udbff]$/;

/** Longest name in a list of what was cut, and the room that the list has as JSON: a name is a stranger's word too. */
const MAX_NAME = 200;
const MAX_NAMES = 8000;

/** Names of what was cut, as the text of one cell. What there is no room for is told by its number. */
export function cutCell(names: Iterable<string>): string {
  const fitting: string[] = [];
  let room = MAX_NAMES;
  let others = 0;
  for (const name of new Set(names)) {
    const short = name.length > MAX_NAME ? `${name.slice(0, MAX_NAME).replace(LONE_HALF, '')}...` : name;
    const length = JSON.stringify(short).length + 1;
    if (length > room) others++;
    else {
      room -= length;
      fitting.push(short);
    }
  }
  return JSON.stringify(others === 0 ? fitting : [...fitting, `and ${others} more`]);
}

/** Makes newest-first keys: the row key order of Azure Tables is ascending only. ms since 1970 must be below 10^14. */
export function descendingKey(ms: number): string {
  return String(99_999_999_999_999 - Math.trunc(ms)).padStart(14, '0');
}

/** End of the year 9999, the last time of Azure Tables. */
const LAST_TIME = 253_402_300_799_999;

/** A time cell: a `Date` in the table, ms since 1970 here. */
export const time = z.date().transform((date) => date.getTime());

/** A time for a cell; `undefined` when there is none or a message claims one that no table can hold. */
export function dateCell(ms: number | undefined): Date | undefined {
  return ms !== undefined && ms >= 0 && ms <= LAST_TIME ? new Date(ms) : undefined;
}

/** A fingerprint cell; `undefined` when it holds none. */
export const fingerprintCell = z.string().transform((text) => parseFingerprint(text));

/** A JSON cell, parsed and checked. */
export function json<Schema extends z.ZodType>(schema: Schema) {
  return z
    .string()
    .transform((text, context) => {
      try {
        return JSON.parse(text) as unknown;
      } catch {
        context.addIssue({ code: 'custom', message: 'is not JSON' });
        return z.NEVER;
      }
    })
    .pipe(schema);
}

/** A row that fits its schema, or `undefined`: one bad row must not keep a whole list from being shown. */
export function readable<Schema extends z.ZodType>(schema: Schema, row: StoredRow): z.infer<Schema> | undefined {
  const result = schema.safeParse(row);
  return result.success ? result.data : undefined;
}

/** Checks a row against its schema. Throws `DLO_RECORD_UNREADABLE`, naming table, key and columns, never the values. */
export function checked<Schema extends z.ZodType>(schema: Schema, row: StoredRow, table: string): z.infer<Schema> {
  const result = schema.safeParse(row);
  if (result.success) return result.data;
  const columns = result.error.issues.map((issue) => issue.path.join('.')).join(', ');
  throw new OfficeError(
    'DLO_RECORD_UNREADABLE',
    `row ${row.partitionKey} / ${row.rowKey} of table "${table}" cannot be read: ${columns}`,
  );
}
