/** Causes through the whole office: real clients send and dead-letter, the office records, and judges anew when its rules change. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type RunningBroker, startBroker } from '../../local/broker/index.ts';
import { sourceNamed } from '../../shared/office.ts';
import { openOffice } from '../../shared/open.ts';
import { reclassify } from '../../shared/watch/reclassify.ts';
import { brokerConfig, type LetterJson, openTestOffice, type TestOffice } from '../harness/office.ts';
import { takeStorage } from '../harness/storage.ts';

type Json = Record<string, unknown>;

/** Answer of a slice of reclassifying. */
interface SliceJson {
  lookedAt: number;
  changed: number;
  peeked: number;
  notThere: number;
  before: Record<string, number>;
  after: Record<string, number>;
  continuation: string | null;
}

const QUEUES = ['frameworks', 'ruled', 'schemed', 'changing', 'slices', 'watched'];

const TESTS = {
  name: 'tests',
  when: { messageType: 'ord*', bodyPath: { path: 'kind', equals: 'test' } },
  category: 'poison',
  advice: 'investigate',
};
const TEST_CUSTOMERS = {
  name: 'test-customers',
  when: { bodyPath: { path: 'customer.kind', equals: 'test' } },
  category: 'poison',
  advice: 'fix-first',
  label: 'Test customers',
  runbook: 'https://example.org/test-customers',
};
const CURRENCY = {
  name: 'currency',
  when: { reason: 'Unsupported*' },
  category: 'poison',
  advice: 'fix-first',
  label: 'Currencies',
};
const TENANTS = {
  name: 'tenants',
  when: { property: { name: 'tenant', matches: 'ac*' } },
  category: 'transient',
  advice: 'replay',
};
const ORDER = {
  type: 'object',
  required: ['orderId'],
  properties: { lines: { type: 'array', items: { type: 'string' } } },
};

let broker: RunningBroker;
/** Three offices on one broker and one store, as one office is before and after its catalog has changed. */
let plain: TestOffice;
let ruled: TestOffice;
let schemed: TestOffice;

beforeAll(async () => {
  broker = await startBroker({ config: brokerConfig(Object.fromEntries(QUEUES.map((name) => [name, {}]))) });
  const storage = await takeStorage();
  const officeWith = (sources: Json[], catalog: Json = {}) =>
    openTestOffice({ broker, storage, sources: sources.map((one) => ({ trigger: false, ...one })), catalog });
  const observe = { mode: 'observe' };
  [plain, ruled, schemed] = await Promise.all([
    officeWith([
      { name: 'frameworks' },
      { name: 'changing' },
      { name: 'watched', ...observe },
      { name: 'slices', ...observe },
    ]),
    officeWith(
      [
        { name: 'ruled', rules: [TEST_CUSTOMERS] },
        { name: 'changing', rules: [CURRENCY] },
        { name: 'watched', ...observe, rules: [TESTS] },
        { name: 'slices', ...observe, rules: [CURRENCY] },
      ],
      { rules: [TENANTS] },
    ),
    officeWith([
      { name: 'schemed', payloads: { order: ORDER } },
      { name: 'watched', ...observe, payloads: { order: { properties: { kind: { type: 'string' } } } } },
    ]),
  ]);
});
afterAll(async () => {
  await Promise.all([plain, ruled, schemed].map((office) => office?.close()));
  await broker?.close();
});

/** Dead-letters the next message with these properties, as a framework does on a native dead-letter queue. */
async function deadLetter(
  office: TestOffice,
  queue: string,
  properties: Record<string, string | number>,
): Promise<void> {
  const receiver = office.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
  try {
    const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
    if (message === undefined) throw new Error(`nothing in ${queue}`);
    // The client's types want a reason; MassTransit gives none.
    await receiver.deadLetterMessage(message, properties as Parameters<typeof receiver.deadLetterMessage>[1]);
  } finally {
    await receiver.close();
  }
}

/** The one letter under a message id, with everything that is known of it. */
async function letterOf(office: TestOffice, source: string, messageId: string): Promise<LetterJson> {
  const [letter] = await office.letters(source, `&messageId=${messageId}`);
  if (letter === undefined) throw new Error(`no letter ${messageId}`);
  return office.letter(letter.sequenceNumber, source);
}

