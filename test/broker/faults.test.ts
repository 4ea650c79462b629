import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Bench, byToken, manual, peekAll, take, until } from './harness.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start({ q: {}, other: {}, s: { RequiresSession: true } });
});
beforeEach(() => {
  bench.broker.recreate('q');
  bench.broker.recreate('other');
  bench.broker.recreate('s');
});
afterEach(() => bench.broker.faults.clear());
afterAll(() => bench.close());

const count = (path = 'q') => bench.broker.messages(path).length;
const send = (path = 'q', timeoutInMs = 600) => bench.client(timeoutInMs).createSender(path).sendMessages({ body: 1 });

async function received() {
  await send();
  const receiver = bench.client(600).createReceiver('q', manual);
  const [message] = await take(receiver, 1);
  return { receiver, message: message as never, token: byToken((message as { lockToken: string }).lockToken) };
}

describe('a send', () => {
  it('whose answer is lost is stored, and the sender never hears of it', async () => {
    const fault = bench.broker.faults.add({ at: 'send', do: 'lose-answer' });
    await expect(send()).rejects.toMatchObject({ code: 'ServiceTimeout' });
    expect([count(), fault.hits]).toEqual([1, 1]);
    await send();
    expect(count()).toBe(2);
  });

  it('leaves its link usable when an answer is lost', async () => {
    bench.broker.faults.add({ at: 'send', do: 'lose-answer' });
    const sender = bench.client(600).createSender('q');
    await expect(sender.sendMessages({ body: 1 })).rejects.toMatchObject({ code: 'ServiceTimeout' });
    await sender.sendMessages({ body: 2 });
    expect(count()).toBe(2);
  });

  it('is refused with the condition asked for, and nothing is stored', async () => {
    bench.broker.faults.add({
      at: 'send',
      do: 'refuse',
      condition: 'com.microsoft:server-busy',
      description: 'slow down',
    });
    await expect(send()).rejects.toMatchObject({ code: 'ServiceBusy', message: expect.stringContaining('slow down') });
    expect(count()).toBe(0);
  });

  it.each([
    ['before', 0],
    ['after', 1],
  ] as const)('loses its connection %s it is stored', async (when, stored) => {
    bench.broker.faults.add({ at: 'send', do: 'drop-connection', when });
    await expect(send()).rejects.toThrow();
    expect(count()).toBe(stored);
    await send();
  });

  it('is held until it is released', async () => {
    const fault = bench.broker.faults.add({ at: 'send', do: 'hold' });
    const sending = send('q', 4000);
    await until(() => fault.hits === 1, 'the send');
    expect(count()).toBe(0);
    fault.release();
    await sending;
    expect(count()).toBe(1);
  });
});

describe('a rule', () => {
  it('hits only its entity, after the skipped ones, as often as it says', async () => {
    const fault = bench.broker.faults.add({ at: 'send', entity: 'OTHER', skip: 1, times: 2, do: 'refuse' });
    const outcomes: string[] = [];
    for (const path of ['q', 'other', 'q', 'other', 'other', 'other']) {
      outcomes.push(
        await send(path).then(
          () => 'stored',
          () => 'refused',
        ),
      );
    }
    expect(outcomes).toEqual(['stored', 'stored', 'stored', 'refused', 'refused', 'stored']);
    expect(fault.hits).toBe(2);
  });

  it('hits no more once it is removed', async () => {
    const fault = bench.broker.faults.add({ at: 'send', times: 100, do: 'refuse' });
    await expect(send()).rejects.toThrow();
    fault.remove();
    await send();
    expect(fault.hits).toBe(1);
  });
});

describe('a settlement', () => {
  it('fails on the link, and the message stays locked', async () => {
    const { receiver, message, token } = await received();
    bench.broker.faults.add({ at: 'settle', via: 'link', do: 'refuse', condition: 'com.microsoft:message-lock-lost' });
    await expect(receiver.completeMessage(message)).rejects.toMatchObject({ code: 'MessageLockLost' });
    expect(bench.broker.messages('q')).toMatchObject([{ locked: true }]);
    await receiver.completeMessage(token);
    expect(count()).toBe(0);
  });

  it('fails over $management by its kind', async () => {
    const { receiver, token } = await received();
    const fault = bench.broker.faults.add({
      at: 'settle',
      via: 'management',
      operation: 'complete',
      do: 'refuse',
      condition: 'com.microsoft:server-busy',
    });
    await expect(receiver.completeMessage(token)).rejects.toMatchObject({ code: 'ServiceBusy' });
    expect(bench.broker.messages('q')).toMatchObject([{ locked: true }]);
    await receiver.deferMessage(token);
    expect(fault.hits).toBe(1);
  });

  it('whose answer is lost has happened all the same', async () => {
    const { receiver, message } = await received();
    bench.broker.faults.add({ at: 'settle', do: 'lose-answer' });
    await expect(receiver.completeMessage(message)).rejects.toThrow();
    expect(count()).toBe(0);
  });

  it('loses its connection before it happens', async () => {
    const { receiver, message, token } = await received();
    bench.broker.faults.add({ at: 'settle', do: 'drop-connection', when: 'before' });
    await expect(receiver.completeMessage(message)).rejects.toThrow();
    expect(bench.broker.messages('q')).toMatchObject([{ locked: true }]);
    await bench.client().createReceiver('q', manual).completeMessage(token);
  });
});

