import type { RowWrite } from './table.ts';

/** A write of this many takes well under a second, and a caller holds locks meanwhile. */
const ROWS_PER_WRITE = 50;
/** Rows of one transaction together must stay below 4 MiB as they are sent (Azure Tables), with all their keys and frames. */
export const BYTES_PER_WRITE = 2_000_000;

/** Divides rows into writes that the store takes in one transaction. What strangers wrote can be long in bytes. */
export function inWrites<Made extends { readonly row: RowWrite }>(made: readonly Made[]): Made[][] {
  const writes: Made[][] = [];
  let room = 0;
  for (const one of made) {
    const bytes = Buffer.byteLength(JSON.stringify(one.row));
    const last = writes.at(-1);
    if (last === undefined || last.length >= ROWS_PER_WRITE || bytes > room) {
      writes.push([one]);
      room = BYTES_PER_WRITE - bytes;
    } else {
      last.push(one);
      room -= bytes;
    }
  }
  return writes;
}
