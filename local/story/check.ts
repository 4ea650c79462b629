import { isDeepStrictEqual } from 'node:util';

/** Something was not as it is told. */
export class NotAsTold extends Error {
  override name = 'NotAsTold';
  readonly expected: unknown;
  readonly seen: unknown;

  constructor(what: string, expected: unknown, seen: unknown) {
    super(what);
    this.expected = expected;
    this.seen = seen;
  }
}

/** Throws {@link NotAsTold} unless `seen` is `expected`, to the last member. */
export function expectSame(what: string, seen: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(seen, expected)) throw new NotAsTold(what, expected, seen);
}
