/** What the office believes of Service Bus, one sentence at a time, each with the test that holds it to account. */
import { inspect, isDeepStrictEqual } from 'node:util';
import type { Context } from './context.ts';
import type { ShapeName } from './shapes.ts';

/** Something that not every broker lets a test do. */
export type Ability =
  /** Reads and changes entities through the administration client. */
  | 'administration'
  /** Makes the broker refuse a send as it does under too much load. */
  | 'throttling'
  /** Connects with a key that may only listen. */
  | 'rights';

/** One belief. */
export interface Belief {
  /** `B07`; never given to another belief. */
  readonly id: string;
  /** One plain sentence. */
  readonly belief: string;
  /** Where it comes from: the title of a Microsoft page, a public issue, or "seen on the wire". */
  readonly source: string;
  readonly needs: { readonly entities: readonly ShapeName[]; readonly abilities?: readonly Ability[] };
  /** Throws {@link Surprise} when the broker does otherwise. */
  check(context: Context): Promise<void>;
}

/** The broker does not do what is believed. The message says what was seen. */
export class Surprise extends Error {
  override readonly name = 'Surprise';
}

/** The belief cannot be tested on this broker; the message says why. */
export class NotCheckable extends Error {
  override readonly name = 'NotCheckable';
}

/** Throws {@link Surprise} unless what was `seen` is what was `believed`. `what` names it in a few words. */
export function see(what: string, seen: unknown, believed: unknown): void {
  if (isDeepStrictEqual(seen, believed)) return;
  throw new Surprise(`${what}: saw ${show(seen)}, believed ${show(believed)}`);
}

/** Throws {@link Surprise} unless `holds`; `seen` is what is told instead. */
export function seeThat(what: string, holds: boolean, seen: unknown): void {
  if (!holds) throw new Surprise(`${what}: saw ${show(seen)}`);
}

/** Value as one short line. */
export function show(value: unknown): string {
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  const text = inspect(value, { breakLength: Number.POSITIVE_INFINITY, depth: 4, maxArrayLength: 12 });
  return text.length > 300 ? `${text.slice(0, 299)}…` : text;
}
