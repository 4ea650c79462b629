/** What happens in a contest: letters die, some with the ids of others; plans are made over them, started, paused, ended. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceBusMessage } from '@azure/service-bus';
import { type LetterJson, type PlanJson, until } from '../harness/office.ts';
import { type Contest, type Entrant, REACH } from './contest.ts';
import { type Piece, pieceOf, rejectAll } from './mail.ts';
import { tellPlan } from './operate.ts';
import { PATIENCE, type World } from './world.ts';

/** A contest that is over, with all that is needed to judge it. */
export interface Contested {
  readonly name: string;
  readonly contest: Contest;
  readonly plans: readonly { readonly plan: PlanJson; readonly entrant: Entrant }[];
  /** Names of all messages that were sent. */
  readonly mails: ReadonlySet<string>;
  /** Of these, the ones that went with their queue. */
  readonly erased: ReadonlySet<string>;
  /** What each number has been, one after the other. */
  readonly owners: ReadonlyMap<string, readonly string[]>;
  /** What a consumer has taken. */
  readonly seen: readonly Piece[];
}

/** Longer than the window of any target, and the margins at both its ends, ms. */
const LONG_AFTER = 200_000;
/** A contest is given up when it has not ended after so long, ms. */
const LIMIT = 300_000;
const MAX_RESUMES = 6;

function letterOf(mail: string, messageId: string, body: ServiceBusMessage['body']): ServiceBusMessage {
  return { messageId, body, applicationProperties: { mail } };
}

/** Tries until it succeeds. */
async function insist(act: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await act();
    } catch (error) {
      if (tries >= 20) throw error;
      await delay(200);
    }
  }
}

/** Letters of a contest, dead, and what is known of them. */
export class Arena {
  readonly mails = new Set<string>();
  readonly erased = new Set<string>();
  readonly owners = new Map<string, string[]>();
  readonly seen = new Map<string, Piece>();
  readonly #world: World;
  readonly #name: string;
  readonly #contest: Contest;

  constructor(world: World, name: string, contest: Contest) {
    this.#world = world;
    this.#name = name;
    this.#contest = contest;
  }

