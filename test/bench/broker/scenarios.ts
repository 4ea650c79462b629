/** What is measured: each fills the queue as it needs it and answers how many messages a second went through. */
import type { ServiceBusReceivedMessage } from '@azure/service-bus';
import Long from 'long';
import { type Kit, messages, rateOf } from './kit.ts';

type Measure = (kit: Kit) => Promise<number>;
type Received = readonly ServiceBusReceivedMessage[];

/** By the name of its row. The sizes are such that each takes a fraction of a second on a quiet machine. */
export const SCENARIOS = {
  'send, one after the other': async (kit) => {
    await kit.clear();
    return rateOf(800, async () => {
      for (const message of messages(800)) await kit.sender.sendMessages(message);
    });
  },
  'send, 50 in flight': async (kit) => {
    await kit.clear();
    const waiting = messages(1000);
    return rateOf(1000, () =>
      sideBySide(50, async () => {
        for (let message = waiting.pop(); message; message = waiting.pop()) await kit.sender.sendMessages(message);
      }),
    );
  },
  'send, arrays of 100': async (kit) => {
    await kit.clear();
    const batch = messages(100);
    return rateOf(10_000, () => times(100, () => kit.sender.sendMessages(batch)));
  },
  'peek, 250 a page': async (kit) => {
    await kit.fill(5000);
    return rateOf(5000, async () => {
      // From number to number: of itself a client goes on where it was, also when the queue is another.
      for (let from = Long.ONE, seen = 0; seen < 5000; ) {
        const page = await kit.receiver.peekMessages(250, { fromSequenceNumber: from });
        if (page.length === 0) throw new Error(`only ${seen} of 5000 messages were shown`);
        seen += page.length;
        from = (page.at(-1)?.sequenceNumber ?? from).add(1);
      }
    });
  },
  'subscribe and complete, 1 at a time': (kit) => subscribed(kit, 200, 1),
  'subscribe and complete, 10 at a time': (kit) => subscribed(kit, 1000, 10),
  'subscribe and complete, 100 at a time': (kit) => subscribed(kit, 2000, 100),
  'receive 500 and complete, all at once': async (kit) => {
    await kit.fill(1000);
    return rateOf(1000, () => times(2, async () => complete(kit, await kit.take(500))));
  },
  'receive 500 and complete, one after the other': async (kit) => {
    await kit.fill(500);
    return rateOf(500, async () => {
      for (const message of await kit.take(500)) await kit.receiver.completeMessage(message);
    });
  },
  'receive and delete, by 1,000': async (kit) => {
    await kit.fill(3000);
    return rateOf(3000, () => kit.take(3000, kit.remover));
  },
  'receive and defer, all at once': async (kit) => {
    await kit.fill(500);
    return rateOf(500, () => takeAndDefer(kit, 500));
  },
  'receive and dead-letter, one after the other': async (kit) => {
    await kit.fill(300);
    const why = { deadLetterReason: 'Bench', deadLetterErrorDescription: 'measured' };
    return rateOf(300, async () => {
      for (const message of await kit.take(300)) await kit.receiver.deadLetterMessage(message, why);
    });
  },
  'receive deferred, 1 a call': async (kit) => {
    const numbers = await deferred(kit, 400);
    return rateOf(numbers.length, async () => {
      for (const number of numbers) await kit.receiver.receiveDeferredMessages(number);
    });
  },
  'receive deferred, 100 a call': async (kit) => {
    const numbers = await deferred(kit, 4000);
    return rateOf(numbers.length, () => receiveDeferred(kit, numbers));
  },
  // What was received by number is settled over $management.
  'complete over $management, one after the other': async (kit) => {
    const received = await receiveDeferred(kit, await deferred(kit, 200));
    return rateOf(received.length, async () => {
      for (const message of received) await kit.receiver.completeMessage(message);
    });
  },
  'complete over $management, 100 in parallel': async (kit) => {
    const received = await receiveDeferred(kit, await deferred(kit, 500));
    return rateOf(received.length, async () => {
      for (let at = 0; at < received.length; at += 100) await complete(kit, received.slice(at, at + 100));
    });
  },
  'schedule, 100 a call': async (kit) => {
    await kit.clear();
    const batch = messages(100);
    const tomorrow = new Date(Date.now() + 86_400_000);
    return rateOf(2000, () => times(20, () => kit.sender.scheduleMessages(batch, tomorrow)));
  },
} satisfies Record<string, Measure>;

export type ScenarioName = keyof typeof SCENARIOS;

/**
 * The broker's part in the CPU time that broker and client take together, from 0 to 1, while 10,000 messages are sent in
 * arrays and streamed to a subscriber.
 */
export async function brokersShare(kit: Kit): Promise<number> {
  const [broker, client] = [await kit.brokerCpu(), process.cpuUsage()];
  await SCENARIOS['send, arrays of 100'](kit);
  await stream(kit, 10_000, 100);
  const { user, system } = process.cpuUsage(client);
  const used = (await kit.brokerCpu()) - broker;
  return used / (used + user + system);
}

async function subscribed(kit: Kit, count: number, concurrent: number): Promise<number> {
  await kit.fill(count);
  return stream(kit, count, concurrent);
}

/** Lets a subscriber have `count` messages; answers how many a second it was through with. */
async function stream(kit: Kit, count: number, maxConcurrentCalls: number): Promise<number> {
  const receiver = kit.client.createReceiver('q', { maxAutoLockRenewalDurationInMs: 0 });
  const rate = await rateOf(count, () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let seen = 0;
    receiver.subscribe(
      {
        processMessage: async () => {
          if (++seen === count) resolve();
        },
        processError: async ({ error }) => reject(error),
      },
      { maxConcurrentCalls },
    );
    return promise;
  });
  await receiver.close();
  return rate;
}

async function takeAndDefer(kit: Kit, count: number): Promise<Received> {
  const taken = await kit.take(count);
  await Promise.all(taken.map((message) => kit.receiver.deferMessage(message)));
  return taken;
}

/** Puts `count` deferred messages into the queue and answers their numbers. */
async function deferred(kit: Kit, count: number) {
  await kit.fill(count);
  const taken: ServiceBusReceivedMessage[] = [];
  while (taken.length < count) taken.push(...(await takeAndDefer(kit, Math.min(500, count - taken.length))));
  return taken.flatMap(({ sequenceNumber }) => sequenceNumber ?? []);
}

async function receiveDeferred(kit: Kit, numbers: Awaited<ReturnType<typeof deferred>>): Promise<Received> {
  const received: ServiceBusReceivedMessage[] = [];
  for (let at = 0; at < numbers.length; at += 100) {
    received.push(...(await kit.receiver.receiveDeferredMessages(numbers.slice(at, at + 100))));
  }
  return received;
}

async function complete(kit: Kit, received: Received): Promise<void> {
  await Promise.all(received.map((message) => kit.receiver.completeMessage(message)));
}

async function times(count: number, act: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < count; time++) await act();
}

async function sideBySide(count: number, act: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: count }, act));
}
