/** Which letters a hold keeps back. Values only. */
import type { Fingerprint } from '../classify/fingerprint.ts';
import { type Triage, triageOf } from './triage.ts';

/** A letter as a hold sees it: its group, and the one that an earlier version put it in. */
export interface Held {
  readonly fingerprint: Fingerprint;
  readonly formerly?: Fingerprint | undefined;
}

/** Groups on hold, but for those that a plan includes by name. */
export class Holds {
  readonly #said: ReadonlyMap<Fingerprint, Triage>;
  readonly #former: ReadonlyMap<Fingerprint, readonly Fingerprint[]>;
  readonly #included: ReadonlySet<Fingerprint>;

  /** `former`: groups of the source with those that an earlier version put letters of theirs in. */
  constructor(
    said: ReadonlyMap<Fingerprint, Triage>,
    former: ReadonlyMap<Fingerprint, readonly Fingerprint[]>,
    included: Iterable<Fingerprint> = [],
  ) {
    this.#said = said;
    this.#former = former;
    this.#included = new Set(included);
  }

  /**
   * The group on hold that keeps a letter back; `undefined` when none does. A hold of an earlier version counts for all that its
   * group has become, until something is said of a part of it.
   */
  of({ fingerprint, formerly }: Held): Fingerprint | undefined {
    const before = [...(formerly === undefined ? [] : [formerly]), ...(this.#former.get(fingerprint) ?? [])];
    if (this.#included.has(fingerprint)) return undefined;
    const named = { fingerprint, formerly: before.filter((one) => !this.#included.has(one)) };
    const triage = triageOf(this.#said, named);
    return triage?.state === 'on-hold' ? triage.fingerprint : undefined;
  }

  /** Groups in which letters may be that are kept back. */
  get groups(): readonly Fingerprint[] {
    const held = [...this.#said.values()]
      .filter(({ state }) => state === 'on-hold')
      .map(({ fingerprint }) => fingerprint);
    const parts = [...this.#former].filter(([, before]) => before.some((one) => held.includes(one)));
    return [...new Set([...held, ...parts.map(([fingerprint]) => fingerprint)])];
  }
}
