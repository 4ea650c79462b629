/**
 * The drill: a payment API goes down, letters die on four queues, and an engineer gets them back: causes, plan, ramp, halt, fix,
 * run, audit. Every step checks what it tells and throws `NotAsTold` where it is not so.
 */
import type { z } from 'zod';
import { expectSame } from '../story/check.ts';
import { becomes, type Desk } from '../story/desk.ts';
import { answers } from './answers.ts';
import type { Company } from './company.ts';
import { BROKEN, CHECKOUT, QUEUES, type Watched } from './queues.ts';

/** What every scene has at hand. */
export interface Stage {
  readonly desk: Desk;
  readonly company: Company;
  /** Begins a step. */
  readonly step: (title: string) => void;
  /** Tells something beside the calls. */
  readonly tell: (text: string) => void;
}

type Causes = z.infer<typeof answers.causes>;

/** How long a step of a ramp is watched in the drill. By default it would be lock duration × deliveries + 1 minute. */
const OBSERVE = 'PT3S';
const VICTIMS = QUEUES.reduce((sum, { messages }) => sum + messages, 0);
const NOTE = 'payment API down, provider informed';

/** Plays the drill on an open office. */
export async function playDrill(stage: Stage): Promise<void> {
  await theOutage(stage);
  const cause = await theCause(stage);
  await theHold(stage, cause);
  const plan = await thePlan(stage, cause);
  await theRunThatHalts(stage, plan);
  await theFix(stage, plan);
  await theOneThatCameBack(stage, cause);
  await theOtherQueues(stage, cause);
  await whatIsLeft(stage, cause);
  await theRecord(stage, plan);
}

async function theOutage({ desk, company, step, tell }: Stage): Promise<void> {
  step('The payment API does not answer any more. Four consumers, four frameworks, one outage.');
  await company.placeOrders();
  const all = VICTIMS + BROKEN;
  await becomes('messages given up by their consumers', async () => company.deaths(), all);
  for (const { framework, queue, messages } of QUEUES) tell(`${framework} on ${queue}: ${messages} timeouts`);
  tell(`Among those of checkout are ${BROKEN} orders that no outage killed: their amount is not a number.`);
  await recorded(desk, all);
}

/** Waits until the office has recorded so many open letters over all queues. */
async function recorded(desk: Desk, count: number): Promise<void> {
  const look = async () => {
    await Promise.all(QUEUES.map(({ source }) => desk.collect(source)));
    const { counts } = await desk.look('/summary?by=cause', answers.causes);
    return counts.reduce((sum, one) => sum + one.count, 0);
  };
  await becomes('open letters', look, count);
}

async function theCause({ desk, step, tell }: Stage): Promise<string> {
  step('The engineer is woken up. What died, and is it one cause or ten?');
  const sentence = await desk.showText({ method: 'GET', path: '/summary?by=cause&format=text', key: 'read' });
  expectSame(
    'the sentence',
    sentence.startsWith(`${VICTIMS} letters on four queues, one cause: "TimeoutException`),
    true,
  );
  tell('The same as data:');
  const call = { method: 'GET', path: '/summary?by=cause', key: 'read' } as const;
  const { counts } = await desk.show(call, 200, answers.causes);
  expectSame('the causes', counts.map(inShort), [
    { count: VICTIMS, category: 'transient', advice: 'replay', sources: QUEUES.map(({ source }) => source).sort() },
    { count: BROKEN, category: 'poison', advice: 'fix-first', sources: [CHECKOUT.source] },
  ]);
  tell('Four frameworks wrote it down in four ways, with another request id each time: it is one cause.');
  return counts[0]?.key ?? '';
}

function inShort({ count, category, advice, sources }: Causes['counts'][number]) {
  return { count, category, advice, sources: sources.toSorted() };
}

async function theHold({ desk, step, tell }: Stage, cause: string): Promise<void> {
  step('The API is still down: nobody may send these back yet.');
  const path = `/groups/${cause}/triage`;
  const hold = { state: 'on-hold', owner: 'payments', note: NOTE };
  const call = { method: 'POST', path, key: 'replay', body: hold } as const;
  const { triage } = await desk.show(call, 200, answers.group);
  expectSame('the hold', triage, hold);
  tell('A plan over them would be blocked now. Letters keep; a replay into an outage only costs replays.');
  tell('The provider says that it is over. The hold is lifted:');
  const lifted = { method: 'POST', path, key: 'replay', body: { state: 'open' } } as const;
  expectSame('the state', (await desk.show(lifted, 200, answers.group)).triage.state, 'open');
}

async function thePlan({ desk, step }: Stage, cause: string): Promise<string> {
  step('The dry run for checkout: only this cause. What is broken stays where it is.');
  const plan = await desk.show(planOf(CHECKOUT, cause), 201, answers.plan);
  const { id, ...rest } = plan;
  expectSame('the plan', rest, {
    state: 'ready',
    target: CHECKOUT.queue,
    counts: { planned: CHECKOUT.messages, pending: CHECKOUT.messages, done: 0, skipped: 0, failed: 0 },
    findings: [],
  });
  return id;
}

function planOf({ source }: Watched, cause: string) {
  const body = { selection: { fingerprint: [cause] } };
  return { method: 'POST', path: `/sources/${source}/plans`, key: 'replay', body } as const;
}

function runOf(plan: string, confirm: number, steps: readonly number[]) {
  const body = { confirm, ramp: { steps, observe: OBSERVE } };
  return { method: 'POST', path: `/plans/${plan}/run`, key: 'replay', body } as const;
}

