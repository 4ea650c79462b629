import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { parseCatalog, readCatalog, reviveSource, sourceKey } from '../../shared/catalog.ts';
import { OfficeError } from '../../shared/errors.ts';
import { aCatalog, anEntry, aSource, CONNECTION, SETTINGS, SUBSCRIPTION } from '../harness/values.ts';

type Json = Record<string, unknown>;

/** What is wrong with a catalog, as the office says it. */
function complaint(catalog: unknown, settings: Record<string, string | undefined> = SETTINGS): string {
  try {
    parseCatalog(catalog, settings);
  } catch (error) {
    expect(error).toBeInstanceOf(OfficeError);
    expect((error as OfficeError).code).toBe('DLO_CATALOG_INVALID');
    return (error as OfficeError).message;
  }
  throw new Error('the catalog was accepted');
}

const withEntry = (changes: Json) => aCatalog({ sources: [anEntry(changes)] });

describe('a catalog entry that is wrong is refused with the name of its field', () => {
  it.each<[string, Json]>([
    ['sources.0.name', { name: 'Orders' }],
    ['sources.0.name', { name: '' }],
    ['sources.0.name', { name: `a${'b'.repeat(63)}` }],
    ['sources.0.name', { name: 'a-' }],
    ['sources.0.name', { name: "a'b" }],
    ['sources.0.queue', { queue: '' }],
    ['sources.0.queue', { queue: 'orders/' }],
    ['sources.0.queue', { queue: 'orders/$DeadLetterQueue' }],
    ['sources.0.queue', { queue: 'x'.repeat(300) }],
    ['sources.0.mode', { mode: undefined }],
    ['sources.0.mode', { mode: 'delete' }],
    ['sources.0.trigger', { trigger: 'yes' }],
    ['sources.0.owner', { owner: undefined }],
    ['sources.0.owner.team', { owner: { team: '', contact: 'c' } }],
    ['sources.0.owner.contact', { owner: { team: 't' } }],
    ['sources.0.runbook', { runbook: 'not a url' }],
    ['sources.0.retainFor', { retainFor: '14 days' }],
    ['sources.0.retainFor', { retainFor: 14 }],
    ['sources.0.retainFor', { retainFor: 'PT0S' }],
    ['sources.0.keepRecordsFor', { keepRecordsFor: 'forever' }],
    ['sources.0.entity.lockDuration', { entity: { lockDuration: '60' } }],
    ['sources.0.entity.maxDeliveryCount', { entity: { maxDeliveryCount: 0 } }],
    ['sources.0.entity.maxDeliveryCount', { entity: { maxDeliveryCount: 1.5 } }],
    ['sources.0.entity.duplicateDetection', { entity: { duplicateDetection: true } }],
    ['sources.0.entity.requiresSession', { entity: { requiresSession: 'no' } }],
    ['sources.0.entity.maxMessageBytes', { entity: { maxMessageBytes: 10 } }],
    ['sources.0.replay.maxReplays', { replay: { maxReplays: -1 } }],
    ['sources.0.replay.replayQueue', { ...SUBSCRIPTION, replay: { replayQueue: '/x' } }],
    ['sources.0.replay', { replay: { replayQueue: 'elsewhere' } }],
    ['sources.0.replay', { replay: { forwardQueue: 'elsewhere' } }],
    ['sources.0.mask.0', { mask: [''] }],
    ['sources.0.alert.severity', { alert: { severity: 5 } }],
    ['sources.0.rules.0.advice', { rules: [{ name: 'r', when: {}, category: 'poison', advice: 'send' }] }],
    ['sources.0.rules.0.category', { rules: [{ name: 'r', when: {}, category: 'bad', advice: 'replay' }] }],
    ['sources.0', { topic: 'events' }],
    ['sources.0', { topic: 'events', subscription: 'billing' }],
    ['sources.0', { queue: undefined }],
    ['sources.0', { queue: undefined, topic: 'events' }],
    ['sources.0', { queue: undefined, subscription: 'billing' }],
    ['sources.0.mode', { entity: { requiresSession: true } }],
    ['sources.0.namespace', { namespace: 'other' }],
    ['sources.0.namespace', { namespace: 'toString' }],
  ])('%s: %j', (field, changes) => {
    expect(complaint(withEntry(changes))).toContain(`${field}: `);
  });

  it.each<[string, Json]>([
    ['version', { version: 2 }],
    ['version', { version: '1' }],
    ['office', { office: undefined }],
    ['office', { office: 'My Office' }],
    ['namespaces', { namespaces: {} }],
    ['namespaces.main.connection', { namespaces: { main: { connection: 'a b' } } }],
    [
      'namespaces.main.operationsPerSecond',
      { namespaces: { main: { connection: 'ServiceBus', operationsPerSecond: 0 } } },
    ],
    ['namespaces.main.resourceId', { namespaces: { main: { connection: 'ServiceBus', resourceId: 'x' } } }],
    ['sources', { sources: undefined }],
    ['sources', { sources: {} }],
    ['sources.1.name', { sources: [anEntry(), anEntry({ queue: 'other' })] }],
    ['keepAuditFor', { keepAuditFor: 400 }],
  ])('%s: %j', (field, changes) => {
    expect(complaint(aCatalog(changes))).toContain(`${field}: `);
  });

  it.each([undefined, null, [], 'catalog', 1, true])('the whole of it being %j', (json) => {
    expect(complaint(json)).toContain('catalog.json is not valid');
  });

  test('all faults are told at once, twenty at most', () => {
    const sources = Array.from({ length: 30 }, (_, i) => anEntry({ name: `S-${i}`, queue: `q${i}` }));
    const text = complaint(aCatalog({ office: 'NO', sources }));
    expect(text).toContain('office: ');
    expect(text).toContain('sources.0.name: ');
    expect(text).not.toContain('sources.25.name: ');
  });
});