describe('what frameworks write', () => {
  test('MassTransit, which gives no reason: its fault is the cause', async () => {
    const office = plain;
    const body = { messageType: ['urn:message:Shop:SubmitOrder'], message: { orderId: 1 } };
    await office.send('frameworks', { messageId: 'mt', contentType: 'application/vnd.masstransit+json', body });
    await deadLetter(office, 'frameworks', {
      'MT-Reason': 'fault',
      'MT-Fault-ExceptionType': 'System.TimeoutException',
      'MT-Fault-Message': 'The payment API did not answer',
      'MT-Fault-ConsumerType': 'Shop.SubmitOrderConsumer',
      'MT-Fault-Timestamp': '2026-04-20T16:30:00Z',
      'MT-Fault-RetryCount': 3,
      'MT-Fault-StackTrace': '   at System.X.Y()\n   at Shop.PaymentClient.Charge() in /src/PaymentClient.cs:line 42',
    });
    await office.collect('frameworks');
    expect(await letterOf(office, 'frameworks', 'mt')).toMatchObject({
      reason: 'fault',
      category: 'transient',
      advice: 'replay',
      rule: 'exception:timeout',
      exceptionType: 'System.TimeoutException',
      messageType: 'Shop.SubmitOrder',
      dialects: ['masstransit'],
      evidence: {
        exceptionMessage: 'The payment API did not answer',
        consumer: 'Shop.SubmitOrderConsumer',
        failedAt: '2026-04-20T16:30:00.000Z',
        attempts: 4,
        frame: 'Shop.PaymentClient.Charge (PaymentClient.cs:42)',
      },
    });
  });

  test('NServiceBus, in a message that ended at the delivery limit: both layers are told', async () => {
    const office = plain;
    await office.send('frameworks', {
      messageId: 'nsb',
      body: 'x',
      applicationProperties: {
        'NServiceBus.TimeOfFailure': '2026-04-20 16:30:00:123456 Z',
        'NServiceBus.ExceptionInfo.ExceptionType': 'System.Exception',
        'NServiceBus.ExceptionInfo.InnerExceptionType': 'Newtonsoft.Json.JsonReaderException',
        'NServiceBus.EnclosedMessageTypes': 'Shop.ReserveStock, Shop, Version=1.0.0.0',
      },
    });
    const receiver = office.client.createReceiver('frameworks', { maxAutoLockRenewalDurationInMs: 0 });
    for (let delivery = 0; delivery < 3; delivery++) {
      for (const message of await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 }))
        await receiver.abandonMessage(message);
    }
    await receiver.close();
    await office.collect('frameworks');
    expect(await letterOf(office, 'frameworks', 'nsb')).toMatchObject({
      reason: 'MaxDeliveryCountExceeded',
      category: 'poison',
      advice: 'fix-first',
      exceptionType: 'System.Exception',
      causeType: 'Newtonsoft.Json.JsonReaderException',
      evidence: { mechanism: 'delivery-limit', failedAt: '2026-04-20T16:30:00.123Z', messageType: 'Shop.ReserveStock' },
      layers: [
        { dialect: 'nservicebus', layer: 'framework' },
        { dialect: 'service-bus', layer: 'broker', evidence: { reason: 'MaxDeliveryCountExceeded', attempts: 3 } },
      ],
    });
    expect((await office.letters('frameworks', '&causeType=Newtonsoft.Json.JsonReaderException')).length).toBe(1);
    expect((await office.letters('frameworks', '&rule=exception:timeout')).map(({ messageId }) => messageId)).toEqual([
      'mt',
    ]);
    const { counts } = await office.get<{ counts: Json[] }>('summary?by=causeType&source=frameworks');
    expect(counts).toMatchObject([
      { key: 'Newtonsoft.Json.JsonReaderException', count: 1 },
      { key: null, count: 1 },
    ]);
  });
});