async function theRunThatHalts({ desk, step, tell }: Stage, plan: string): Promise<void> {
  step('The run begins with one letter and watches it. The provider was wrong.');
  await desk.show(runOf(plan, CHECKOUT.messages, [1, 3]), 202, answers.started);
  await reaches(desk, plan, 'halted');
  const call = { method: 'GET', path: `/plans/${plan}`, key: 'read' } as const;
  const now = await desk.show(call, 200, answers.planNow);
  expectSame('what was sent and came back', [now.counts.done, now.returned], [1, 1]);
  tell(
    `One letter came back, ${CHECKOUT.messages - 1} were not touched. Without a ramp it would have been all of them.`,
  );
}

async function reaches(desk: Desk, plan: string, state: string): Promise<void> {
  const look = async () => (await desk.look(`/plans/${plan}`, answers.planNow)).state;
  await becomes(`the state of plan ${plan}`, look, state);
}

async function theFix({ desk, company, step, tell }: Stage, plan: string): Promise<void> {
  step('Now the payment API is mended. The same plan goes on, small again.');
  company.setPayments(true);
  await desk.show({ method: 'POST', path: `/plans/${plan}/resume`, key: 'replay' }, 202, answers.started);
  await reaches(desk, plan, 'finished');
  const now = await desk.show({ method: 'GET', path: `/plans/${plan}`, key: 'read' }, 200, answers.planNow);
  expectSame('what was sent and came back', [now.counts.done, now.returned], [CHECKOUT.messages, 1]);
  tell('1, then 3, then the rest; nothing more came back.');
}

async function theOneThatCameBack({ desk, step, tell }: Stage, cause: string): Promise<void> {
  step('The one that came back has a count, and is not plain "replay" any more. It gets its own plan.');
  const path = `/sources/${CHECKOUT.source}/letters?fingerprint=${cause}`;
  const { letters } = await desk.show({ method: 'GET', path, key: 'read' }, 200, answers.returned);
  expectSame(
    'the letter that came back',
    letters.map(({ replayCount, advice }) => [replayCount, advice]),
    [[1, 'investigate']],
  );
  const { id, counts } = await desk.call(planOf(CHECKOUT, cause), 201, answers.plan);
  expectSame('letters of its plan', counts.pending, 1);
  await desk.call(runOf(id, 1, [1]), 202, answers.started);
  await reaches(desk, id, 'finished');
  tell('Planned, run, consumed.');
}

async function theOtherQueues({ desk, company, step, tell }: Stage, cause: string): Promise<void> {
  step('The same for the other three queues, side by side: one run a source, any number of sources.');
  await Promise.all(
    QUEUES.filter((one) => one !== CHECKOUT).map(async (watched) => {
      const { id, counts } = await desk.call(planOf(watched, cause), 201, answers.plan);
      expectSame(`letters of ${watched.source}`, counts.pending, watched.messages);
      await desk.call(runOf(id, watched.messages, [1]), 202, answers.started);
      await reaches(desk, id, 'finished');
    }),
  );
  for (const { queue, messages } of QUEUES.filter((one) => one !== CHECKOUT))
    tell(`${queue}: ${messages} of ${messages}`);
  await becomes('orders that were charged', async () => company.charges().size, VICTIMS);
  const twice = [...company.charges()].filter(([, times]) => times !== 1);
  expectSame('orders that were charged more than once', twice, []);
  tell(`${VICTIMS} orders are charged, each once.`);
}

async function whatIsLeft({ desk, step, tell }: Stage, cause: string): Promise<void> {
  step('What is left? Only what no replay can mend. The cause is closed; if it strikes again, it says so.');
  await recorded(desk, BROKEN);
  await desk.showText({ method: 'GET', path: '/summary?by=cause&format=text', key: 'read' });
  const { counts } = await desk.look('/summary?by=cause', answers.causes);
  expectSame('the causes', counts.map(inShort), [
    { count: BROKEN, category: 'poison', advice: 'fix-first', sources: [CHECKOUT.source] },
  ]);
  const body = { state: 'resolved', note: 'payment API is back' };
  const resolve = { method: 'POST', path: `/groups/${cause}/triage`, key: 'replay', body } as const;
  const closed = await desk.show(resolve, 200, answers.group);
  expectSame('the cause that is closed', [closed.open, closed.triage.state], [0, 'resolved']);
  tell(
    `The ${BROKEN} broken orders wait for a mended consumer (plan with includeFixFirst), or for somebody to discard them.`,
  );
}

async function theRecord({ desk, step }: Stage, plan: string): Promise<void> {
  step('For the incident report, and for the auditor.');
  const path = `/plans/${plan}/report?format=text`;
  const text = await desk.showText({ method: 'GET', path, key: 'read' });
  expectSame('the report', /^Replay \S+ of checkout-orders: finished/.test(text) && /Came back: 1/.test(text), true);
  const audit = { method: 'GET', path: `/audit?plan=${plan}&top=20`, key: 'read' } as const;
  const { entries } = await desk.show(audit, 200, answers.audit);
  const told = entries.map(({ operation }) => operation).reverse();
  const main = told.filter((operation) => operation.startsWith('plan.'));
  expectSame('operations on the plan', main, ['plan.create', 'plan.run', 'plan.halt', 'plan.resume', 'plan.finish']);
  const moved = entries.filter(({ operation }) => operation === 'chunk.replay');
  const letters = moved.reduce((sum, { letterCount }) => sum + letterCount, 0);
  expectSame('letters in the audit', letters, CHECKOUT.messages);
}