  /** Sends messages and has them rejected; those with the id of another long after it, so that none is taken for a duplicate. */
  async kill(): Promise<void> {
    const { office } = this.#world;
    const { dice, letters, repeats } = this.#contest;
    const waves: ServiceBusMessage[][] = [[]];
    for (let i = 0; i < letters; i++) {
      const mail = this.#next();
      const other = dice.chance(repeats) ? waves.flat()[dice.int(0, Math.max(0, i - 1))] : undefined;
      const messageId = String(other?.messageId ?? mail);
      // Some are the same to the last byte but for their name.
      const body = other !== undefined && dice.chance(0.5) ? other.body : { mail };
      const place = waves.findIndex((others) => others.every((other) => other.messageId !== messageId));
      if (place < 0) waves.push([letterOf(mail, messageId, body)]);
      else waves[place]?.push(letterOf(mail, messageId, body));
    }
    for (const wave of waves) {
      await office.send(this.#name, wave);
      const receiver = office.client.createReceiver(this.#name, { maxAutoLockRenewalDurationInMs: 0 });
      await rejectAll(receiver, wave.length);
      await receiver.close();
      office.broker.clock.advance(LONG_AFTER);
    }
    this.#noteOwners();
  }

  #noteOwners(): void {
    for (const { number, mail = '' } of this.#dead()) {
      const before = this.owners.get(number) ?? [];
      if (!before.includes(mail)) this.owners.set(number, [...before, mail]);
    }
  }

  /** Somebody deletes the queue and makes it anew, and new letters get the old numbers. */
  async rebirth(): Promise<void> {
    // In the midst of it, mostly: when the first copies have come.
    const copies = () =>
      this.#world.office.broker.messages(this.#name).some((view) => pieceOf(view).planId !== undefined);
    for (const end = Date.now() + this.#contest.dice.int(8000, 25_000); Date.now() < end && !copies(); )
      await delay(20);
    await delay(this.#contest.dice.int(0, 1500));
    this.#noteOwners();
    for (const mail of this.mails) this.erased.add(mail);
    const { office } = this.#world;
    office.broker.recreate(this.#name);
    const fresh = Array.from({ length: this.#contest.dice.int(5, 40) }, () => this.#next());
    // Connections are cut in between; what has not come is sent again, and what is not dead yet rejected again.
    const alive = () => new Set(office.broker.messages(this.#name).map((view) => pieceOf(view).mail));
    await insist(async () => {
      const there = new Set([...alive(), ...this.#dead().map(({ mail }) => mail)]);
      const missing = fresh.filter((mail) => !there.has(mail));
      if (missing.length > 0)
        await office.send(
          this.#name,
          missing.map((mail) => letterOf(mail, mail, { mail })),
        );
    });
    await insist(async () => {
      const receiver = office.client.createReceiver(this.#name, { maxAutoLockRenewalDurationInMs: 0 });
      try {
        while (fresh.some((mail) => alive().has(mail))) await rejectAll(receiver, 1);
      } finally {
        await receiver.close();
      }
    });
    this.#noteOwners();
  }

  #next(): string {
    const mail = `${this.#contest.seed}-${this.mails.size}`;
    this.mails.add(mail);
    return mail;
  }

  #dead(): Piece[] {
    return this.#world.office.broker.messages(`${this.#name}/$DeadLetterQueue`).map(pieceOf);
  }

  /** A consumer of the queue: completes most, rejects some for good. */
  async consume(over: AbortSignal): Promise<void> {
    const { office } = this.#world;
    const { dice, rejects } = this.#contest;
    while (!over.aborted) {
      const receiver = office.client.createReceiver(this.#name, { maxAutoLockRenewalDurationInMs: 0 });
      try {
        while (!over.aborted) {
          const messages = await receiver.receiveMessages(20, { maxWaitTimeInMs: 150 });
          const there = new Map(office.broker.messages(this.#name).map((view) => [String(view.sequenceNumber), view]));
          for (const message of messages) {
            const view = there.get(String(message.sequenceNumber));
            if (view !== undefined) {
              const piece = pieceOf(view);
              this.seen.set(`${piece.number}/${piece.mail}/${piece.planId}`, piece);
            }
            const why = { deadLetterReason: 'StillBroken', deadLetterErrorDescription: 'again' };
            if (dice.chance(rejects)) await receiver.deadLetterMessage(message, why);
            else await receiver.completeMessage(message);
          }
        }
      } catch {
        await delay(50); // cut off, or too late for its lock: the message comes again
      } finally {
        await receiver.close().catch(() => {});
      }
    }
  }
}

/** Carries out a contest from the first look at its letters to the end of its last plan. */
export async function compete(world: World, name: string, contest: Contest, arena: Arena): Promise<Contested> {
  const numbers = await findLetters(world, name, contest);
  const struck = strike(world, name, contest);
  const over = new AbortController();
  const others = [
    contest.isConsumed ? arena.consume(over.signal) : undefined,
    contest.arena === 'reborn' ? arena.rebirth() : undefined,
    passes(world, name, over.signal),
  ];
  try {
    const plans = await drive(world, name, contest, numbers);
    await others[1]; // it may come when all is over
    const { mails, erased, owners } = arena;
    return { name, contest, plans, mails, erased, owners, seen: [...arena.seen.values()] };
  } finally {
    for (const fault of struck) fault.remove();
    over.abort();
    await Promise.race([Promise.all(others), delay(3000)]);
  }
}

function strike(world: World, name: string, { losses: { after, count }, refusals }: Contest) {
  const { faults } = world.office.broker;
  const busy = { at: 'settle', operation: 'complete', do: 'refuse', condition: 'com.microsoft:server-busy' } as const;
  return [
    ...(count > 0 ? [faults.add({ at: 'send', do: 'lose-answer', entity: name, skip: after, times: count })] : []),
    ...(refusals > 0 ? [faults.add({ ...busy, entity: `${name}/$DeadLetterQueue`, times: refusals })] : []),
  ];
}

/** The pass that is due every minute, more often. */
async function passes(world: World, name: string, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await world.call('read', 'POST', `sources/${name}/collect`, {}).catch(() => {}); // the next one will do
    await delay(1000);
  }
}

/** Waits until the office knows all letters; gives the numbers of those that every plan is to be over. */
async function findLetters(world: World, name: string, { arena, letters }: Contest): Promise<string[]> {
  const found = await until(
    async () => {
      await world.call('read', 'POST', `sources/${name}/collect`, {});
      const dead = world.office.broker.messages(`${name}/$DeadLetterQueue`);
      if (arena !== 'deep' && dead.some(({ state, locked }) => state !== 'deferred' || locked)) return undefined;
      const page = await world.get<{ letters: LetterJson[] }>(`sources/${name}/letters?top=500`);
      return page.letters.length === letters ? page.letters : undefined;
    },
    `${letters} letters of ${name} to be recorded`,
    90_000,
  );
  const numbers = found.map(({ sequenceNumber }) => sequenceNumber);
  return arena === 'deep' ? numbers.slice(0, REACH) : numbers;
}

/** A plan on its way. */
interface Running {
  readonly entrant: Entrant;
  plan: PlanJson;
  readonly deeds: Entrant['deeds'][number][];
  resumes: number;
  /** It was refused for good, and is planned again. */
  isOutdated: boolean;
}

async function drive(
  world: World,
  name: string,
  contest: Contest,
  numbers: readonly string[],
): Promise<Contested['plans']> {
  const { dice, entrants, isAtOnce } = contest;
  const running: Running[] = [];
  const waiting = [...entrants];
  const enter = async () => {
    const entrant = waiting.shift();
    if (entrant === undefined) return;
    const plan = await makePlan(world, name, contest, entrant, numbers);
    running.push({ entrant, plan, deeds: [...entrant.deeds], resumes: 0, isOutdated: false });
  };
  while (running.length < (isAtOnce ? entrants.length : 1)) await enter();
  const end = Date.now() + LIMIT;
  for (;;) {
    for (const one of running) {
      if (isOver(one.plan)) continue;
      one.plan = await world.get<PlanJson>(`plans/${one.plan.id}`);
      await act(world, contest, one);
      if (one.isOutdated) {
        one.isOutdated = false;
        waiting.push(one.entrant);
      }
    }
    const last = running.at(-1)?.plan;
    // The next comes when the one before has ended, or while it stands still.
    const isStill = last !== undefined && (isOver(last) || (isStopped(last) && dice.chance(0.5)));
    if (isStill && waiting.length > 0) await enter();
    else if (waiting.length === 0 && running.every(({ plan }) => isOver(plan))) return running;
    if (Date.now() > end) {
      const told = running.map(({ plan: { id, state, stateReason } }) => `${id} ${state} ${stateReason}`);
      throw new Error(`the plans of ${name} did not end: ${told.join('; ')}`);
    }
    await delay(120);
  }
}

const isOver = ({ state }: PlanJson) => state === 'finished' || state === 'cancelled' || state === 'expired';
const isStopped = ({ state }: PlanJson) => state === 'paused' || state === 'halted';

async function makePlan(
  world: World,
  name: string,
  { arena }: Contest,
  { action, onDuplicate }: Entrant,
  numbers: readonly string[],
): Promise<PlanJson> {
  const body = {
    action,
    selection: { sequenceNumber: numbers },
    choices: action === 'replay' && arena === 'detecting' ? { onDuplicate } : {},
  };
  const answer = await world.call('replay', 'POST', `sources/${name}/plans`, body);
  if (answer.status >= 300) throw new Error(`plan: ${answer.status} ${answer.text}`);
  const { id } = answer.json as PlanJson;
  return until(
    async () => {
      const plan = await world.get<PlanJson>(`plans/${id}`);
      return plan.state === 'preparing' ? undefined : plan;
    },
    `plan ${id} to be prepared`,
    PATIENCE,
  );
}

/** One look at a plan: starts it, goes on with it, or does what its scenario asks for. */
async function act(world: World, { dice }: Contest, one: Running): Promise<void> {
  const { plan, entrant, deeds } = one;
  const { id, state, counts } = plan;
  const [next] = deeds;
  if (state === 'ready') {
    const verb = entrant.action === 'replay' ? 'run' : 'discard';
    const pace = entrant.action === 'replay' ? { ramp: false, ...(entrant.rate > 0 && { rate: entrant.rate }) } : {};
    const answer = await world.call(entrant.action, 'POST', `plans/${id}/${verb}`, {
      confirm: counts.pending,
      ...pace,
    });
    const { code, state: other } = answer.json as { code?: string; state?: string };
    // Nothing is left for it, or another has ended in doubt since it was made: then it has to be planned again.
    const isOver = other === 'cancelled' || other === 'expired' || other === 'finished';
    const isOutdated = code === 'DLO_LETTERS_UNENDED' && isOver;
    if (isOutdated) one.isOutdated = true;
    if (code === 'DLO_PLAN_BLOCKED' || isOutdated) await tellPlan(world, one.plan, 'cancel');
    else if (answer.status >= 300 && answer.status !== 409) throw new Error(`run: ${answer.status} ${answer.text}`);
  } else if (isStopped(plan)) {
    if (one.resumes > MAX_RESUMES) await tellPlan(world, one.plan, 'cancel');
    else if (dice.chance(0.4)) {
      one.resumes++;
      await tellPlan(world, one.plan, 'resume');
    }
  } else if (
    next !== undefined &&
    counts.planned > 0 &&
    (counts.planned - counts.pending) / counts.planned >= next.at
  ) {
    deeds.shift();
    await tellPlan(world, one.plan, next.do);
  }
}
