/**
 * Faults at random, that come again: a seed and a sequence of events decide together which of them go wrong and how.
 * What a client does depends on timing, so the same seed makes two runs alike, not equal; the log says what was done.
 */
import type { FaultEffect, FaultEvent, FaultSource } from './faults.ts';

/** How probable each fault is, from 0 to 1, at every event it can happen to. */
export interface ChaosRates {
  /** A send or settlement is refused with an internal error. */
  readonly refuse: number;
  /** A request of any kind is throttled. */
  readonly serverBusy: number;
  /** It is done, and the client does not hear of it. */
  readonly loseAnswer: number;
  /** It is done or not, and the connection is gone. */
  readonly dropConnection: number;
  /** The connection is gone before any frame. */
  readonly dropAtFrame: number;
  /** The locks a settlement or renewal is about are lost. */
  readonly loseLock: number;
  /** It takes longer. */
  readonly delay: number;
  /** An entity delivers nothing for a while. */
  readonly pause: number;
}

export interface ChaosOptions {
  /** A whole number from 0 to 2^32 - 1. */
  readonly seed: number;
  /** In place of the default rates; what is left out keeps its default. */
  readonly rates?: Partial<ChaosRates>;
  /** Longest delay, milliseconds. Default 200. A pause is up to five times as long. */
  readonly maxDelayMs?: number;
}

/** What was done about one event. */
export interface ChaosEntry {
  /** How many events came before. */
  readonly event: number;
  readonly at: FaultEvent['at'];
  readonly entity: string;
  readonly operation: string | undefined;
  readonly effect: FaultEffect;
}

const DEFAULT_RATES: ChaosRates = {
  refuse: 0.01,
  serverBusy: 0.01,
  loseAnswer: 0.01,
  dropConnection: 0.005,
  dropAtFrame: 0.0005,
  loseLock: 0.01,
  delay: 0.05,
  pause: 0.01,
};

/** What can happen to which event, in the order in which the dice are read. */
const POSSIBLE: Record<FaultEvent['at'], readonly (keyof ChaosRates)[]> = {
  send: ['refuse', 'serverBusy', 'loseAnswer', 'dropConnection', 'delay'],
  settle: ['refuse', 'serverBusy', 'loseAnswer', 'dropConnection', 'loseLock', 'delay'],
  manage: ['serverBusy', 'loseAnswer', 'dropConnection', 'loseLock', 'delay'],
  deliver: ['pause'],
  frame: ['dropAtFrame'],
};
const LOG_LIMIT = 10_000;

export class Chaos implements FaultSource {
  readonly #rates: ChaosRates;
  readonly #random: () => number;
  readonly #maxDelay: number;
  readonly #log: ChaosEntry[] = [];
  #events = 0;
  #hits = 0;
  #stopped = false;

  constructor({ seed, rates = {}, maxDelayMs = 200 }: ChaosOptions) {
    this.#rates = { ...DEFAULT_RATES, ...rates };
    this.#random = randomFrom(seed);
    this.#maxDelay = maxDelayMs;
  }

  /** How often something went wrong so far. */
  get hits(): number {
    return this.#hits;
  }

  /** What was done so far, the last ten thousand. */
  get log(): readonly ChaosEntry[] {
    return this.#log;
  }

  /** Lets everything go well from now on. */
  stop(): void {
    this.#stopped = true;
  }

  decide(events: readonly FaultEvent[]): FaultEffect | undefined {
    const event = events.at(-1);
    if (this.#stopped || !event) return undefined;
    // Always two draws, whatever comes of them: otherwise one decision would shift all that follow.
    const [choice, size] = [this.#random(), this.#random()];
    const number = this.#events++;
    let reached = 0;
    for (const kind of POSSIBLE[event.at]) {
      reached += this.#rates[kind];
      if (choice >= reached) continue;
      const effect = this.#effect(kind, size);
      this.#hits++;
      this.#log.push({ event: number, at: event.at, entity: event.entity, operation: event.operation, effect });
      if (this.#log.length > LOG_LIMIT) this.#log.shift();
      return effect;
    }
    return undefined;
  }

  #effect(kind: keyof ChaosRates, size: number): FaultEffect {
    switch (kind) {
      case 'refuse':
        return { do: 'refuse' };
      case 'serverBusy':
        return { do: 'server-busy' };
      case 'loseAnswer':
        return { do: 'lose-answer' };
      case 'dropConnection':
        return { do: 'drop-connection', when: size < 0.5 ? 'before' : 'after' };
      case 'dropAtFrame':
        return { do: 'drop-connection', when: 'before' };
      case 'loseLock':
        return { do: 'lose-lock' };
      case 'delay':
        return { do: 'delay', ms: Math.ceil(size * this.#maxDelay) };
      case 'pause':
        return { do: 'delay', ms: Math.ceil(size * 5 * this.#maxDelay) };
    }
  }
}

/** The seed that a command line names: a whole number below 2^32; `undefined` when it is none. */
export function seedOf(text: string): number | undefined {
  return /^\d{1,10}$/.test(text) && Number(text) <= 0xffff_ffff ? Number(text) : undefined;
}

/** Random numbers from 0 to below 1, the same for the same seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