test('own rules: of the source, on the body, and of the whole catalog', async () => {
  const office = ruled;
  await office.send(
    'ruled',
    { messageId: 'body', body: { customer: { kind: 'test' } } },
    { messageId: 'property', body: {}, applicationProperties: { tenant: 'Acme' } },
    { messageId: 'neither', body: { customer: { kind: 'real' } } },
  );
  await office.deadLetterAll('ruled');
  await office.collect('ruled');
  expect(await letterOf(office, 'ruled', 'body')).toMatchObject({
    category: 'poison',
    rule: 'own:test-customers',
    label: 'Test customers',
    runbook: 'https://example.org/test-customers',
  });
  expect(await letterOf(office, 'ruled', 'property')).toMatchObject({
    advice: 'replay',
    rule: 'catalog:tenants',
    label: null,
  });
  expect(await letterOf(office, 'ruled', 'neither')).toMatchObject({ rule: 'application-reason' });
});

test('a body that does not fit its schema is poison, and is told by its places, not by what it holds', async () => {
  const office = schemed;
  await office.send(
    'schemed',
    { messageId: 'bad', subject: 'order', body: { lines: ['a', { secret: 'of somebody' }] } },
    { messageId: 'good', subject: 'order', body: { orderId: 1 } },
    { messageId: 'other', subject: 'invoice', body: { lines: 7 } },
  );
  await office.deadLetterAll('schemed');
  await office.collect('schemed');
  const bad = await letterOf(office, 'schemed', 'bad');
  expect(bad).toMatchObject({
    category: 'poison',
    advice: 'fix-first',
    rule: 'payload:order',
    violations: [
      { path: 'orderId', problem: 'required' },
      { path: 'lines[1]', problem: 'type' },
    ],
  });
  expect(JSON.stringify(bad)).not.toContain('of somebody');
  for (const id of ['good', 'other']) {
    expect(await letterOf(office, 'schemed', id)).toMatchObject({ rule: 'application-reason', violations: [] });
  }
});

