/** The end of the story: a letter that may not be kept any longer. */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { answers } from './answers.ts';
import { expectSame } from './check.ts';
import { becomes } from './desk.ts';
import { held, type Scene, type Watched } from './scene.ts';
import { consume, peekDeadLetters, placeOrders } from './shop.ts';

const TOPIC = 'order-placed';
const NOTIFICATION: Watched = { source: 'notification-order-placed', place: [TOPIC, 'notification'] };
const SOURCE = `/sources/${NOTIFICATION.source}`;
/** What the story sets in place of the catalog's retention, so that nobody has to wait for days. */
const RETENTION = 'PT2S';

/** The catalog with the retention that the story needs, for one source. */
export function withShortRetention(catalog: unknown): unknown {
  const parsed = z.looseObject({ sources: z.array(z.looseObject({ name: z.string() })) }).parse(catalog);
  const sources = parsed.sources.map((source) =>
    source.name === NOTIFICATION.source ? { ...source, retainFor: RETENTION } : source,
  );
  return { ...parsed, sources };
}

export async function pastItsRetention(scene: Scene): Promise<void> {
  const { desk, client, step, tell } = scene;
  step('A letter past its retention is removed. A DLQ has no expiry of its own.');
  tell(`For this story ${NOTIFICATION.source} keeps letters for ${RETENTION} only; catalog.json says longer.`);
  await awayFromTheTimer(tell);
  await placeOrders(client, TOPIC, ['msg-4']);
  await consume(client, NOTIFICATION.place, 1, () => ({
    kind: 'dead-letter',
    reason: 'NoSuchAddress',
    description: 'The customer has no e-mail address',
  }));
  await held(scene, NOTIFICATION, { 'msg-4': 0 });

  const due = async () => (await desk.look(`${SOURCE}/expiry`, answers.expiry)).count;
  await becomes('a letter is past its retention', due, 1);
  tell('The dry run first:');
  const preview = await desk.show({ method: 'GET', path: `${SOURCE}/expiry`, key: 'read' }, 200, answers.expiry);
  expectSame(
    'the letter that would go',
    preview.letters.map(({ messageId }) => messageId),
    ['msg-4'],
  );
  expectSame('letters in the DLQ after the dry run', (await peekDeadLetters(client, NOTIFICATION.place)).length, 1);

  tell('The cleanup runs every 15 minutes; here it is started by hand:');
  const cleanup = { method: 'POST', path: '/admin/functions/expire', key: 'master', body: {} } as const;
  await desk.show(cleanup, 202, z.undefined());
  const path = `${SOURCE}/letters/${preview.letters[0]?.sequenceNumber}`;
  const fate = async () => (await desk.look(path, answers.fate)).fate?.fate;
  await becomes('the letter is removed', fate, 'expired');
  await desk.show({ method: 'GET', path, key: 'read' }, 200, answers.fate);
  expectSame('the DLQ of the subscription', await peekDeadLetters(client, NOTIFICATION.place), []);

  const audit = `/audit?source=${NOTIFICATION.source}&top=1`;
  const closed = async () => (await desk.look(audit, answers.audit)).entries.map(({ outcome }) => outcome);
  await becomes('the removal is on record', closed, ['1 removed']);
  await desk.show({ method: 'GET', path: audit, key: 'read' }, 200, answers.audit);
}

/** The cleanup's own timer would take the letter before it could be shown: when a quarter of an hour is near, let it pass. */
async function awayFromTheTimer(tell: (text: string) => void): Promise<void> {
  const quarter = 900_000;
  const left = quarter - (Date.now() % quarter);
  if (left > 20_000) return;
  tell(`(The cleanup's timer is due in ${Math.ceil(left / 1000)} s; waiting until it has passed.)`);
  await delay(left + 2000);
}
