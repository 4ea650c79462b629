import { type QueueClient, QueueServiceClient } from '@azure/storage-queue';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OfficeProcess, startOfficeProcess } from '../harness/host.ts';
import { takeStorage } from '../harness/storage.ts';

interface Entry {
  [key: string]: unknown;
  metadata?: Record<string, unknown>;
}

const root = 'test/host/fixtures/work';
const base64 = (text: string) => Buffer.from(text).toString('base64');

async function records(host: OfficeProcess): Promise<Entry[]> {
  return (await host.call('GET', '/api/records')).json as Entry[];
}

async function start(timers: boolean, settings: Record<string, string> = {}) {
  const storage = await takeStorage();
  const host = await startOfficeProcess({
    root,
    entry: 'index.ts',
    timers,
    settings: { Work: storage, AzureWebJobsStorage: storage, ...settings },
  });
  return { host, queues: QueueServiceClient.fromConnectionString(storage) };
}

describe('timers', () => {
  let host: OfficeProcess;
  beforeAll(async () => {
    ({ host } = await start(true));
  });
  afterAll(() => host.stop());

  it('run at startup and on schedule, and never overlap themselves', async () => {
    const seen = async () => (await records(host)).filter((entry) => entry.timer === 'everySecond');
    await expect.poll(async () => (await seen()).length, { timeout: 10_000 }).toBeGreaterThanOrEqual(3);
    const phases = (await seen()).map((entry) => entry.phase);
    expect(phases.slice(0, 3)).toEqual(['begin', 'end', 'begin']);
    expect((await seen())[0]).toMatchObject({ isPastDue: false, next: expect.stringMatching(/^\d{4}-.*Z$/) });
  });

  it('do not run before their time', async () => {
    expect((await records(host)).filter((entry) => entry.timer === 'yearly')).toEqual([]);
  });
});

describe('a run by hand', () => {
  let host: OfficeProcess;
  beforeAll(async () => {
    ({ host } = await start(false));
  });
  afterAll(() => host.stop());

  const admin = (name: string, key: string, headers = {}) =>
    host.call('POST', `/admin/functions/${name}`, { key, headers, body: {} });

  it('waits for the end with x-wait', async () => {
    await host.run('yearly');
    expect(await records(host)).toContainEqual({ timer: 'yearly' });
    await expect.poll(() => host.log()).toMatch(/warning \[yearly\] a warning from yearly/);
    await expect(host.run('failing')).rejects.toThrow('Function "failing" failed (500): the timer broke');
  });

  it('is answered with 202 at once, even when it will fail', async () => {
    expect((await admin('failing', host.keys.master)).status).toBe(202);
  });

  it('gives queue functions their input', async () => {
    await host.run('reader', { orderId: 5 });
    await host.run('reader', 'plain');
    const messages = (await records(host)).filter((entry) => entry.queue === 'reader').map((entry) => entry.message);
    expect(messages).toEqual([{ orderId: 5 }, 'plain']);
  });

  it('needs the master key, a function that exists and is not HTTP, and a body that is JSON', async () => {
    expect((await admin('yearly', host.keys.host)).status).toBe(401);
    expect((await admin('nobody', host.keys.master)).status).toBe(404);
    expect((await admin('records', host.keys.master)).status).toBe(400);
    const body = '{not json';
    const answer = await host.call('POST', '/admin/functions/yearly', { key: host.keys.master, body });
    expect(answer.status).toBe(400);
  });

  it('is the only way for a timer when schedules are off', async () => {
    expect((await records(host)).filter((entry) => entry.timer === 'everySecond')).toEqual([]);
  });

  it('runs the hooks, which may change input and outcome', async () => {
    await host.run('hooked', 'original');
    const seen = await records(host);
    expect(seen).toContainEqual({ hook: 'appStart' });
    expect(seen).toContainEqual({ queue: 'hooked', message: 'swapped input' });
    const outcome = { hook: 'postInvocation', began: true, result: null, error: 'Error: forgiven by the hook' };
    expect(seen).toContainEqual(outcome);
  });
});