describe('judging anew', () => {
  test('a changed rule holds for what is recorded; first-seen time, fate and replays stay', async () => {
    const before = plain;
    await before.send('changing', { messageId: 'a', body: {} }, { messageId: 'b', body: {} });
    await before.deadLetterAll('changing');
    await before.collect('changing');
    const sent = await before.run(await before.plan({ selection: { messageId: ['b'] } }, 'changing'));
    expect(sent.counts.done).toBe(1);
    await before.deadLetterAll('changing', 'UnsupportedCurrency', 'again');
    await before.collect('changing');
    const had = await before.letters('changing');
    const closed = (await letterOf(before, 'changing', 'b')).history;

    const office = ruled;
    expect(await office.letters('changing')).toEqual(had);
    const slice = await office.post<SliceJson>('sources/changing/reclassify');
    expect(slice).toEqual({
      lookedAt: 2,
      changed: 2,
      peeked: 0,
      notThere: 0,
      unreadable: 0,
      before: { unknown: 2 },
      after: { poison: 2 },
      continuation: null,
    });
    const has = await office.letters('changing');
    const judged = { category: 'poison', advice: 'fix-first', rule: 'own:currency', label: 'Currencies' };
    expect(has).toEqual(had.map((letter) => ({ ...letter, ...judged })));
    expect((await letterOf(office, 'changing', 'b')).history).toEqual(closed);
    expect(await office.post<SliceJson>('sources/changing/reclassify')).toMatchObject({ lookedAt: 2, changed: 0 });
    const { byCategory } = await office.get<{ byCategory: Json }>('sources/changing');
    expect(byCategory).toEqual({ poison: 2 });

    // And without the rule it is as it was.
    await plain.post('sources/changing/reclassify');
    expect(await plain.letters('changing')).toEqual(had);
    const { entries } = await plain.get<{ entries: Json[] }>('audit?source=changing&top=1');
    expect(entries).toMatchObject([
      { operator: 'test', operation: 'source.reclassify', outcome: '2 of 2 letters changed' },
    ]);
  });

  test('where a rule or a schema needs the body, the message is peeked: not locked, not moved, and nothing else is', async () => {
    const before = plain;
    await before.send(
      'watched',
      { messageId: 'a', subject: 'order', body: { kind: 'test' } },
      { messageId: 'b', subject: 'order', body: { kind: 7 } },
      { messageId: 'c', subject: 'invoice', body: { kind: 'test' } },
    );
    await before.deadLetterAll('watched');
    await before.collect('watched');
    const queue = () => broker.messages('watched/$DeadLetterQueue');
    const lying = queue();

    expect(await ruled.post<SliceJson>('sources/watched/reclassify')).toMatchObject({
      lookedAt: 3,
      peeked: 2,
      changed: 1,
    });
    expect(await letterOf(ruled, 'watched', 'a')).toMatchObject({ rule: 'own:tests' });

    expect(await schemed.post<SliceJson>('sources/watched/reclassify')).toMatchObject({
      peeked: 2,
      changed: 2,
      after: { poison: 1, unknown: 2 },
    });
    expect(await letterOf(schemed, 'watched', 'b')).toMatchObject({ violations: [{ path: 'kind', problem: 'type' }] });
    expect(await schemed.post<SliceJson>('sources/watched/reclassify', { reread: true })).toMatchObject({
      peeked: 3,
      changed: 0,
    });
    expect(queue()).toEqual(lying);

    // A message that is not there any more keeps its record as it is.
    broker.recreate('watched');
    expect(await schemed.post<SliceJson>('sources/watched/reclassify', { reread: true })).toMatchObject({
      lookedAt: 3,
      changed: 0,
      notThere: 3,
    });
    expect(await letterOf(schemed, 'watched', 'b')).toMatchObject({ category: 'poison', fate: null });
  });

  test('goes on in slices, each beginning where the last one ended', async () => {
    const before = plain;
    await before.send(
      'slices',
      Array.from({ length: 250 }, (_, i) => ({ messageId: `s-${i}`, body: {} })),
    );
    await before.deadLetterAll('slices');
    await before.collect('slices');
    const office = openOffice({
      root: new URL('../../', import.meta.url),
      settings: ruled.settings,
      log: () => {},
    });
    const source = sourceNamed(office, 'slices');
    const slices: number[] = [];
    let from: Awaited<ReturnType<typeof reclassify>>['continuation'];
    do {
      const slice = await reclassify(office, source, { from, reread: false, deadline: office.clock() }, 'test');
      expect(slice.changed).toBe(slice.lookedAt);
      slices.push(slice.lookedAt);
      from = slice.continuation;
    } while (from !== undefined);
    expect(slices).toEqual([100, 100, 50]);
    await office.broker.close();
    const { counts } = await ruled.get<{ counts: Json[] }>('summary?by=rule&source=slices');
    expect(counts).toMatchObject([{ key: 'own:currency', count: 250 }]);
    const middle = await ruled.post<SliceJson>('sources/slices/reclassify?continuation=200');
    expect(middle).toMatchObject({ lookedAt: 51, changed: 0 });
  });

  test.each([
    ['sources/none/reclassify', {}, 'replay', 'test', 404, 'DLO_SOURCE_UNKNOWN'],
    ['sources/changing/reclassify', {}, 'replay', '', 400, 'DLO_OPERATOR_MISSING'],
    ['sources/changing/reclassify?continuation=no', {}, 'replay', 'test', 400, 'DLO_BAD_REQUEST'],
    ['sources/changing/reclassify?from=1', {}, 'replay', 'test', 400, 'DLO_BAD_REQUEST'],
    ['sources/changing/reclassify', { reread: 'yes' }, 'replay', 'test', 400, 'DLO_BAD_REQUEST'],
    ['sources/changing/reclassify', { all: true }, 'replay', 'test', 400, 'DLO_BAD_REQUEST'],
  ] as const)('%s %j as %s, operator "%s": %i', async (path, body, right, operator, status, code) => {
    const answer = await plain.call(right, 'POST', path, body, { 'x-operator': operator });
    expect(answer.status).toBe(status);
    expect(answer.json).toMatchObject({ code });
  });

  test('is not for everybody', async () => {
    const answer = await plain.call('read', 'POST', 'sources/changing/reclassify', {});
    expect(answer.status).toBe(401);
  });
});