describe('a field that nobody knows is refused, not taken for a policy', () => {
  it.each<[string, Json]>([
    ['the catalog', aCatalog({ retainFor: 'P1D' })],
    ['a source', withEntry({ retainfor: 'P1D' })],
    ['an owner', withEntry({ owner: { team: 't', contact: 'c', phone: '1' } })],
    ['entity facts', withEntry({ entity: { lockduration: 'PT1M' } })],
    ['the replay policy', withEntry({ replay: { maxReplay: 1 } })],
    ['an alert', withEntry({ alert: { growth: 1 } })],
    ['a namespace', aCatalog({ namespaces: { main: { connection: 'ServiceBus', key: 'x' } } })],
  ])('in %s', (_where, catalog) => {
    expect(complaint(catalog)).toMatch(/unrecognized key/i);
  });

  test('also under a name that objects inherit', () => {
    const text = JSON.stringify(aCatalog()).replace('"version":1', '"version":1,"__proto__":{"office":"x"}');
    expect(complaint(JSON.parse(text))).toMatch(/unrecognized key/i);
  });
});

describe('the connection of a namespace', () => {
  it.each([
    ['a connection string', { ServiceBus: CONNECTION }],
    [
      'a connection string in another order',
      { ServiceBus: `SharedAccessKeyName=a;SharedAccessKey=b;Endpoint=${CONNECTION.slice(9, 44)}` },
    ],
    ['an upper-case host', { ServiceBus: CONNECTION.replace('office.', 'OFFICE.') }],
    ['an identity section', { ServiceBus__fullyQualifiedNamespace: 'Office.servicebus.windows.net' }],
  ])('is found in %s', (_what, settings) => {
    const [source] = parseCatalog(aCatalog(), settings).sources;
    expect(source?.key).toBe('office.servicebus.windows.net|orders');
  });

  test('of a local broker is its host without the port', () => {
    const settings = { ServiceBus: 'Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=a;SharedAccessKey=b' };
    expect(parseCatalog(aCatalog(), settings).namespaces[0]?.host).toBe('127.0.0.1');
  });

  const resource = (group: string) =>
    `/subscriptions/s/resourceGroups/${group}/providers/Microsoft.ServiceBus/namespaces/office`;
  test.each([
    ['of the catalog', resource('a'), { ServiceBus__namespaceResourceId: resource('c') }, resource('a')],
    ['of the settings', undefined, { ServiceBus__namespaceResourceId: resource('c') }, resource('c')],
    ['in a group with letters of any language', resource('größe'), {}, resource('größe')],
    ['unknown when the setting is empty', undefined, { ServiceBus__namespaceResourceId: '' }, undefined],
    ['unknown when nobody says it', undefined, {}, undefined],
  ])('has the resource id %s', (_where, resourceId, more, expected) => {
    const namespaces = { main: { connection: 'ServiceBus', ...(resourceId !== undefined && { resourceId }) } };
    const catalog = parseCatalog(aCatalog({ namespaces }), { ServiceBus: CONNECTION, ...more });
    expect(catalog.namespaces[0]?.resourceId).toBe(expected);
  });

  test.each([
    '/subscriptions/0000',
    `${resource('g')}/queues/plain`,
    `${resource('g')}?x=`,
    `${resource('g')}/../../x`,
    resource('..'),
    '/subscriptions/0/resourceGroups/rg/providers/Microsoft.Storage/storageAccounts/shop',
  ])('has no resource id such as %s', (resourceId) => {
    const namespaces = { main: { connection: 'ServiceBus', resourceId } };
    expect(() => parseCatalog(aCatalog({ namespaces }), { ServiceBus: CONNECTION })).toThrow(
      'namespaces.main.resourceId: must be the resource id of a Service Bus namespace',
    );
    const settings = { ServiceBus: CONNECTION, ServiceBus__namespaceResourceId: resourceId };
    expect(() => parseCatalog(aCatalog(), settings)).toThrow(
      expect.objectContaining({ code: 'DLO_SETTINGS_INVALID', message: expect.stringContaining('"ServiceBus__n') }),
    );
  });

  test('is a setting, not the catalog: what is wrong with it is told of each namespace, and no key is shown', () => {
    const namespaces = { a: { connection: 'A' }, b: { connection: 'B' } };
    const settings = { A: `Endpoint=https://topsecret.example;SharedAccessKey=topsecret` };
    const read = () => parseCatalog(aCatalog({ namespaces, sources: [] }), settings);
    const problems = [
      'the app setting "A" must have an Endpoint such as sb://office.servicebus.windows.net/ (namespace a)',
      'the app setting "B" is not there, and neither is "B__fullyQualifiedNamespace" (namespace b)',
    ];
    expect(read).toThrow(expect.objectContaining({ code: 'DLO_SETTINGS_INVALID', data: { problems } }));
    expect(read).not.toThrow(/topsecret/);
  });
});

