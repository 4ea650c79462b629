/** What must be true after a contest, by what is in the target and in the dead-letter queue, message by message. */
import type { PlanJson } from '../harness/office.ts';
import type { Contested } from './compete.ts';
import { allLetters, type PlanLetter } from './judge.ts';
import { type Piece, pieceOf } from './mail.ts';
import type { World } from './world.ts';

/** A letter as a list shows it, and as its own page does. */
interface Listed {
  readonly sequenceNumber: string;
  readonly messageId: string | null;
}

/** Tells every sentence that is not true. */
export async function account(world: World, ended: Contested): Promise<string[]> {
  const { name, plans, mails, erased, owners, seen } = ended;
  const { arena } = ended.contest;
  const problems: string[] = [];
  const check = (holds: boolean, sentence: () => string) => {
    if (!holds) problems.push(sentence());
  };
  const { broker } = world.office;
  const dead = broker.messages(`${name}/$DeadLetterQueue`).map(pieceOf);
  const waiting = broker.messages(name).map(pieceOf);
  const all = [...new Map([...seen, ...waiting, ...dead].map((piece) => [keyOf(piece), piece])).values()];
  const told = await Promise.all(plans.map(async ({ plan }) => ({ plan, letters: await allLetters(world, plan) })));
  const letters = told.flatMap(({ letters: some }) => some);

  // Nothing is lost: a message is somewhere, or was taken by a consumer, or was discarded by a plan that says so.
  const somewhere = new Set(all.map(({ mail }) => mail));
  const discarded = new Set<string>();
  for (const [i, { entrant }] of plans.entries()) {
    if (entrant.action !== 'discard') continue;
    for (const { sequenceNumber, fate } of told[i]?.letters ?? []) {
      if (fate === 'done') for (const mail of owners.get(sequenceNumber) ?? []) discarded.add(mail);
    }
  }
  const lost = [...mails].filter((mail) => !somewhere.has(mail) && !erased.has(mail) && !discarded.has(mail));
  check(lost.length === 0, () => `lost: ${lost}`);

  // Nothing is hidden after the nightly pass, and nothing is listed that is not there.
  const listed = await listAll(world, name);
  const shown = new Map(listed.map((letter) => [letter.sequenceNumber, letter.messageId]));
  const hidden = dead.filter(({ number }) => !shown.has(number)).map(({ number, mail }) => `${number} ${mail}`);
  check(hidden.length === 0, () => `hidden: ${hidden}`);
  const there = new Set(dead.map(({ number }) => number));
  const ghosts = listed.filter(({ sequenceNumber }) => !there.has(sequenceNumber));
  check(ghosts.length === 0, () => `listed and not there: ${ghosts.map(({ sequenceNumber }) => sequenceNumber)}`);

  // Nothing is doubled without a word: more than one of a letter, in the target or still there, is marked.
  const marked = new Set(
    letters.filter(({ maybeDuplicate }) => maybeDuplicate).map(({ sequenceNumber }) => sequenceNumber),
  );
  const doubled: string[] = [];
  const unsaid: string[] = [];
  for (const [key, copies] of Map.groupBy(all.filter(isCopy), ({ of, mail }) => `${of}/${mail}`)) {
    const [number = '', mail] = key.split('/');
    const isStill = dead.some((piece) => piece.number === number && piece.mail === mail);
    const isTold = marked.has(number) || (isStill && (await isMaybeSent(world, name, number)));
    const times = copies.length + (isStill ? 1 : 0);
    if (times > 1 && !isTold)
      doubled.push(
        `${number} (${mail}) by ${copies.map(({ planId }) => planId)}, ${isStill ? 'and still there' : 'gone'}`,
      );
    // The plan that sends what another has sent before says so, too: its operator looks at nothing else. In a queue made anew the
    // numbers of copies begin anew: which was first is not known.
    if (arena === 'reborn') continue;
    const first = copies.reduce((a, b) => (BigInt(a.number) < BigInt(b.number) ? a : b));
    for (const planId of new Set(copies.map((copy) => copy.planId))) {
      const its = told.find(({ plan }) => plan.id === planId)?.letters;
      const isMarked = its?.some((letter) => letter.sequenceNumber === number && letter.maybeDuplicate);
      if (planId !== first.planId && isMarked !== true) unsaid.push(`${number} by ${planId} after ${first.planId}`);
    }
  }
  check(doubled.length === 0, () => `doubled without a mark: ${doubled.join('; ')}`);
  check(unsaid.length === 0, () => `sent again by a plan that does not say so: ${unsaid.join('; ')}`);

  // What a plan tells of itself is so.
  for (const [i, { plan }] of plans.entries()) checkPlan(plan, told[i]?.letters ?? [], check);
  for (const [i, { plan, entrant }] of plans.entries()) {
    const nowhere: string[] = [];
    const still: string[] = [];
    for (const { sequenceNumber: number, fate } of told[i]?.letters ?? []) {
      const of = owners.get(number) ?? [];
      // Its number has had several owners, or went with its queue: nobody can tell which one is meant.
      if (fate !== 'done' || of.length !== 1 || erased.has(of[0] ?? '')) continue;
      if (there.has(number)) still.push(number);
      const isSomewhere = all.some((piece) => piece.of === number && isCopy(piece));
      if (entrant.action === 'replay' && !isSomewhere) nowhere.push(`${number} (${of[0]})`);
    }
    check(still.length === 0, () => `done by ${plan.id} and still there: ${still}`);
    check(nowhere.length === 0, () => `done by ${plan.id} and nowhere: ${nowhere}`);
  }
  const locked = dead.filter((piece) => piece.locked);
  check(locked.length === 0, () => `still locked: ${locked.map(({ number }) => number)}`);
  return problems;
}

const keyOf = ({ number, mail, planId }: Piece) => `${number}/${mail}/${planId}`;
const isCopy = ({ planId }: Piece) => planId !== undefined;

function checkPlan(
  { id, counts }: PlanJson,
  letters: readonly PlanLetter[],
  check: (holds: boolean, sentence: () => string) => void,
): void {
  const { planned, pending, done, skipped, failed, left } = counts;
  check(
    pending === 0 && planned === done + skipped + failed + left,
    () => `the counts of ${id} do not add up: ${JSON.stringify(counts)}`,
  );
  check(letters.length === planned, () => `plan ${id} tells of ${letters.length} letters of ${planned}`);
  const marked = letters.filter(({ maybeDuplicate }) => maybeDuplicate).length;
  check(
    counts.maybeDuplicate === marked,
    () => `${counts.maybeDuplicate} marked in ${id} by the counts, ${marked} by the letters`,
  );
}

async function listAll(world: World, name: string): Promise<Listed[]> {
  const all: Listed[] = [];
  for (let continuation: string | null = ''; continuation !== null; ) {
    const page: { letters: Listed[]; continuation: string | null } = await world.get(
      `sources/${name}/letters?top=500${continuation && `&continuation=${continuation}`}`,
    );
    all.push(...page.letters);
    continuation = page.continuation;
  }
  return all;
}

async function isMaybeSent(world: World, name: string, number: string): Promise<boolean> {
  const letter = await world.get<{ maybeSentBy: string | null }>(`sources/${name}/letters/${number}`);
  return letter.maybeSentBy !== null;
}