describe('a management operation', () => {
  it('is held by its name, and others pass', async () => {
    const { receiver, message } = await received();
    const fault = bench.broker.faults.add({ at: 'manage', operation: 'renew-lock', do: 'hold' });
    const renewal = receiver.renewMessageLock(message);
    await until(() => fault.hits === 1, 'the renewal');
    expect(await peekAll(receiver)).toHaveLength(1);
    fault.release();
    expect((await renewal).getTime()).toBeGreaterThan(Date.now());
  });

  it('fails by its name', async () => {
    bench.broker.faults.add({
      at: 'manage',
      operation: 'com.microsoft:peek-message',
      do: 'refuse',
      condition: 'com.microsoft:server-busy',
    });
    const receiver = bench.client().createReceiver('q');
    await expect(peekAll(receiver)).rejects.toMatchObject({ code: 'ServiceBusy' });
    expect(await peekAll(receiver)).toEqual([]);
  });

  it('never ends when its answer is lost', async () => {
    bench.broker.faults.add({ at: 'manage', do: 'lose-answer' });
    await expect(peekAll(bench.client(600).createReceiver('q'))).rejects.toMatchObject({ code: 'ServiceTimeout' });
  });
});

describe('throttling', () => {
  it('refuses in the words of the service, and nothing is done', async () => {
    bench.broker.faults.add({ at: 'send', do: 'server-busy' });
    await expect(send()).rejects.toMatchObject({ code: 'ServiceBusy' });
    bench.broker.faults.add({ at: 'manage', do: 'server-busy' });
    await expect(peekAll(bench.client(600).createReceiver('q'))).rejects.toMatchObject({ code: 'ServiceBusy' });
    expect(count()).toBe(0);
  });
});

describe('a delay', () => {
  it('lets a send wait', async () => {
    bench.broker.faults.add({ at: 'send', do: 'delay', ms: 150 });
    const began = performance.now();
    await send('q', 4000);
    expect(performance.now() - began).toBeGreaterThan(140);
    expect(count()).toBe(1);
  });

  it('lets go what it keeps when the rules are cleared', async () => {
    const fault = bench.broker.faults.add({ at: 'send', do: 'delay', ms: 60_000 });
    const sending = send('q', 4000);
    await until(() => fault.hits === 1, 'the send');
    bench.broker.faults.clear();
    await sending;
  });

  it('of a peer that is gone meanwhile harms nobody', async () => {
    const fault = bench.broker.faults.add({ at: 'send', do: 'delay', ms: 50 });
    const sending = send();
    await until(() => fault.hits === 1, 'the send');
    bench.broker.dropConnections();
    await expect(sending).rejects.toThrow();
    await until(() => count() === 1, 'the message, which was on its way');
    await send();
  });
});

describe('a lost lock', () => {
  it('is met by the settlement, over the link or over $management', async () => {
    for (const via of ['link', 'management'] as const) {
      const { receiver, message, token } = await received();
      bench.broker.faults.add({ at: 'settle', via, do: 'lose-lock' });
      const settling = receiver.completeMessage(via === 'link' ? message : token);
      await expect(settling).rejects.toMatchObject({ code: 'MessageLockLost' });
      expect(bench.broker.messages('q')).toMatchObject([{ locked: false, deliveryCount: 1 }]);
      bench.broker.recreate('q');
    }
  });

  it('is met by the renewal', async () => {
    const { receiver, message } = await received();
    bench.broker.faults.add({ at: 'manage', operation: 'renew-lock', do: 'lose-lock' });
    await expect(receiver.renewMessageLock(message)).rejects.toMatchObject({ code: 'MessageLockLost' });
  });

  it('may be every lock of an entity', async () => {
    const { receiver, message } = await received();
    bench.broker.loseLocks('q');
    await expect(receiver.completeMessage(message)).rejects.toMatchObject({ code: 'MessageLockLost' });
  });

  it('may be that of a session', async () => {
    await bench.client().createSender('s').sendMessages({ body: 1, sessionId: 'a' });
    const receiver = await bench.client().acceptSession('s', 'a', { maxAutoLockRenewalDurationInMs: 0 });
    await take(receiver, 1);
    bench.broker.faults.add({ at: 'manage', operation: 'renew-session-lock', do: 'lose-lock' });
    await expect(receiver.renewSessionLock()).rejects.toMatchObject({ code: 'SessionLockLost' });
    await until(() => receiver.isClosed, 'the end of the link');
    expect(bench.broker.messages('s')).toMatchObject([{ locked: false, deliveryCount: 1 }]);
  });
});

describe('a paused entity', () => {
  it('takes messages and delivers none until it goes on', async () => {
    const pause = bench.broker.faults.pause('q');
    await send();
    const receiver = bench.client().createReceiver('q', manual);
    expect(await receiver.receiveMessages(1, { maxWaitTimeInMs: 100 })).toEqual([]);
    expect(await peekAll(receiver)).toHaveLength(1);
    pause.remove();
    await receiver.completeMessage((await take(receiver, 1))[0] as never);
    expect(pause.hits).toBeGreaterThan(0);
  });
});

describe('a connection', () => {
  it('is dropped at the very frame, and the next one is served', async () => {
    const sender = bench.client(600).createSender('q');
    await sender.sendMessages({ body: 1 });
    // On an open link a small message is one frame.
    const fault = bench.broker.faults.add({ at: 'frame', skip: 2, do: 'drop-connection' });
    for (const body of [2, 3]) await sender.sendMessages({ body });
    await expect(sender.sendMessages({ body: 4 })).rejects.toThrow();
    expect([count(), fault.hits]).toEqual([3, 1]);
    await send();
    expect(count()).toBe(4);
  });
});
