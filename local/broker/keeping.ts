/** Memory for the bytes of messages that stay. */

const SLAB = 16_384;
/** Larger ones get memory of their own. */
const SMALL = SLAB / 16;

let slab = Buffer.alloc(0);
let used = 0;

/**
 * Joins buffers into one that stays. Node cuts small buffers from a pool that it shares with everything short-lived: one
 * message would keep all of that alive, seen as 1.6 KB a message where 0.6 are needed. So messages have a pool of their
 * own; memory for each alone costs the garbage collector more than all else of storing it.
 */
export function keep(parts: readonly Buffer[]): Buffer {
  const bytes = room(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) at += part.copy(bytes, at);
  return bytes;
}

function room(length: number): Buffer {
  if (length > SMALL) return Buffer.allocUnsafeSlow(length);
  if (used + length > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB);
    used = 0;
  }
  used += length;
  return slab.subarray(used - length, used);
}
