import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Bench, manual, peekAll, take, until } from './harness.ts';

let bench: Bench;

beforeAll(async () => {
  bench = await Bench.start({ q: {}, s: { RequiresSession: true }, off: { Status: 'Disabled' } }, { t: ['sub'] });
});
afterEach(() => {
  for (const path of ['q', 's', 't']) {
    bench.broker.setStatus(path, 'Active');
    bench.broker.recreate(path);
  }
});
afterAll(() => bench.close());

const DISABLED = { code: 'MessagingEntityDisabled' };
const send = (path: string) => bench.client().createSender(path).sendMessages({ body: 1, sessionId: 'a' });
const receive = (path: string) =>
  bench.client().createReceiver(path, manual).receiveMessages(1, { maxWaitTimeInMs: 100 });

describe('a disabled entity', () => {
  it('takes and gives nothing, and shows nothing', async () => {
    await expect(send('off')).rejects.toMatchObject(DISABLED);
    await expect(receive('off')).rejects.toMatchObject(DISABLED);
    await expect(peekAll(bench.client().createReceiver('off'))).rejects.toMatchObject(DISABLED);
    await expect(
      bench.client().createReceiver('off', { subQueueType: 'deadLetter' }).receiveMessages(1, { maxWaitTimeInMs: 100 }),
    ).rejects.toMatchObject(DISABLED);
  });

  it('refuses on links that were open before', async () => {
    const sender = bench.client().createSender('q');
    await sender.sendMessages({ body: 1 });
    bench.broker.setStatus('q', 'SendDisabled');
    await expect(sender.sendMessages({ body: 2 })).rejects.toMatchObject(DISABLED);
    const receiver = bench.client().createReceiver('q', manual);
    await receiver.completeMessage((await take(receiver, 1))[0] as never);
    bench.broker.setStatus('q', 'Active');
    await sender.sendMessages({ body: 3 });
    expect(bench.broker.messages('q')).toHaveLength(1);
  });

  it('for receiving only lets what is locked be settled, and ends who waits', async () => {
    const errors: unknown[] = [];
    const waiting = bench.client().createReceiver('q', manual);
    waiting.subscribe({
      processMessage: async () => {},
      processError: async ({ error }) => void errors.push((error as { code?: string }).code),
    });
    const token = await (async () => {
      await send('s');
      const receiver = await bench.client().acceptSession('s', 'a', { maxAutoLockRenewalDurationInMs: 0 });
      return { receiver, message: (await take(receiver, 1))[0] as never };
    })();
    bench.broker.setStatus('q', 'ReceiveDisabled');
    await until(() => errors.includes('MessagingEntityDisabled'), 'the end of the receiver');
    await send('q');
    await expect(receive('q')).rejects.toMatchObject(DISABLED);
    expect(await peekAll(bench.client().createReceiver('q'))).toHaveLength(1);
    await waiting.close();
    await token.receiver.completeMessage(token.message);
  });

  it('ends who waits for a session', async () => {
    const waiting = bench.client().acceptNextSession('s');
    const ended = expect(waiting).rejects.toMatchObject(DISABLED);
    await new Promise((resolve) => setTimeout(resolve, 50));
    bench.broker.setStatus('s', 'ReceiveDisabled');
    await ended;
  });

  it('may be a topic', async () => {
    bench.broker.setStatus('t', 'SendDisabled');
    await expect(send('t')).rejects.toMatchObject(DISABLED);
    expect(bench.broker.messages('t/Subscriptions/sub')).toEqual([]);
  });
});