describe('the key of a source', () => {
  test('does not depend on case', () => {
    expect(sourceKey('HOST.net', 'Events/Subscriptions/Billing')).toBe('host.net|events|subscriptions|billing');
    expect(aSource({ queue: 'Orders' }).key).toBe(aSource({ queue: 'orders' }).key);
  });

  test('holds nothing that table keys do not allow', () => {
    expect(aSource({ ...SUBSCRIPTION, topic: 'a/b' }).key).not.toMatch(/[/\\#?]/);
  });

  test('of a queue and of a subscription are made from their paths', () => {
    expect(aSource()).toMatchObject({ of: { kind: 'queue', queue: 'orders' }, path: 'orders' });
    expect(aSource(SUBSCRIPTION)).toMatchObject({
      of: { kind: 'subscription', topic: 'events', subscription: 'billing' },
      path: 'events/Subscriptions/billing',
    });
  });

  test('two entries for one entity are refused, in whatever case they write it', () => {
    const sources = [anEntry(), anEntry({ name: 'twin', queue: 'ORDERS' })];
    expect(complaint(aCatalog({ sources }))).toContain('"twin" and "orders" are the same entity');
  });

  test('one name of a queue in two namespaces is two sources', () => {
    const namespaces = { a: { connection: 'A' }, b: { connection: 'B' } };
    const sources = [anEntry({ namespace: 'a' }), anEntry({ namespace: 'b', name: 'orders-b' })];
    const settings = { A__fullyQualifiedNamespace: 'a.example', B__fullyQualifiedNamespace: 'b.example' };
    expect(parseCatalog(aCatalog({ namespaces, sources }), settings).sources.map(({ key }) => key)).toEqual([
      'a.example|orders',
      'b.example|orders',
    ]);
  });

  test('two labels for one namespace do not make one entity two', () => {
    const namespaces = { a: { connection: 'ServiceBus' }, b: { connection: 'ServiceBus' } };
    const sources = [anEntry({ namespace: 'a' }), anEntry({ namespace: 'b', name: 'twin' })];
    expect(complaint(aCatalog({ namespaces, sources }))).toContain('are the same entity');
  });
});

test('a namespace need not be named when there is one, and must be when there are two', () => {
  expect(aSource().namespace.label).toBe('main');
  const namespaces = { a: { connection: 'ServiceBus' }, b: { connection: 'ServiceBus' } };
  expect(complaint(aCatalog({ namespaces }))).toContain('sources.0.namespace: must be given');
});

test('what an entry does not say is safe: nothing is removed, little is replayed, nothing is assumed of the entity', () => {
  const source = aSource();
  expect(source.retainFor).toBeUndefined();
  expect(source.replay.maxReplays).toBe(3);
  expect(source.entity).toEqual({ partitioned: false, maxMessageBytes: 262_144 });
});

test('an observe source may be of a session entity', () => {
  expect(aSource({ mode: 'observe', entity: { requiresSession: true } }).entity.requiresSession).toBe(true);
});

test("the repository's own catalog is valid", () => {
  const file = new URL('../../catalog.json', import.meta.url);
  const { connection } = (JSON.parse(readFileSync(file, 'utf8')) as { namespaces: { main: { connection: string } } })
    .namespaces.main;
  expect(readCatalog(file, { [connection]: CONNECTION }).sources.length).toBeGreaterThan(0);
});

test('a catalog file that is missing or no JSON is told', () => {
  expect(() => readCatalog('/nowhere/catalog.json', SETTINGS)).toThrow(/catalog.json cannot be read/);
  expect(() => readCatalog(new URL('../../LICENSE', import.meta.url), SETTINGS)).toThrow(/catalog.json cannot be read/);
});

describe('a source that left the catalog', () => {
  const catalog = parseCatalog(aCatalog({ sources: [] }), SETTINGS);

  test('comes back from its stored entry as it was', () => {
    const source = aSource({ retainFor: 'P14D', ...SUBSCRIPTION });
    expect(reviveSource(catalog, source.declared)).toEqual(source);
  });

  it.each([
    ['is empty', ''],
    ['is no JSON', '{"name":'],
    ['is null', 'null'],
    ['is a list', '[]'],
    ['does not fit the schema any more', JSON.stringify(anEntry({ mode: 'delete' }))],
    ['names a namespace that has left too', JSON.stringify(anEntry({ namespace: 'gone' }))],
    ['names a namespace that every object has', JSON.stringify(anEntry({ namespace: 'constructor' }))],
  ])('is not brought back when its entry %s', (_what, declared) => {
    expect(reviveSource(catalog, declared)).toBeUndefined();
  });

  test('is not brought back by guess when there are several namespaces now', () => {
    const namespaces = { a: { connection: 'ServiceBus' }, b: { connection: 'ServiceBus' } };
    const several = parseCatalog(aCatalog({ namespaces, sources: [] }), SETTINGS);
    expect(reviveSource(several, JSON.stringify(anEntry()))).toBeUndefined();
  });
});
