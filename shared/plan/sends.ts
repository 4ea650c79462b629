/** What a plan knows of the ids that were sent to its target, and what it notes of its own sends. Only where the target detects duplicates. */
import { type Source, sourceKey } from '../catalog.ts';
import type { Letter, SequenceNumber, SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';
import { newIdOf, type PlanHead } from '../records/plan.ts';
import { type IdDigest, idDigest, type StoredSend } from '../store/sends.ts';
import { StoreConflict } from '../store/table.ts';
import { windowStart } from './duplicates.ts';

/** A letter and the id that it is sent under. */
export interface SentAs {
  readonly number: SequenceNumber;
  readonly messageId: string | undefined;
}

/** What is known about the letters of one chunk. */
export interface ChunkSends {
  /** Whether the ids were looked up; if not, nothing is known of them but what letters tell, and a claim shows whether that is all. */
  readonly areLookedUp: boolean;
  /** When the id of this letter was last sent, but for earlier attempts of this plan at the same letter; ms since 1970, 0 for never. */
  otherSend(letter: Letter): number;
  /** Whether this plan has tried before to send it under a new id: then it must be the same again. */
  wasRenamed(number: SequenceNumber): boolean;
  /**
   * Notes sends that are about to be made. `false`: more was known of one of the ids than this, so all has to be decided anew. Else
   * what takes them back.
   */
  claim(sends: readonly SentAs[]): Promise<false | (() => Promise<void>)>;
}

const NOTHING: ChunkSends = {
  areLookedUp: true,
  otherSend: () => 0,
  wasRenamed: () => false,
  claim: async () => async () => {},
};

/** The sends to one plan's target. Where no id can be dropped nothing is read and nothing written. */
export class Sends {
  readonly #office: Office;
  readonly #head: PlanHead;
  readonly #source: SourceKey;
  readonly #target: SourceKey;
  #byLetters: Promise<Map<IdDigest, number>> | undefined;

  constructor(office: Office, source: Source, head: PlanHead) {
    this.#office = office;
    this.#head = head;
    this.#source = source.key;
    this.#target = sourceKey(source.namespace.host, head.target);
  }

  /** Whether the target may drop an id. */
  get matter(): boolean {
    const { action, choices, facts } = this.#head;
    return action === 'replay' && choices.messageId !== 'new' && windowStart(facts, 0) !== undefined;
  }

  /** Ids that the target may know, with when they were last sent (ms since 1970). */
  async recent(): Promise<ReadonlyMap<IdDigest, number>> {
    if (!this.matter) return new Map();
    const sent = new Map(await this.#ofLetters());
    for (const [id, at] of await this.#office.store.sends.since(this.#target, this.#start())) keepLater(sent, id, at);
    return sent;
  }

  /**
   * What is known about `letters`. To look up their ids takes a call each, and mostly shows that nothing was sent under them: what
   * claims in one call are refused for tells that as well, so it is done (`areLookedUp`) after that alone. Throws `DLO_STORE_UNAVAILABLE`.
   */
  async of(letters: readonly Letter[], areLookedUp: boolean): Promise<ChunkSends> {
    if (!this.matter) return NOTHING;
    const { id: planId, choices } = this.#head;
    const newId = (number: SequenceNumber) => idDigest(newIdOf(planId, number));
    const ids = letters.flatMap(({ messageId, sequenceNumber }) => [
      ...(messageId === undefined ? [] : [idDigest(messageId)]),
      ...(choices.onDuplicate === 'new-id' ? [newId(sequenceNumber)] : []),
    ]);
    const claims = await this.#office.store.sends.get(this.#target, areLookedUp ? ids : []);
    const byLetters = await this.#ofLetters();
    return {
      areLookedUp,
      otherSend: ({ messageId, sequenceNumber }) => {
        if (messageId === undefined) return 0;
        const id = idDigest(messageId);
        const claim = claims.get(id);
        const claimed = claim === undefined || this.#isOurs(claim, sequenceNumber) ? 0 : claim.at;
        return Math.max(claimed, byLetters.get(id) ?? 0);
      },
      wasRenamed: (number) => claims.has(newId(number)),
      claim: (sends) => this.#claim(sends, claims),
    };
  }

  async #claim(
    sends: readonly SentAs[],
    known: ReadonlyMap<IdDigest, StoredSend>,
  ): Promise<false | (() => Promise<void>)> {
    const { clock, store } = this.#office;
    const at = clock();
    const claims = sends.flatMap(({ number, messageId }) => {
      if (messageId === undefined) return [];
      const id = idDigest(messageId);
      return [{ id, at, planId: this.#head.id, number, etag: known.get(id)?.etag }];
    });
    if (claims.length === 0) return async () => {};
    try {
      const etags = await store.sends.claim(this.#target, claims);
      // An earlier attempt may have reached the target: that one is not taken back.
      const fresh = claims
        .map(({ id, number }, i) => ({ id, number, etag: etags[i] ?? '' }))
        .filter(({ id, number }) => !this.#isOurs(known.get(id), number));
      return () => store.sends.withdraw(this.#target, fresh);
    } catch (error) {
      if (error instanceof StoreConflict) return false;
      throw error;
    }
  }

  #isOurs(send: StoredSend | undefined, number: SequenceNumber): boolean {
    return send !== undefined && send.at > 0 && send.planId === this.#head.id && send.number === number;
  }

  #start(): number {
    return windowStart(this.#head.facts, this.#office.clock()) ?? 0;
  }

  /**
   * Letters of the source came with an id, or went back with it; to a sandbox none of them was sent. So did those that died in the
   * target, where the office looks after that, too. Read once, for it takes a search.
   */
  #ofLetters(): Promise<Map<IdDigest, number>> {
    this.#byLetters ??= this.#readLetters();
    return this.#byLetters;
  }

  async #readLetters(): Promise<Map<IdDigest, number>> {
    const sent = new Map<IdDigest, number>();
    const isCopy = this.#head.choices.target === 'sandbox';
    for (const key of new Set(isCopy ? [this.#target] : [this.#source, this.#target])) {
      for await (const { messageId, at } of this.#office.store.letters.sentSince(key, this.#start())) {
        keepLater(sent, idDigest(messageId), at);
      }
    }
    return sent;
  }
}

function keepLater(sent: Map<IdDigest, number>, id: IdDigest, at: number): void {
  if (at > (sent.get(id) ?? 0)) sent.set(id, at);
}
