/** What must be true after a run, whatever happened to it. Every sentence that is not true is told. */
import { TableClient } from '@azure/data-tables';
import type { PlanJson } from '../harness/office.ts';
import { differences, type Piece, pieceOf } from './mail.ts';
import type { Ended } from './operate.ts';
import type { World } from './world.ts';

/** Most letters that a chunk holds. */
const CHUNK = 97;

/** A letter of a plan, as the office tells of it. */
export interface PlanLetter {
  readonly sequenceNumber: string;
  readonly fate: string;
  readonly reason: string | null;
  readonly maybeDuplicate: boolean;
}

/** What was found. */
export interface Verdict {
  readonly problems: readonly string[];
  /** Messages that the plan put into the target. */
  readonly copies: number;
  readonly marked: number;
  /** Crashes and lost answers that can each have left one chunk unclear. */
  readonly strikes: number;
}

export async function judge(world: World, ended: Ended): Promise<Verdict> {
  const { name, run, plan, originals, letters, leftOut, seen, byHand } = ended;
  const problems: string[] = [];
  const check = (holds: boolean, sentence: () => string) => {
    if (!holds) problems.push(sentence());
  };
  const { broker } = world.office;
  const dead = broker.messages(`${name}/$DeadLetterQueue`).map(pieceOf);
  const waiting = broker.messages(name).map(pieceOf);
  const arrived = new Map<string, Piece>(seen);
  for (const piece of [...waiting, ...dead]) if (piece.planId !== undefined) arrived.set(piece.number, piece);
  const copies = [...arrived.values()].filter(({ planId }) => planId === plan.id);
  const copiesOf = Map.groupBy(copies, ({ of }) => of ?? '');
  const deadNumbers = new Set(dead.filter(({ planId }) => planId === undefined).map(({ number }) => number));
  const strikes = world.crashes - ended.crashesBefore + interruptions(world.log, plan.id);

  // Nothing is lost.
  const somewhere = new Set([...dead, ...waiting, ...seen.values()].map(({ origin }) => origin));
  const lost = [...originals.keys()].filter((id) => !somewhere.has(id) && !byHand.has(id));
  if (run.action === 'replay') check(lost.length === 0, () => `lost: ${lost}`);
  else check(lost.length <= plan.counts.done, () => `${lost.length} are gone, ${plan.counts.done} were discarded`);

  // Every letter has one fate, and the fates are the counts.
  const told = await allLetters(world, plan);
  const { counts } = plan;
  const count = (fate: string) => told.filter((letter) => letter.fate === fate).length;
  const chosen = new Set([...letters.keys()].filter((number) => !leftOut.has(number)));
  check(counts.planned === chosen.size, () => `${counts.planned} were planned, not ${chosen.size}`);
  check(counts.pending === 0, () => `${counts.pending} are pending in a run that has ended`);
  check(
    counts.planned === counts.done + counts.skipped + counts.failed + counts.left,
    () => `the counts do not add up: ${JSON.stringify(counts)}`,
  );
  check(
    told.length === chosen.size && told.every(({ sequenceNumber }) => chosen.delete(sequenceNumber)),
    () => `the plan tells of ${told.length} letters, ${chosen.size} are missing, some twice`,
  );
  for (const fate of ['done', 'skipped', 'failed', 'left'] as const) {
    check(counts[fate] === count(fate), () => `${counts[fate]} ${fate} by the counts, ${count(fate)} by the letters`);
  }

  // Each letter is where its fate says, as often as its mark allows.
  const marked = told.filter(({ maybeDuplicate }) => maybeDuplicate);
  for (const { sequenceNumber: number, fate, reason, maybeDuplicate } of told) {
    const sent = copiesOf.get(number)?.length ?? 0;
    const least = fate === 'done' && run.action === 'replay' ? 1 : 0;
    const most = maybeDuplicate ? 1 + strikes : least;
    check(
      sent >= least && sent <= most,
      () => `letter ${number} (${fate}, marked ${maybeDuplicate}) was sent ${sent} times`,
    );
    if (fate === 'done') check(!deadNumbers.has(number), () => `letter ${number} is done and still there`);
    else if (reason === 'gone') check(!deadNumbers.has(number), () => `letter ${number} is called gone and is there`);
    else
      check(
        deadNumbers.has(number) || byHand.has(letters.get(number) ?? ''),
        () => `letter ${number} is ${fate} and not there`,
      );
  }
  for (const number of leftOut) {
    check(!copiesOf.has(number), () => `letter ${number} was not chosen and was sent`);
    check(
      deadNumbers.has(number) || byHand.has(letters.get(number) ?? ''),
      () => `letter ${number} was not chosen and is gone`,
    );
  }
  check(
    counts.maybeDuplicate === marked.length,
    () => `${counts.maybeDuplicate} marked by the counts, ${marked.length} by the letters`,
  );
  check(marked.length <= strikes * CHUNK, () => `${marked.length} are marked after ${strikes} strikes`);
  check(
    copies.length >= (run.action === 'replay' ? counts.done : 0),
    () => `${copies.length} copies, ${counts.done} done`,
  );
  check(
    copies.length <= counts.done + counts.maybeDuplicate * Math.max(strikes, 1),
    () => `${copies.length} copies, ${counts.done} done, ${counts.maybeDuplicate} marked`,
  );

  // Every copy is what died.
  const isRenamed = run.kind === 'renamed';
  for (const { origin, of, count: replays, stored, number } of copies) {
    const original = originals.get(origin);
    check(
      original !== undefined && letters.get(of ?? '') === origin,
      () => `copy ${number} says it is ${of}, ${origin}`,
    );
    check(replays === 1, () => `copy ${number} was replayed ${replays} times`);
    // Once it is dead again it has the reasons of its second death.
    if (original === undefined || dead.some((piece) => piece.number === number)) continue;
    const changed = differences(original, stored, isRenamed);
    check(changed.length === 0, () => `copy ${number} of ${origin} differs: ${changed}`);
  }

  // Nothing is left locked, and the records say what is so.
  const locked = dead.filter((piece) => piece.locked);
  check(locked.length === 0, () => `still locked: ${locked.map(({ number }) => number)}`);
  const fates = await recordedFates(world, name);
  const open = [...fates].filter(([, { fate }]) => fate === 'open').map(([number]) => number);
  const isThere = new Set(dead.map(({ number }) => number));
  check(
    open.length === isThere.size && open.every((number) => isThere.has(number)),
    () => `${open.length} records are open, ${isThere.size} letters are there`,
  );
  const fate = run.action === 'replay' ? 'replayed' : 'discarded';
  for (const letter of told) {
    if (letter.fate !== 'done') continue;
    const recorded = fates.get(letter.sequenceNumber);
    check(
      recorded?.fate === fate && recorded.planId === plan.id,
      () => `letter ${letter.sequenceNumber} is done and recorded as ${recorded?.fate} by ${recorded?.planId}`,
    );
  }
  const { entries } = await world.get<{ entries: { outcome: string; operation: string }[] }>(
    `audit?plan=${plan.id}&top=500`,
  );
  const unclosed = entries.filter(({ outcome, operation }) => outcome === 'open' && operation.startsWith('chunk.'));
  // Two chunks can be under way: one done whose audit was not closed yet, the next audited and not yet in the journal.
  check(
    unclosed.length <= 2 * strikes,
    () => `${unclosed.length} chunks' audit entries are open after ${strikes} strikes`,
  );
  return { problems, copies: copies.length, marked: marked.length, strikes };
}

