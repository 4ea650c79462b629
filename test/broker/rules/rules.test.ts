/** Topic rules as clients see them: which subscriptions get a message, and the rule manager. */
import type { ServiceBusMessage } from '@azure/service-bus';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeStringMap } from '../../../local/broker/encoding.ts';
import { parseConfig, type RunningBroker, startBroker } from '../../../local/broker/index.ts';
import { encode, SECTION } from '../../../shared/brokers/serviceBus/amqp.ts';
import { Bench, dataSection, mapSection, peekAll } from '../harness.ts';
import { RawClient } from '../raw-client.ts';

const sql = (SqlExpression: string) => ({ FilterType: 'Sql', SqlFilter: { SqlExpression } });
const correlation = (CorrelationFilter: object) => ({ FilterType: 'Correlation', CorrelationFilter });

function configWith(rules: Record<string, object[]>) {
  return parseConfig({
    UserConfig: {
      Namespaces: [
        {
          Name: 'test',
          Topics: [
            {
              Name: 't',
              Subscriptions: Object.entries(rules).map(([Name, list]) => ({
                Name,
                Rules: list.map((Properties, at) => ({ Name: `rule-${at}`, Properties })),
              })),
            },
          ],
        },
      ],
    },
  });
}

describe('a topic', () => {
  const rules = {
    all: [],
    none: [{ FilterType: 'False' }],
    blue: [sql("color = 'blue'")],
    several: [sql("color = 'blue'"), sql('size > 1'), { FilterType: 'True' }],
    mismatch: [sql('color > 5')],
    correlated: [correlation({ CorrelationId: 'c1', Label: 'sub', Properties: { color: 'blue', size: 2, ok: true } })],
    everything: [
      correlation({
        MessageId: 'm',
        CorrelationId: 'c',
        To: 'to',
        ReplyTo: 'reply',
        Label: 'label',
        SessionId: 's',
        ReplyToSessionId: 'rs',
        ContentType: 'text/plain',
      }),
    ],
  };
  let broker: RunningBroker;
  let bench: Bench;
  beforeAll(async () => {
    broker = await startBroker({ config: configWith(rules) });
    bench = Bench.around(broker);
  });
  afterAll(() => bench.close());

  async function takers(message: ServiceBusMessage): Promise<Record<string, number>> {
    broker.recreate('t');
    const sender = bench.client().createSender('t');
    await sender.sendMessages(message);
    const counts = Object.keys(rules).map((name) => [name, broker.messages(`t/Subscriptions/${name}`).length] as const);
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  }

  it('gives a message to the subscriptions that have a rule for it, and to each of them once', async () => {
    expect(await takers({ body: 1 })).toEqual({ all: 1, several: 1 });
    expect(await takers({ body: 1, applicationProperties: { color: 'red' } })).toEqual({ all: 1, several: 1 });
    expect(await takers({ body: 1, applicationProperties: { color: 'blue', size: 3 } })).toEqual({
      all: 1,
      blue: 1,
      several: 1,
    });
  });

  it('compares all that a correlation filter names', async () => {
    const message = {
      body: 1,
      correlationId: 'c1',
      subject: 'sub',
      applicationProperties: { color: 'blue', size: 2, ok: true },
    };
    expect(await takers(message)).toMatchObject({ correlated: 1 });
    for (const change of [
      { correlationId: 'c2' },
      { subject: 'Sub' },
      { subject: undefined },
      { applicationProperties: { color: 'blue', size: 3, ok: true } },
      { applicationProperties: { color: 'blue', size: '2', ok: true } },
      { applicationProperties: { color: 'blue', size: 2 } },
    ]) {
      expect(await takers({ ...message, ...change } as ServiceBusMessage)).not.toHaveProperty('correlated');
    }
    const full = {
      body: 1,
      messageId: 'm',
      correlationId: 'c',
      to: 'to',
      replyTo: 'reply',
      subject: 'label',
      sessionId: 's',
      replyToSessionId: 'rs',
      contentType: 'text/plain',
    };
    expect(await takers(full)).toMatchObject({ everything: 1 });
    for (const name of Object.keys(full).filter((key) => key !== 'body')) {
      expect(await takers({ ...full, [name]: 'other' })).not.toHaveProperty('everything');
    }
  });

  it('accepts a message that nobody wants, and it is gone', async () => {
    const lonely = await startBroker({ config: configWith({ none: [{ FilterType: 'False' }] }) });
    const own = Bench.around(lonely);
    await own.client().createSender('t').sendMessages({ body: 1 });
    expect(lonely.messages('t/Subscriptions/none')).toEqual([]);
    await own.close();
  });

  it('makes a copy of its own for each rule with an action, as the action says', async () => {
    const Action = {
      SqlExpression: "SET size = size + 1; REMOVE color; SET sys.To = 'there', SET [new one] = 'x' + color",
    };
    const acting = [{ FilterType: 'True' }, sql('size = 1'), { ...sql('size = 1'), Action }];
    const failing = [{ ...sql('size = 1'), Action: { SqlExpression: "SET size = 'many'" } }];
    const own = Bench.around(await startBroker({ config: configWith({ acting, failing }) }));
    await own
      .client()
      .createSender('t')
      .sendMessages({ body: 'b', applicationProperties: { size: 1, color: 'blue' } });
    const [plain, made, ...more] = await peekAll(own.client().createReceiver('t', 'acting'));
    expect(more).toEqual([]);
    expect(plain?.applicationProperties).toEqual({ size: 1, color: 'blue' });
    expect(made).toMatchObject({ body: 'b', to: 'there' });
    // The colour is gone when the last statement reads it, and what is unknown is null.
    expect(made?.applicationProperties).toEqual({ size: 2, 'new one': null, RuleName: 'rule-2' });
    expect(own.broker.messages('t/Subscriptions/failing')).toEqual([]);
    await own.close();
  });

  it('accepts a message whose properties no filter can read as it likes', async () => {
    const raw = await RawClient.connect(broker);
    const sender = await raw.sender('t');
    broker.recreate('t');
    const odd = mapSection(SECTION.applicationProperties, {
      color: Buffer.from('c10c02a1017ac10602a1017a5401', 'hex'),
      size: Buffer.from('45', 'hex'),
    });
    expect(await raw.sent(sender, Buffer.concat([odd, dataSection('x')]))).toBe('accepted');
    expect(broker.messages('t/Subscriptions/all')).toHaveLength(1);
    expect(broker.messages('t/Subscriptions/blue')).toHaveLength(0);
    raw.close();
  });
});