describe('a storage queue function', () => {
  let host: OfficeProcess;
  let queues: QueueServiceClient;
  let queue: QueueClient;
  let poison: QueueClient;
  beforeAll(async () => {
    ({ host, queues } = await start(false, { QueueName: 'work-items' }));
    // Made after the start: the host waits for a queue that is not there.
    queue = queues.getQueueClient('work-items');
    poison = queues.getQueueClient('work-items-poison');
    await queue.create();
  });
  afterAll(() => host.stop());

  const readBy = async (wanted: string) =>
    (await records(host)).filter((entry) => entry.queue === 'reader' && JSON.stringify(entry.message).includes(wanted));
  const texts = async (client: QueueClient) =>
    (await client.exists()) ? (await client.peekMessages({ numberOfMessages: 32 })).peekedMessageItems : [];

  it('gets a JSON message parsed, with its metadata, and the message is gone afterwards', async () => {
    const sent = await queue.sendMessage(base64('{"id":"from-body","ok":true,"items":[1]}'));
    await expect.poll(() => readBy('ok')).toHaveLength(1);
    const [entry] = await readBy('ok');
    expect(entry?.message).toEqual({ id: 'from-body', ok: true, items: [1] });
    expect(entry?.metadata).toMatchObject({
      // The real host lets properties of the body hide metadata of the same name.
      id: 'from-body',
      ok: 'True',
      dequeueCount: 1,
      queueTrigger: { ok: true },
      insertionTime: sent.insertedOn.toISOString().replace('.000Z', '+00:00'),
      popReceipt: expect.any(String),
    });
    expect(entry?.metadata?.items).toBeUndefined();
    await expect.poll(async () => (await queue.getProperties()).approximateMessagesCount).toBe(0);
  });

  it('gets text that is not JSON as it is', async () => {
    await queue.sendMessage(base64('just text'));
    await expect.poll(() => readBy('just text')).toHaveLength(1);
  });

  it('that fails is tried maxDequeueCount times, then the message goes to the poison queue', async () => {
    await queue.sendMessage(base64('{"fail":1}'));
    await expect.poll(async () => (await texts(poison)).map((one) => one.messageText)).toContain(base64('{"fail":1}'));
    expect((await readBy('fail')).map((entry) => entry.metadata?.dequeueCount)).toEqual([1, 2]);
    await expect.poll(() => host.log()).toMatch(/error \[reader\] failed: refused \{"fail":1\}/);
  });

  it.each(['not base64!', '{"raw":true}'])('never sees %j, which goes to the poison queue at once', async (raw) => {
    await queue.sendMessage(raw);
    await expect.poll(async () => (await texts(poison)).map((one) => one.messageText)).toContain(raw);
    expect(await readBy(raw)).toEqual([]);
    await expect.poll(async () => (await queue.getProperties()).approximateMessagesCount).toBe(0);
  });
});

describe('a stop', () => {
  it('lets running functions end, settles their messages and runs appTerminate', async () => {
    const { host, queues } = await start(false);
    const queue = queues.getQueueClient('slow');
    await queue.create();
    await queue.sendMessage(base64('x'));
    await expect.poll(async () => (await records(host)).filter((entry) => entry.queue === 'slow')).toHaveLength(1);
    expect(await host.stop()).toBe(0);
    await expect.poll(() => host.log()).toMatch(/slow ended[\s\S]*appTerminate ran/);
    expect((await queue.getProperties()).approximateMessagesCount).toBe(0);
  });

  it('is not needed for storage that is down: the host starts, and waits for it', async () => {
    const nowhere = 'DefaultEndpointsProtocol=http;AccountName=a;AccountKey=YQ==;QueueEndpoint=http://127.0.0.1:9/a;';
    const { host } = await start(false, { Work: nowhere, AzureWebJobsStorage: nowhere });
    await expect.poll(() => host.log()).toMatch(/warning \[slow\] polling: .*ECONNREFUSED/);
    expect((await host.call('GET', '/api/records')).status).toBe(200);
    expect(await host.stop()).toBe(0);
  });
});