/** How often the app itself said that a chunk of the plan was interrupted or its outcome unknown. */
function interruptions(log: string, planId: string): number {
  return log
    .split('\n')
    .filter((line) => line.includes(planId) && /interrupted|outcome of a send is unknown/.test(line)).length;
}

/** All letters of a plan. */
export async function allLetters(world: World, plan: Pick<PlanJson, 'id'>): Promise<PlanLetter[]> {
  const all: PlanLetter[] = [];
  let continuation = '';
  do {
    const page = await world.get<{ letters: PlanLetter[]; continuation: string | null }>(
      `plans/${plan.id}/letters?top=100${continuation && `&continuation=${encodeURIComponent(continuation)}`}`,
    );
    all.push(...page.letters);
    continuation = page.continuation ?? '';
  } while (continuation !== '');
  return all;
}

/** What the letters' rows say, read past the office. */
async function recordedFates(world: World, name: string): Promise<Map<string, { fate: string; planId: unknown }>> {
  const { storage } = world;
  const table = TableClient.fromConnectionString(storage, 'letters', { allowInsecureConnection: true });
  const filter = `PartitionKey eq '127.0.0.1|${name}'`;
  const fates = new Map<string, { fate: string; planId: unknown }>();
  for await (const row of table.listEntities({ queryOptions: { filter } })) {
    fates.set(String(row.sequenceNumber), { fate: String(row.fate), planId: row.closedBy });
  }
  return fates;
}
