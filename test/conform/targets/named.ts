/** Entities that somebody else made, for namespaces where a test may not make its own. They are emptied before use. */
import { readFile } from 'node:fs/promises';
import { ServiceBusClient, type ServiceBusReceiver } from '@azure/service-bus';
import Long from 'long';
import { z } from 'zod';
import { type Belief, NotCheckable, show } from '../belief.ts';
import { inOrderOfMaking, SHAPES, type ShapeName, shapeOf } from '../shapes.ts';

/** What the queue or topic of a shape is called. */
export type Named = Partial<Record<ShapeName, string>>;

const PAGE = 250;
/** How long a queue must give nothing to count as empty, milliseconds. */
const QUIET_MS = 2_000;

const file = z.partialRecord(z.enum(Object.keys(SHAPES) as [ShapeName, ...ShapeName[]]), z.string().min(1));

/** Reads a file such as `{ "plain": "conform-plain" }`. Throws for names of shapes that do not exist. */
export async function readNamed(path: string): Promise<Named> {
  return file.parse(JSON.parse(await readFile(path, 'utf8')));
}

/** The names for a belief, emptied. Throws `NotCheckable` when one is missing or cannot be emptied. */
export async function emptied(
  named: Named,
  connectionString: string,
  { needs }: Belief,
): Promise<ReadonlyMap<ShapeName, string>> {
  const names = new Map<ShapeName, string>();
  for (const shape of inOrderOfMaking(needs.entities)) {
    const name = named[shape];
    if (name === undefined) throw new NotCheckable(`no entity "${shape}" was named`);
    names.set(shape, name);
  }
  const client = new ServiceBusClient(connectionString);
  try {
    // What is forwarded arrives in a shape that stands before it, so these are emptied last.
    for (const [shape, name] of [...names].reverse()) await empty(client, shape, name);
  } catch (error) {
    throw new NotCheckable(`the named entities could not be emptied: ${show(error)}`);
  } finally {
    await client.close();
  }
  return names;
}

async function empty(client: ServiceBusClient, shape: ShapeName, name: string): Promise<void> {
  const form = shapeOf(shape);
  const mode = { receiveMode: 'receiveAndDelete' } as const;
  const dead = { ...mode, subQueueType: 'deadLetter' } as const;
  if ('queue' in form) {
    if (form.queue.forwardTo !== undefined) return;
    if (form.queue.requiresSession) await emptySessions(() => client.acceptNextSession(name, mode));
    else await drain(client.createReceiver(name, mode));
    if (form.queue.forwardDeadLetteredMessagesTo === undefined) await drain(client.createReceiver(name, dead));
    return;
  }
  for (const [subscription, queue] of Object.entries(form.topic.subscriptions)) {
    if (queue.forwardTo !== undefined) continue;
    if (queue.requiresSession) await emptySessions(() => client.acceptNextSession(name, subscription, mode));
    else await drain(client.createReceiver(name, subscription, mode));
    await drain(client.createReceiver(name, subscription, dead));
  }
}

/** Takes out what is active, then what is deferred. Throws when something stays, such as what others have locked. */
async function drain(receiver: ServiceBusReceiver): Promise<void> {
  try {
    while ((await receiver.receiveMessages(PAGE, { maxWaitTimeInMs: QUIET_MS })).length > 0);
    for (let from = Long.ZERO; ; ) {
      const page = await receiver.peekMessages(PAGE, { fromSequenceNumber: from });
      const last = page.at(-1)?.sequenceNumber;
      if (last === undefined) break;
      // One by one: of a partitioned entity no two partitions may be asked for together.
      for (const { sequenceNumber } of page) await receiver.receiveDeferredMessages(sequenceNumber ?? Long.ZERO);
      from = last.add(1);
    }
  } finally {
    await receiver.close();
  }
}

async function emptySessions(accept: () => Promise<ServiceBusReceiver>): Promise<void> {
  for (;;) {
    let receiver: ServiceBusReceiver;
    try {
      receiver = await accept();
    } catch (error) {
      // The broker's way to say that no session has a message.
      if ((error as { code?: string }).code === 'ServiceTimeout') return;
      throw error;
    }
    await drain(receiver);
  }
}
