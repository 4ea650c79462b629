/** What people and consumers do around one run: make the plan, start it, pause, resume, cancel it, and take what arrives. */
import { setTimeout as delay } from 'node:timers/promises';
import type { ServiceBusReceivedMessage } from '@azure/service-bus';
import Long from 'long';
import { type LetterJson, type PlanJson, until } from '../harness/office.ts';
import { killLetters, type Piece, pieceOf } from './mail.ts';
import type { Scenario } from './scenario.ts';
import { LOCKS_END, PATIENCE, type World } from './world.ts';

/** A run that has ended, with all that is needed to judge it. */
export interface Ended {
  readonly name: string;
  readonly run: Scenario;
  readonly plan: PlanJson;
  /** The messages before they died, by id. */
  readonly originals: ReadonlyMap<string, Buffer>;
  /** The letters before the run, by number: their ids. */
  readonly letters: ReadonlyMap<string, string>;
  /** Numbers of the letters that the selection leaves out. */
  readonly leftOut: ReadonlySet<string>;
  /** What the consumer has seen in the target, by number. */
  readonly seen: ReadonlyMap<string, Piece>;
  /** Ids of letters that somebody completed by hand, or tried to. */
  readonly byHand: ReadonlySet<string>;
  readonly crashesBefore: number;
}

/** A run is given up when it has not ended after so long, ms. */
const LIMIT = 150_000;
const MAX_RESUMES = 8;

/** Puts the letters of a run into the dead-letter queue. */
export async function prepare(
  world: World,
  name: string,
  run: Scenario,
): Promise<Pick<Ended, 'originals' | 'letters'>> {
  const originals = await killLetters(world.office, name, run);
  const dead = world.office.broker.messages(`${name}/$DeadLetterQueue`).map(pieceOf);
  return { originals, letters: new Map(dead.map(({ number, origin }) => [number, origin])) };
}

/** Carries out one run from the first look at its letters to its end. */
export async function operate(
  world: World,
  name: string,
  run: Scenario,
  { originals, letters }: Pick<Ended, 'originals' | 'letters'>,
): Promise<Ended> {
  const crashesBefore = world.crashes;
  const seen = new Map<string, Piece>();
  const byHand = new Set<string>();
  const over = new AbortController();
  await findLetters(world, name, run);
  const numbers = [...letters.keys()];
  const leftOut = new Set(numbers.filter(() => run.dice.chance(run.leftOut)));
  if (leftOut.size === numbers.length) leftOut.clear();
  const made = await makePlan(world, name, run, numbers, leftOut);
  const others = [
    run.isConsumed ? consume(world, name, run, seen, over.signal) : undefined,
    run.meddles > 0 ? meddle(world, name, run, letters, byHand) : undefined,
  ];
  try {
    await start(world, run, made);
    const plan = await accompany(world, run, made.id);
    return { name, run, plan, originals, letters, leftOut, seen, byHand, crashesBefore };
  } finally {
    over.abort();
    // A client whose connection was dropped may wait a minute for an answer.
    await Promise.race([Promise.all(others), delay(3000)]);
  }
}

async function findLetters(world: World, name: string, run: Scenario): Promise<void> {
  const isHeld = run.kind !== 'watched' && run.kind !== 'sessions';
  await until(
    async () => {
      await world.call('read', 'POST', `sources/${name}/collect`, {});
      const dead = world.office.broker.messages(`${name}/$DeadLetterQueue`);
      if (isHeld && dead.some(({ state, locked }) => state !== 'deferred' || locked)) return undefined;
      const { letters } = await world.get<{ letters: LetterJson[] }>(`sources/${name}/letters?top=500`);
      return letters.length === run.letters || undefined;
    },
    `${run.letters} letters of ${name} to be recorded`,
    90_000,
  );
}

async function makePlan(
  world: World,
  name: string,
  run: Scenario,
  numbers: readonly string[],
  leftOut: ReadonlySet<string>,
): Promise<PlanJson> {
  const chosen = numbers.filter((number) => !leftOut.has(number));
  const body = {
    action: run.action,
    ...(leftOut.size > 0 && {
      selection: run.dice.chance(0.5) ? { not: { sequenceNumber: [...leftOut] } } : { sequenceNumber: chosen },
    }),
    choices: { bypass: run.bypass, ...(run.kind === 'renamed' && { onDuplicate: 'new-id' }) },
  };
  const answer = await world.call('replay', 'POST', `sources/${name}/plans`, body);
  if (answer.status >= 300) throw new Error(`plan: ${answer.status} ${answer.text}`);
  const { id } = answer.json as PlanJson;
  return until(
    async () => {
      const plan = await world.get<PlanJson>(`plans/${id}`);
      return plan.state === 'ready' ? plan : undefined;
    },
    `plan ${id} to be ready`,
    PATIENCE,
  );
}

/** Starts a plan; that its answer may be lost makes no difference: it is looked at, and started if it has not been. */
async function start(world: World, run: Scenario, plan: PlanJson): Promise<void> {
  const path = `plans/${plan.id}/${run.action === 'replay' ? 'run' : 'discard'}`;
  await until(
    async () => {
      const now = await world.get<PlanJson>(`plans/${plan.id}`);
      if (now.state !== 'ready') return now;
      const body = { confirm: plan.counts.pending, ...(run.action === 'replay' ? run.pace : {}) };
      const answer = await world.call(run.action, 'POST', path, body);
      if (answer.status < 300) return plan;
      const { code } = answer.json as { code: string };
      // Its own earlier call may have died with the source in hand.
      if (answer.status === 409 && code !== 'DLO_CONFIRM_MISMATCH') return undefined;
      throw new Error(`run: ${answer.status} ${answer.text}`);
    },
    `plan ${plan.id} to be started`,
    PATIENCE,
  );
}

