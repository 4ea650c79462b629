/** An office that dies and comes back, and how the outside world goes on with it meanwhile. */
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { Dice } from '../harness/dice.ts';
import type { Answer } from '../harness/host.ts';
import type { TestOffice } from '../harness/office.ts';
import type { StoreProxy } from '../harness/storeProxy.ts';

/** Longer than any lock of a test's broker lasts, ms. */
export const LOCKS_END = 61_000;
/** How long locks last, ms. */
export interface Pace {
  /** After the app is back from its death: those that it held before. */
  readonly afterDeath: readonly [number, ...number[]];
  /** In a run that is struck. */
  readonly locksEnd: number;
  /** Whether there are many letters that are not held: those are completed another way. */
  readonly hasLookedAt: boolean;
}
const PACE: Pace = { afterDeath: [0, 500, 1500], locksEnd: 4_000, hasLookedAt: false };
/** Whoever gets no sensible answer for so long gives up, ms. The app dies meanwhile and starts again, on a busy machine slowly. */
export const PATIENCE = 300_000;

export class World {
  readonly office: TestOffice;
  /** Between the app and its storage. */
  readonly proxy: StoreProxy;
  /** The storage itself. */
  readonly storage: string;
  /** How often the app was killed. */
  crashes = 0;
  /** At which points. */
  readonly deaths: string[] = [];
  /** Answers of the app that were server errors. */
  serverErrors = 0;
  #logs = '';
  #up: Promise<void> = Promise.resolve();
  #isOver = false;
  readonly #watching: Promise<void>;

  /** Where the office reads how far its clock is ahead of the real one; `undefined`: it is not. */
  readonly #clockFile: string | undefined;

  readonly pace: Pace;

  constructor(office: TestOffice, proxy: StoreProxy, storage: string, pace: Pace = PACE, clockFile?: string) {
    this.pace = pace;
    this.#clockFile = clockFile;
    this.office = office;
    this.proxy = proxy;
    this.storage = storage;
    this.#watching = this.#watch();
  }

  /** What all processes logged so far. */
  get log(): string {
    return this.#logs + this.office.process.log();
  }

  /** Calls the office until it answers something else than an error of its own, also over its death. */
  async call(...parts: Parameters<TestOffice['call']>): Promise<Answer> {
    const end = Date.now() + PATIENCE;
    for (;;) {
      await this.#up;
      let trouble: unknown;
      try {
        const answer = await this.office.call(...parts);
        if (answer.status < 500) return answer;
        this.serverErrors++;
        trouble = `${answer.status} ${answer.text}`;
      } catch (error) {
        trouble = error; // it died, or was cut off: then it is asked again
      }
      if (Date.now() > end) throw new Error(`${parts[1]} ${parts[2]} got no answer`, { cause: trouble });
      await delay(50);
    }
  }

  /** The result of a GET, which has to succeed in the end. */
  async get<Result>(path: string): Promise<Result> {
    const answer = await this.call('read', 'GET', path);
    if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.text}`);
    return answer.json as Result;
  }

  /** Kills the app and starts it again. What it held locked stays locked until the broker's clock has passed. */
  async crash(dice: Dice, letGo: () => void): Promise<void> {
    let isBack = () => {};
    this.#up = new Promise((resolve) => {
      isBack = resolve;
    });
    const { office } = this;
    await office.kill();
    this.crashes++;
    this.#logs += `${office.process.log()}--- killed\n`;
    // Without its locks nothing of what the broker holds back is settled; else it is still done, after its death.
    if (dice.chance(0.5)) office.broker.clock.advance(LOCKS_END);
    office.broker.dropConnections();
    letGo();
    await office.restart();
    isBack();
    await delay(dice.pick(this.pace.afterDeath));
    office.broker.clock.advance(LOCKS_END);
  }

  /** The timer that is due every minute, more often. */
  async #watch(): Promise<void> {
    while (!this.#isOver) {
      await this.#up;
      await this.office.process.run('watch').catch(() => {}); // it may just have died; the next one will do
      await delay(500);
    }
  }

  /** Sets the office's clock as the broker's, but for `skew` ms that it is ahead. */
  async setClocks(skew: number): Promise<void> {
    if (this.#clockFile === undefined) return;
    await writeFile(this.#clockFile, String(this.office.broker.clock.now() - Date.now() + skew));
    await delay(100); // the office looks there now and then
  }

  /** Lets the broker's locks end every few seconds, also those in use: a run that is struck leaves some behind. */
  async endLocks(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await delay(this.pace.locksEnd, undefined, { signal: over }).catch(() => {});
      this.office.broker.clock.advance(LOCKS_END);
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#watching;
  }
}