describe('rules in the configuration', () => {
  it.each([
    [[sql('color =')], 'Rules[0].Properties: The SQL filter'],
    [[sql('')], 'Rules[0].Properties.SqlFilter.SqlExpression'],
    [[{ FilterType: 'Sql' }], 'Rules[0].Properties.SqlFilter: is needed'],
    [[correlation({})], 'Rules[0].Properties: A correlation filter needs'],
    [[correlation({ Colour: 'x' })], 'Colour'],
    [[{ FilterType: 'Magic' }], 'Rules[0].Properties.FilterType'],
    [
      [{ ...sql('a = 1'), Action: { SqlExpression: 'PUT a = 2' } }],
      "The SQL action 'PUT a = 2': 'PUT' stands where SET",
    ],
    [[{ ...sql('a = 1'), Action: { Sql: 'SET a = 2' } }], 'Rules[0].Properties.Action.Sql: is not known'],
  ])('are refused with their path when they are wrong: %j', (rules, path) => {
    expect(() => configWith({ s: rules })).toThrow(path);
  });
});

describe('the rule manager', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.start({ q: {} }, { t: ['s'] });
  });
  afterAll(() => bench.close());
  const manager = () => bench.client().createRuleManager('t', 's');

  async function rulesOf() {
    const found = [];
    // Without any rule the client (7.9.5) yields one undefined.
    for await (const rule of manager().listRules()) if (rule) found.push(rule);
    return found;
  }

  it('lists, adds and removes rules, and what arrives follows them', async () => {
    const rules = manager();
    expect(await rulesOf()).toEqual([{ name: '$Default', filter: { sqlExpression: '1=1' }, action: {} }]);
    await rules.createRule('sql', { sqlExpression: "color = 'blue'" });
    await rules.createRule('correlation', {
      correlationId: 'c',
      subject: 's',
      applicationProperties: { n: 5, text: 'x', yes: true, half: 0.5 },
    });
    await rules.deleteRule('$Default');
    const listed = await rulesOf();
    expect(listed.map(({ name }) => name)).toEqual(['correlation', 'sql']);
    expect(listed[0]?.filter).toMatchObject({
      correlationId: 'c',
      subject: 's',
      applicationProperties: { n: 5, text: 'x', yes: true, half: 0.5 },
    });
    expect(listed[1]?.filter).toEqual({ sqlExpression: "color = 'blue'" });
    const sender = bench.client().createSender('t');
    await sender.sendMessages([
      { body: 'neither' },
      { body: 'sql', applicationProperties: { color: 'blue' } },
      {
        body: 'correlation',
        correlationId: 'c',
        subject: 's',
        applicationProperties: { n: 5, text: 'x', yes: true, half: 0.5 },
      },
    ]);
    expect(bench.broker.messages('t/Subscriptions/s')).toHaveLength(2);
    await rules.deleteRule('sql');
    await rules.deleteRule('correlation');
    await rules.createRule('acts', { sqlExpression: '1=1' }, { sqlExpression: "SET a = 'b'" });
    expect(await rulesOf()).toMatchObject([{ name: 'acts', action: { sqlExpression: "SET a = 'b'" } }]);
    await rules.deleteRule('acts');
    expect(await rulesOf()).toEqual([]);
    await rules.createRule('$Default', { sqlExpression: '1=1' });
  });

  it('is refused what is there already, what is not there, and what is no filter', async () => {
    const rules = manager();
    await expect(rules.createRule('$default', { sqlExpression: '1=0' })).rejects.toMatchObject({
      code: 'MessagingEntityAlreadyExists',
    });
    await expect(rules.deleteRule('nowhere')).rejects.toMatchObject({ code: 'MessagingEntityNotFound' });
    await expect(rules.createRule('bad', { sqlExpression: 'color ==' })).rejects.toThrow(/The SQL filter 'color =='/);
    await expect(rules.createRule('bad/name', { sqlExpression: '1=1' })).rejects.toThrow(/not a valid name/);
    await expect(rules.createRule('acts', { sqlExpression: '1=1' }, { sqlExpression: 'SET a' })).rejects.toThrow(
      /The SQL action 'SET a': it ends where '=' is needed/,
    );
    expect((await rulesOf()).map(({ name }) => name)).toEqual(['$Default']);
  });

  it('finds rules at subscriptions only', async () => {
    const raw = await RawClient.connect(bench.broker);
    const args = { skip: encode.int(0), top: encode.int(100) };
    expect(await raw.manage('q', 'enumerate-rules', args)).toMatchObject({
      status: 400,
      condition: 'amqp:not-allowed',
    });
    expect(await raw.manage('t/Subscriptions/s', 'enumerate-rules', args)).toMatchObject({ status: 200 });
    expect(
      await raw.manage('t/Subscriptions/s', 'enumerate-rules', { skip: encode.int(1), top: encode.int(1) }),
    ).toMatchObject({ status: 204 });
    for (const bad of [{}, { skip: encode.int(-1), top: encode.int(1) }, { skip: encode.int(0), top: encode.int(0) }]) {
      expect(await raw.manage('t/Subscriptions/s', 'enumerate-rules', bad)).toMatchObject({ status: 400 });
    }
    for (const description of [
      encode.string('x'),
      encodeStringMap({}),
      encodeStringMap({ 'sql-filter': encode.int(1) }),
      encodeStringMap({ 'sql-filter': encodeStringMap({}) }),
      encodeStringMap({ 'correlation-filter': encodeStringMap({}) }),
      encodeStringMap({ 'correlation-filter': encodeStringMap({ properties: encode.int(1) }) }),
    ]) {
      const answer = await raw.manage('t/Subscriptions/s', 'add-rule', {
        'rule-name': encode.string('odd'),
        'rule-description': description,
      });
      expect(answer.status).toBe(400);
    }
    raw.close();
  });

  it('keeps the types of the properties a filter compares', async () => {
    const raw = await RawClient.connect(bench.broker);
    const properties = encodeStringMap({
      n: Buffer.from('5405', 'hex'),
      u: Buffer.from('9800112233445566778899aabbccddeeff', 'hex'),
    });
    const answer = await raw.manage('t/Subscriptions/s', 'add-rule', {
      'rule-name': encode.string('typed'),
      'rule-description': encodeStringMap({ 'correlation-filter': encodeStringMap({ properties }) }),
    });
    expect(answer.status).toBe(200);
    const list = await raw.manage('t/Subscriptions/s', 'enumerate-rules', { skip: encode.int(1), top: encode.int(1) });
    const text = JSON.stringify(list.body, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    expect(text).toContain('{"type":"int","value":5}');
    expect(text).toContain('{"type":"uuid","value":"00112233-4455-6677-8899-aabbccddeeff"}');
    raw.close();
  });
});