/** Watches a run to its end, does the deeds of its scenario, and goes on with what has stopped. */
async function accompany(world: World, run: Scenario, id: string): Promise<PlanJson> {
  const deeds = [...run.deeds];
  let resumes = 0;
  const end = Date.now() + LIMIT;
  for (;;) {
    const plan = await world.get<PlanJson>(`plans/${id}`);
    const { counts, state } = plan;
    if (state === 'finished' || state === 'cancelled') return plan;
    if (Date.now() > end)
      throw new Error(`plan ${id} did not end: ${state} ${plan.stateReason} ${JSON.stringify(counts)}`);
    const [next] = deeds;
    if (state === 'paused' || state === 'halted') {
      await delay(run.dice.int(0, 200));
      const verb = ++resumes > MAX_RESUMES ? 'cancel' : 'resume';
      await tellPlan(world, plan, verb);
    } else if (next !== undefined && (counts.planned - counts.pending) / counts.planned >= next.at) {
      deeds.shift();
      if (next.do === 'stop') await expectAccepted(world, 'replay', 'stop');
      else await tellPlan(world, plan, next.do);
    }
    await delay(150);
  }
}

/** Asks for a transition, where the plan's action has it and by the right that it takes. */
export async function tellPlan(
  world: World,
  { id, action }: Pick<PlanJson, 'id' | 'action'>,
  verb: 'pause' | 'resume' | 'cancel',
): Promise<void> {
  await expectAccepted(world, action, `plans/${id}/${action === 'discard' ? 'discard/' : ''}${verb}`);
}

async function expectAccepted(world: World, right: 'replay' | 'discard', path: string): Promise<void> {
  const answer = await world.call(right, 'POST', path, {});
  // 409: it has ended, or moved on, or its source is still held by a process that is dead.
  if (answer.status >= 300 && answer.status !== 409) throw new Error(`${path}: ${answer.status} ${answer.text}`);
}

/** A consumer of the target: completes most, rejects some for good. */
async function consume(
  world: World,
  queue: string,
  run: Scenario,
  seen: Map<string, Piece>,
  over: AbortSignal,
): Promise<void> {
  const { office } = world;
  while (!over.aborted) {
    const receiver = office.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
    try {
      while (!over.aborted) {
        const messages = await receiver.receiveMessages(20, { maxWaitTimeInMs: 150 });
        const there = new Map(office.broker.messages(queue).map((view) => [String(view.sequenceNumber), view]));
        for (const message of messages) {
          const view = there.get(String(message.sequenceNumber));
          if (view !== undefined) seen.set(String(view.sequenceNumber), pieceOf(view));
          if (run.dice.chance(run.rejects)) {
            const why = { deadLetterReason: 'StillBroken', deadLetterErrorDescription: 'again' };
            await receiver.deadLetterMessage(message, why);
          } else await receiver.completeMessage(message);
        }
      }
    } catch {
      await delay(50); // cut off, or too late for its lock: the message comes again
    } finally {
      await receiver.close().catch(() => {});
    }
  }
}

/** Somebody with another tool who completes letters one by one. */
async function meddle(
  world: World,
  queue: string,
  run: Scenario,
  letters: ReadonlyMap<string, string>,
  byHand: Set<string>,
): Promise<void> {
  const all = [...letters];
  for (let i = 0; i < run.meddles; i++) {
    await delay(run.dice.int(0, 400));
    const [number, origin] = all[run.dice.int(0, all.length - 1)] ?? ['', ''];
    const receiver = world.office.client.createReceiver(queue, { subQueueType: 'deadLetter' });
    try {
      const found: ServiceBusReceivedMessage[] = await receiver.receiveDeferredMessages([Long.fromString(number)]);
      for (const message of found) {
        byHand.add(origin); // first: the answer may be lost
        await receiver.completeMessage(message);
      }
    } catch {
      // The office has it, or it is gone.
    } finally {
      await receiver.close().catch(() => {});
    }
  }
}

/** Lets all locks end, and the office see what is there now and what is not. */
export async function settleDown(world: World, names: readonly string[]): Promise<void> {
  for (const name of names) await untilFree(world, name);
  world.office.broker.clock.advance(LOCKS_END);
  for (const name of names) await world.call('read', 'POST', `sources/${name}/collect`, {});
  await world.office.process.run('reconcile');
}

/** Waits until no run has the source. Throws with what the run that keeps it says, and with the app's log. */
async function untilFree(world: World, name: string): Promise<void> {
  const holder = async () => (await world.get<{ heldBy: string | null }>(`sources/${name}`)).heldBy;
  try {
    await until(async () => (await holder()) === null || undefined, `${name} to be free`, PATIENCE);
  } catch (cause) {
    const plan = await world.get<PlanJson>(`plans/${await holder()}`);
    throw new Error(`${name} is not given back: ${JSON.stringify(plan)}\n${world.log}`, { cause });
  }
}
