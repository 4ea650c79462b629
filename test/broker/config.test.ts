import { describe, expect, it } from 'vitest';
import { durationMs, parseConfig, readConfig } from '../../local/broker/config.ts';
import { startBroker } from '../../local/broker/index.ts';

function file(namespace: object) {
  return { UserConfig: { Namespaces: [{ Name: 'sbemulatorns', ...namespace }], Logging: { Type: 'File' } } };
}

describe('the configuration', () => {
  it('reads what the emulator reads', () => {
    const config = parseConfig(
      file({
        Queues: [
          {
            Name: 'queue.1',
            Properties: {
              DeadLetteringOnMessageExpiration: true,
              DefaultMessageTimeToLive: 'P1DT2H',
              DuplicateDetectionHistoryTimeWindow: 'PT20S',
              ForwardDeadLetteredMessagesTo: '',
              ForwardTo: '',
              LockDuration: 'PT1M30.5S',
              MaxDeliveryCount: 3,
              RequiresDuplicateDetection: false,
              RequiresSession: false,
            },
          },
          { Name: 'team/orders' },
        ],
        Topics: [
          {
            Name: 'topic.1',
            Properties: { DefaultMessageTimeToLive: 'PT1H', RequiresDuplicateDetection: false },
            Subscriptions: [{ Name: 'sub', Properties: { MaxDeliveryCount: 1 }, Rules: [] }],
          },
        ],
      }),
    );
    const defaults = {
      lockDuration: 60_000,
      maxDeliveryCount: 10,
      defaultTimeToLive: 3_600_000,
      deadLetteringOnMessageExpiration: false,
    };
    expect(config).toEqual({
      queues: [
        {
          name: 'queue.1',
          settings: {
            lockDuration: 90_500,
            maxDeliveryCount: 3,
            defaultTimeToLive: 26 * 3_600_000,
            deadLetteringOnMessageExpiration: true,
          },
        },
        { name: 'team/orders', settings: defaults },
      ],
      topics: [
        {
          name: 'topic.1',
          defaultTimeToLive: 3_600_000,
          subscriptions: [{ name: 'sub', settings: { ...defaults, maxDeliveryCount: 1 } }],
        },
      ],
      unsupported: [],
      notes: [],
    });
  });

  it.each([
    [{ Queues: [{}] }, 'UserConfig.Namespaces[0].Queues[0].Name'],
    [
      { Queues: [{ Name: 'a' }, { Name: 'b', Properties: { LockDuration: '1 minute' } }] },
      'Queues[1].Properties.LockDuration',
    ],
    [
      { Queues: [{ Name: 'a', Properties: { LockDuration: 'PT6M' } }] },
      'Queues[0].Properties.LockDuration: at most PT5M',
    ],
    [{ Queues: [{ Name: 'a', Properties: { MaxDeliveryCount: 0 } }] }, 'Queues[0].Properties.MaxDeliveryCount'],
    [{ Queues: [{ Name: 'a', Properties: { MaxDeliverCount: 3 } }] }, 'MaxDeliverCount'],
    [{ Queues: [{ Name: '$weird' }] }, "Queues[0].Name: '$' cannot stand in a name"],
    [{ Queues: [{ Name: 'a~b' }] }, "Queues[0].Name: '~' cannot stand in a name: letters, digits,"],
    [{ Queues: [{ Name: 'a-' }] }, 'Queues[0].Name: must start and end with a letter or digit'],
    [
      { Queues: [{ Name: 'a', MaxDeliveryCount: 3 }] },
      "Queues[0].MaxDeliveryCount: is not known here: it belongs into 'Pr",
    ],
    [{ Topics: [{ Name: 't', Subscritptions: [] }] }, 'Topics[0].Subscritptions: is not known'],
    [{ Topics: [{ Name: 't', subscriptions: [] }] }, "subscriptions: is not known, 'Subscriptions' is: case matters"],
    [{ Entities: [] }, 'Namespaces[0].Entities: is not known'],
    [
      { Topics: [{ Name: 't', Subscriptions: [{ Name: 's', Rules: [{ Name: 'r', Filter: {}, Properties: {} }] }] }] },
      'Rules[0].Filter: is not known',
    ],
    [{ Queues: [{ Name: 'a' }, { Name: 'A' }] }, "Queues[1].Name: the name 'A' is already taken"],
    [{ Queues: [{ Name: 'a' }], Topics: [{ Name: 'a' }] }, "Topics[0].Name: the name 'a' is already taken"],
    [{ Topics: [{ Name: 't', Subscriptions: [{ Name: 's' }, { Name: 's' }] }] }, 'Topics[0].Subscriptions[1].Name'],
  ])('names the path of what is wrong: %j', (namespace, path) => {
    expect(() => parseConfig(file(namespace))).toThrow(path);
  });

  it('of a file may have a byte order mark, comments and commas after the last item', () => {
    const text = `\uFEFF{
      // as in the samples of the emulator
      "UserConfig": { "Namespaces": [{ "Name": "n", /* no topics */ "Queues": [{ "Name": "a//b", }, ], }], },
    }`;
    expect(readConfig(text)).toEqual(parseConfig(file({ Queues: [{ Name: 'a//b' }] })));
  });

  it.each([
    ['{\n  "UserConfig": {\n    "Namespaces" []\n  }\n}', "line 3, column 18: '[' stands where ':' is needed"],
    ['{\n  "UserConfig": { "Namespaces": [ },\n', "line 2, column 35: '}' stands where a value is needed"],
    ['{ "UserConfig": {},\n  "UserConfig": {} }', "line 2, column 3: 'UserConfig' is given twice"],
    ['{ "UserConfig": {} /* no end', 'line 1, column 20: a comment does not end'],
    ['\n', 'line 2, column 1: there is nothing in it'],
    [
      '{ "UserConfig": { "Namespaces": [{ "Queues": [\n { "Name": "a" },\n {\n  "Name": "b",\n  "LockDuration": "PT1M" }] }] } }',
      "line 5, UserConfig.Namespaces[0].Queues[1].LockDuration: is not known here: it belongs into 'Properties'",
    ],
    [
      '{ "UserConfig": { "Namespaces": [{ "Queues": [\n { "Name": "a" },\n { "Name": "A" } ] }] } }',
      "line 3, UserConfig.Namespaces[0].Queues[1].Name: the name 'A' is already taken",
    ],
  ])('of a file says the line of what is wrong: %j', (text, told) => {
    expect(() => readConfig(text)).toThrow(told);
  });

  it('tells what it accepts without effect, and how long a month is', () => {
    const Properties = {
      EnableExpress: true,
      MaxMessageSizeInKilobytes: 1024,
      AutoDeleteOnIdle: null,
      DefaultMessageTimeToLive: 'P1M',
      LockDuration: 'PT1M',
    };
    const config = parseConfig(file({ Queues: [{ Name: 'a', Properties }] }));
    expect(config.queues[0]?.settings.defaultTimeToLive).toBe(30 * 86_400_000);
    const at = 'UserConfig.Namespaces[0].Queues[0].Properties';
    expect(config.notes).toEqual([
      `${at}.EnableExpress: has no effect here`,
      `${at}.MaxMessageSizeInKilobytes: has no effect here`,
      `${at}.DefaultMessageTimeToLive: 'P1M' counts in months or years and is read as 30 days; minutes stand after a T (PT1M)`,
    ]);
  });

  it.each([[undefined], [null], ['text'], [{}], [{ UserConfig: { Namespaces: [] } }]])(
    'refuses what is no configuration: %j',
    (json) => {
      expect(() => parseConfig(json)).toThrow('The Service Bus configuration is not valid');
    },
  );

  it.each([
    [
      {
        Topics: [{ Name: 't', Subscriptions: [{ Name: 's', Properties: { RequiresDuplicateDetection: true } }] }],
      },
      'Topics[0].Subscriptions[0].Properties.RequiresDuplicateDetection: this is decided by the topic',
    ],
    [{ Queues: [{ Name: 'a', Properties: { ForwardTo: 'b' } }] }, "'a' forwards to 'b', which is no queue or topic"],
    [{ Queues: [{ Name: 'a', Properties: { ForwardDeadLetteredMessagesTo: 'b' } }] }, "'a' forwards to 'b'"],
    [{ Queues: [{ Name: 'a', Properties: { ForwardTo: 'A' } }] }, "'a' cannot forward to itself"],
    [
      { Queues: [{ Name: 'a', Properties: { ForwardTo: 'b', RequiresSession: true } }, { Name: 'b' }] },
      "'a' requires sessions and so cannot forward",
    ],
  ])('that asks for what cannot be is refused when the broker starts: %j', async (namespace, path) => {
    await expect(startBroker({ config: parseConfig(file(namespace)) })).rejects.toThrow(path);
  });

  it.each([
    ['PT1M', 60_000],
    ['P1D', 86_400_000],
    ['PT0.5S', 500],
    ['P10675199DT2H48M5.4775807S', 922_337_203_685_478],
    ['P', undefined],
    ['PT', undefined],
    ['P1DT', undefined],
    ['1M', undefined],
    ['P1M', 30 * 86_400_000],
    ['P1Y2DT1S', 367 * 86_400_000 + 1000],
    ['P1W', undefined],
  ])('reads the duration %s', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });
});
