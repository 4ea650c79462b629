/** The hashes of template functions, as Azure Resource Manager computes them: `bicep snapshot` gives the same. */
import { createHash } from 'node:crypto';

const GUID_NAMESPACE = Buffer.from('11fb06fb712d4ddd98c7e71bbd588830', 'hex');
const LETTERS = 'abcdefghijklmnopqrstuvwxyz234567';

/** `guid(...)`: a UUID of version 5. */
export function guid(parts: readonly string[]): string {
  const hash = createHash('sha1').update(GUID_NAMESPACE).update(parts.join('-')).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

/** `uniqueString(...)`: 13 letters and digits of a 64-bit Murmur hash. */
export function uniqueString(parts: readonly string[]): string {
  let rest = murmur64(Buffer.from(parts.join('-'), 'utf8'));
  let text = '';
  for (let i = 0; i < 13; i++) {
    text += LETTERS[Number((rest >> 59n) & 31n)];
    rest = BigInt.asUintN(64, rest << 5n);
  }
  return text;
}

const C1 = 0x239b961b;
const C2 = 0xab0e9789;
const rotate = (value: number, by: number) => ((value << by) | (value >>> (32 - by))) >>> 0;
const mix1 = (k: number) => Math.imul(rotate(Math.imul(k, C1) >>> 0, 15), C2);
const mix2 = (k: number) => Math.imul(rotate(Math.imul(k, C2) >>> 0, 17), C1);

/** MurmurHash3 for 32-bit machines, its first two words. */
function murmur64(data: Buffer): bigint {
  let h1 = 0;
  let h2 = 0;
  let at = 0;
  for (; at + 7 < data.length; at += 8) {
    h1 = (rotate((h1 ^ mix1(data.readUInt32LE(at))) >>> 0, 19) + h2) >>> 0;
    h1 = (Math.imul(h1, 5) + 0x561ccd1b) >>> 0;
    h2 = (rotate((h2 ^ mix2(data.readUInt32LE(at + 4))) >>> 0, 13) + h1) >>> 0;
    h2 = (Math.imul(h2, 5) + 0x0bcaa747) >>> 0;
  }
  const left = data.length - at;
  if (left > 0) h1 = (h1 ^ mix1(littleEndian(data, at, Math.min(4, left)))) >>> 0;
  if (left > 4) h2 = (h2 ^ mix2(littleEndian(data, at + 4, left - 4))) >>> 0;
  h1 = (h1 ^ data.length) >>> 0;
  h2 = (h2 ^ data.length) >>> 0;
  [h1, h2] = crossed(h1, h2);
  [h1, h2] = crossed(finished(h1), finished(h2));
  return (BigInt(h2) << 32n) | BigInt(h1);
}

function crossed(a: number, b: number): [number, number] {
  const first = (a + b) >>> 0;
  return [first, (b + first) >>> 0];
}

function finished(value: number): number {
  let h = value ^ (value >>> 16);
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

function littleEndian(data: Buffer, at: number, bytes: number): number {
  let value = 0;
  for (let i = 0; i < bytes; i++) value |= (data[at + i] ?? 0) << (8 * i);
  return value >>> 0;
}
