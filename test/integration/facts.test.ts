/** Facts about targets, from the local broker's two interfaces and from servers that answer anything. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type RunningBroker, startBroker } from '../../local/broker/index.ts';
import type { TargetFacts } from '../../shared/brokers/broker.ts';
import { createFactReader, createReaders } from '../../shared/brokers/serviceBus/facts.ts';
import { createServiceBus } from '../../shared/brokers/serviceBus/index.ts';
import { parseCatalog } from '../../shared/catalog.ts';
import { brokerConfig } from '../harness/office.ts';

type Settings = Record<string, string | undefined>;

const NAMESPACE = '/subscriptions/0000/resourceGroups/rg/providers/Microsoft.ServiceBus/namespaces/shop';
const NEVER = 'P10675199DT2H48M5.4775807S';
const FROM = ['resource-manager', 'administration'] as const;

let broker: RunningBroker;
const undo: (() => void)[] = [];

beforeAll(async () => {
  broker = await startBroker({
    config: brokerConfig(
      {
        plain: { DefaultMessageTimeToLive: NEVER, LockDuration: 'PT30S', MaxDeliveryCount: 5 },
        'team/careful': {
          RequiresDuplicateDetection: true,
          DuplicateDetectionHistoryTimeWindow: 'PT2M',
          RequiresSession: true,
          DeadLetteringOnMessageExpiration: true,
          DefaultMessageTimeToLive: 'PT30M',
          EnablePartitioning: true,
        },
        changing: {},
      },
      { events: { billing: {} } },
    ),
    sasKeys: [{ name: 'listener', key: 'bGlzdGVu', rights: ['Listen', 'Send'] }],
  });
});
afterAll(() => broker.close());
afterEach(() => {
  for (const end of undo.splice(0)) end();
});

const local = () => `http://127.0.0.1:${broker.adminPort}`;

interface Asking {
  readonly settings?: Settings;
  readonly resourceId?: string | undefined;
  readonly timeoutMs?: number;
  /** What the source is of; a queue by default. */
  readonly source?: Record<string, string> | undefined;
}

/** Asks as a new office does; gives the lines that it logged, too. */
async function ask(entity: string, { settings = {}, resourceId, timeoutMs, source }: Asking) {
  const lines: string[] = [];
  const namespace = { connection: 'Bus', ...(resourceId !== undefined && { resourceId }) };
  const owner = { team: 'shop', contact: 'shop@example.org' };
  const of = source ?? { queue: 'orders' };
  const sources = [{ name: 'orders', ...of, mode: 'defer', owner }];
  const all = settings.Bus__fullyQualifiedNamespace ? settings : { Bus: broker.connectionString, ...settings };
  const catalog = parseCatalog({ version: 1, office: 'test', namespaces: { main: namespace }, sources }, all);
  const [first] = catalog.sources;
  if (first === undefined) throw new Error('a catalog with one entry has one source');
  const read = createFactReader({
    settings: all,
    log: (line) => lines.push(line),
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
  return { facts: await read(first, entity), lines };
}

/** Asks one of the broker's interfaces alone. */
function askLocal(from: TargetFacts['from'], entity: string, source?: Asking['source']) {
  if (from === 'administration') return ask(entity, { settings: { DLO_ADMINISTRATION_URL: local() }, source });
  return askManager(local(), entity, source);
}

function askManager(url: string, entity: string, source?: Asking['source']) {
  const settings = { DLO_RESOURCE_MANAGER_URL: url, Bus: undefined, Bus__fullyQualifiedNamespace: 'localhost' };
  return ask(entity, { settings, resourceId: NAMESPACE, source });
}

const BILLING = { topic: 'Events', subscription: 'billing' };

/** A server that answers what the test wants; counts what it was asked. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: string[] = [];
  const tokens: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    tokens.push(request.headers.authorization);
    answer(request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  undo.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, tokens };
}

describe.each(FROM)('facts from %s', (from) => {
  it('tell of a plain queue', async () => {
    const { facts, lines } = await askLocal(from, 'plain');
    expect(facts).toEqual({
      from,
      status: 'active',
      duplicateDetection: false,
      requiresSession: false,
      deadLettersOnExpiry: false,
      maxMessageBytes: 262_144,
      lockDuration: 30_000,
      maxDeliveryCount: 5,
      partitioned: false,
    });
    expect(lines).toEqual([]);
  });

  it('tell of a queue with everything, with a slash in its name', async () => {
    expect((await askLocal(from, 'team/careful')).facts).toEqual({
      from,
      status: 'active',
      duplicateDetection: 120_000,
      requiresSession: true,
      deadLettersOnExpiry: true,
      defaultTimeToLive: 1_800_000,
      maxMessageBytes: 262_144,
      lockDuration: 60_000,
      maxDeliveryCount: 3,
      partitioned: true,
    });
  });

  it('tell of a topic what topics have', async () => {
    const { facts } = await askLocal(from, 'events', BILLING);
    expect(facts).toMatchObject({ from, status: 'active', duplicateDetection: false, partitioned: false });
    expect(facts).not.toHaveProperty('requiresSession');
    expect(facts).not.toHaveProperty('lockDuration');
  });

  it.each([
    ['Disabled', 'disabled'],
    ['SendDisabled', 'send-disabled'],
    ['ReceiveDisabled', 'receive-disabled'],
    ['Active', 'active'],
  ] as const)('are new each time: %s', async (status, expected) => {
    broker.setStatus('changing', status);
    expect((await askLocal(from, 'changing')).facts.status).toBe(expected);
  });

  it('say that an entity is missing', async () => {
    expect(await askLocal(from, 'nowhere')).toEqual({ facts: { from, status: 'missing' }, lines: [] });
  });
});

describe('with roles on single entities', () => {
  let careful: RunningBroker;
  beforeAll(async () => {
    const config = brokerConfig({ plain: {}, other: {} }, { events: { billing: {} } });
    careful = await startBroker({ config, readable: ['queues/plain', 'topics/events'] });
  });
  afterAll(() => careful?.close());
  const asked = (entity: string, source?: Asking['source']) =>
    askManager(`http://127.0.0.1:${careful.adminPort}`, entity, source);

  it.each([
    ['a queue', 'plain', undefined],
    ['a topic, which is not asked for as a queue first', 'events', BILLING],
    ['a queue that letters of a subscription go to', 'plain', BILLING],
  ] as const)('the facts of %s are read', async (_what, entity, source) => {
    const { facts, lines } = await asked(entity, source);
    expect(facts).toMatchObject({ from: 'resource-manager', status: 'active', duplicateDetection: false });
    expect(lines).toEqual([]);
  });

  it.each([
    ['without a role on it', 'other'],
    ['that is not there, of which Resource Manager tells no more', 'ohter'],
  ])('an entity %s leaves the facts unknown, with the right that is missing and where', async (_what, entity) => {
    const { facts } = await asked(entity);
    const scope = `${NAMESPACE}/queues/${entity}`;
    expect(facts).toEqual({
      from: 'none',
      forbidden: `it needs Microsoft.ServiceBus/namespaces/queues/read on ${scope} (Resource Manager answered 403, AuthorizationFailed)`,
    });
  });
});

describe('the way to the facts', () => {
  it('is Resource Manager before the administration interface', async () => {
    const settings = { DLO_RESOURCE_MANAGER_URL: local(), DLO_ADMINISTRATION_URL: local() };
    expect((await ask('plain', { settings, resourceId: NAMESPACE })).facts.from).toBe('resource-manager');
    expect((await ask('plain', { settings })).facts.from).toBe('administration');
  });

  it('is the administration interface when Resource Manager refuses, and the log says why', async () => {
    const error = { code: 'AuthorizationFailed', message: 'The client has no\nauthorization.' };
    const { url } = await serve((_, response) => response.writeHead(403).end(JSON.stringify({ error })));
    const settings = { DLO_RESOURCE_MANAGER_URL: url, DLO_ADMINISTRATION_URL: local() };
    const { facts, lines } = await ask('plain', { settings, resourceId: NAMESPACE });
    expect(facts).toMatchObject({ from: 'administration', duplicateDetection: false });
    expect(facts).not.toHaveProperty('forbidden');
    expect(lines).toEqual([
      `facts orders: nothing about "plain" from resource-manager: it needs Microsoft.ServiceBus/namespaces/queues/read on ${NAMESPACE}/queues/plain (Resource Manager answered 403, AuthorizationFailed)`,
    ]);
  });

  it('is none for an identity without a resource id, and nobody is asked', async () => {
    const settings = { Bus__fullyQualifiedNamespace: 'shop.servicebus.windows.net' };
    const { facts, lines } = await ask('plain', { settings });
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toEqual(['facts orders: its namespace has neither resourceId nor connection string']);
  });

  it('is not a guess about which emulator is meant', async () => {
    const { facts, lines } = await ask('plain', {});
    expect(facts).toEqual({ from: 'none' });
    expect(lines.join()).toContain('DLO_ADMINISTRATION_URL');
  });

  it('is not that of another namespace', async () => {
    const { url, asked } = await serve((_, response) => response.end());
    const settings = { DLO_RESOURCE_MANAGER_URL: url, Bus__fullyQualifiedNamespace: 'Other.servicebus.windows.net' };
    const { facts, lines } = await ask('plain', { settings, resourceId: NAMESPACE });
    expect(facts).toEqual({ from: 'none' });
    expect(lines.join()).toContain('namespace "shop", the connection leads to "other"');
    expect(asked).toEqual([]);
  });

  it('goes with a token that is none of the app’s on this machine', async () => {
    const { url, asked, tokens } = await serve((_, response) => response.end('{}'));
    await ask('team/x', { settings: { DLO_RESOURCE_MANAGER_URL: url }, resourceId: NAMESPACE });
    expect(asked).toEqual([`${NAMESPACE}/queues/team~x?api-version=2024-01-01`]);
    expect(tokens).toEqual(['Bearer local']);
  });
});

describe('settings', () => {
  it.each([
    ['DLO_RESOURCE_MANAGER_URL', 'management.azure.com'],
    ['DLO_RESOURCE_MANAGER_URL', 'http://management.azure.com'],
    ['DLO_RESOURCE_MANAGER_URL', 'http://127.0.0.1.example.org'],
    ['DLO_RESOURCE_MANAGER_URL', 'https://management.azure.com/subscriptions'],
    ['DLO_RESOURCE_MANAGER_URL', 'https://user:secret@management.azure.com'],
    ['DLO_ADMINISTRATION_URL', 'ftp://127.0.0.1'],
    ['DLO_ADMINISTRATION_URL', ''],
  ])('that would send requests to a wrong place are refused: %s %s', (name, value) => {
    const create = () => createFactReader({ settings: { [name]: value }, log: () => {} });
    expect(create).toThrow(expect.objectContaining({ code: 'DLO_SETTINGS_INVALID' }));
    expect(create).toThrow(name);
  });

  it.each(['https://management.usgovcloudapi.net', 'https://management.chinacloudapi.cn/', 'http://[::1]:5300'])(
    'may name another cloud: %s',
    (url) => {
      expect(() => createFactReader({ settings: { DLO_RESOURCE_MANAGER_URL: url }, log: () => {} })).not.toThrow();
    },
  );
});

describe('an administration interface that', () => {
  it('refuses the key leaves the facts unknown; the log has no secret', async () => {
    const settings = { Bus: broker.connectionStringWith('listener'), DLO_ADMINISTRATION_URL: local() };
    const { facts, lines } = await ask('plain', { settings });
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain("'Manage' is required");
    expect(lines[0]).not.toContain('bGlzdGVu');
  });

  it('is asked with a ready signature leaves the facts unknown', async () => {
    const Bus =
      'Endpoint=sb://127.0.0.1:1;SharedAccessSignature=SharedAccessSignature sr=x&sig=y;UseDevelopmentEmulator=true';
    const { facts, lines } = await ask('plain', { settings: { Bus, DLO_ADMINISTRATION_URL: local() } });
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toHaveLength(1);
  });
});

const resource = (properties: unknown, name = 'plain') => JSON.stringify({ name, properties });
const failure = (code: string, message = '') => JSON.stringify({ error: { code, message } });
const huge = resource({ status: 'Active', requiresDuplicateDetection: false, pad: 'x'.repeat(1_000_000) });
const entry = (xml: string) =>
  `<entry xmlns="http://www.w3.org/2005/Atom"><id>https://x/plain</id><content type="application/xml">${xml}</content></entry>`;

describe('an answer that is none', () => {
  it.each([
    ['HTML', 200, '<!doctype html><html><body>Sign in</body></html>'],
    ['HTML', 404, '<html>Not found</html>'],
    ['nothing', 200, ''],
    ['nothing', 404, ''],
    ['nothing', 503, ''],
    ['half of one', 200, '{"name":"plain","properties":{"status":'],
    ['null', 200, 'null'],
    ['a list', 200, '[]'],
    ['without properties', 200, '{"name":"plain"}'],
    ['of wrong types', 200, resource({ status: 'Active', requiresDuplicateDetection: 'false' })],
    ['about another entity', 200, resource({ status: 'Active', requiresDuplicateDetection: false }, 'other')],
    ['about a missing group', 404, failure('ResourceGroupNotFound')],
    [
      'about a missing namespace',
      404,
      failure('ResourceNotFound', `The Resource 'Microsoft.ServiceBus/namespaces/shop' was not found.`),
    ],
    ['about too many requests', 429, failure('TooManyRequests')],
  ])('from Resource Manager leaves the facts unknown: %s, %i', async (_, status, body) => {
    const { url } = await serve((__, response) => response.writeHead(status).end(body));
    const settings = { Bus__fullyQualifiedNamespace: 'localhost', DLO_RESOURCE_MANAGER_URL: url };
    const { facts, lines } = await ask('plain', { settings, resourceId: NAMESPACE });
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toHaveLength(1);
    expect(lines[0]?.length).toBeLessThan(500);
  });

  it('from Resource Manager is not sought elsewhere: a redirect would take the token along', async () => {
    const other = await serve((_, response) => response.end(resource({})));
    const { url } = await serve((_, response) => response.writeHead(307, { location: other.url }).end());
    const settings = { Bus__fullyQualifiedNamespace: 'localhost', DLO_RESOURCE_MANAGER_URL: url };
    expect((await ask('plain', { settings, resourceId: NAMESPACE })).facts).toEqual({ from: 'none' });
    expect(other.asked).toEqual([]);
  });

  it.each([
    ['HTML', 200, '<!doctype html><html><body>Sign in</body></html>'],
    ['HTML', 404, '<html><body>Not found</body></html>'],
    ['nothing', 200, ''],
    ['nothing', 404, ''],
    ['JSON', 200, resource({ status: 'Active', requiresDuplicateDetection: false })],
    ['half of one', 200, '<entry><content>'],
    ['an entry of something else', 200, entry('<RuleDescription><Name>x</Name></RuleDescription>')],
    ['an empty entry', 200, entry('')],
    ['of wrong types', 200, entry('<QueueDescription><LockDuration>soon</LockDuration></QueueDescription>')],
    ['trouble', 500, '<Error><Code>500</Code><Detail>x</Detail></Error>'],
    ['busy', 503, ''],
  ])('from administration leaves the facts unknown: %s, %i', async (_, status, body) => {
    const { url } = await serve((__, response) => response.writeHead(status).end(body));
    const { facts, lines } = await ask('plain', { settings: { DLO_ADMINISTRATION_URL: url } });
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain('SharedAccess');
  });

  it.each(FROM)('from %s is not read to its end when it is huge', async (from) => {
    const { url } = await serve((_, response) => response.end(huge));
    const settings = { DLO_RESOURCE_MANAGER_URL: url, DLO_ADMINISTRATION_URL: url };
    const resourceId = from === 'resource-manager' ? NAMESPACE : undefined;
    const { facts, lines } = await ask('plain', { settings, resourceId });
    expect(facts).toEqual({ from: 'none' });
    expect(lines[0]).toContain(`from ${from}: the answer is longer than`);
  });

  it('but an empty feed, which is how Azure says that an entity is missing', async () => {
    const feed = '<feed xmlns="http://www.w3.org/2005/Atom"><title type="text">Publicly Listed Services</title></feed>';
    const { url } = await serve((_, response) => response.end(feed));
    const { facts } = await ask('plain', { settings: { DLO_ADMINISTRATION_URL: url } });
    expect(facts).toEqual({ from: 'administration', status: 'missing' });
  });
});

describe('the broker of the office', () => {
  it('reads facts by the same settings', async () => {
    const settings = { Bus: broker.connectionString, DLO_ADMINISTRATION_URL: local() };
    const owner = { team: 'shop', contact: 'shop@example.org' };
    const sources = [{ name: 'plain', queue: 'plain', mode: 'defer', owner }];
    const namespaces = { main: { connection: 'Bus' } };
    const [source] = parseCatalog({ version: 1, office: 'test', namespaces, sources }, settings).sources;
    if (source === undefined) throw new Error('a catalog with one entry has one source');
    const office = createServiceBus({ settings, clock: Date.now, log: () => {} });
    expect(await office.facts(source, 'plain')).toMatchObject({ from: 'administration', lockDuration: 30_000 });
    await office.close();
  });
});

describe('no answer', () => {
  it('is waited for no longer than the time there is, from both together', async () => {
    const silent = await serve(() => {});
    const settings = { DLO_RESOURCE_MANAGER_URL: silent.url, DLO_ADMINISTRATION_URL: silent.url };
    const began = performance.now();
    const { facts, lines } = await ask('plain', { settings, resourceId: NAMESPACE, timeoutMs: 1_000 });
    expect(performance.now() - began).toBeLessThan(2_000);
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toEqual([
      expect.stringContaining('resource-manager: there was no answer in time'),
      expect.stringContaining('administration: there was no answer in time'),
    ]);
  });

  it('leaves time for the other way', async () => {
    const silent = await serve((_, response) => response.writeHead(200).write('{'));
    const settings = { DLO_RESOURCE_MANAGER_URL: silent.url, DLO_ADMINISTRATION_URL: local() };
    const { facts } = await ask('plain', { settings, resourceId: NAMESPACE, timeoutMs: 4_000 });
    expect(facts.from).toBe('administration');
  });

  it('comes from a server that is not there', async () => {
    const url = 'http://127.0.0.1:1';
    const settings = { DLO_RESOURCE_MANAGER_URL: url, DLO_ADMINISTRATION_URL: url };
    const { facts, lines } = await ask('plain', { settings, resourceId: NAMESPACE });
    expect(facts).toEqual({ from: 'none' });
    expect(lines).toHaveLength(2);
  });
});

describe('the count of dead letters', () => {
  /** Counts as a new office does, one pass after the other. */
  function counter(entry: Record<string, unknown>, settings: Settings, resourceId?: string) {
    const all = { Bus: broker.connectionString, ...settings };
    const owner = { team: 'shop', contact: 'shop@example.org' };
    const sources = [{ name: 'orders', mode: 'observe', owner, ...entry }];
    const namespace = { connection: 'Bus', ...(resourceId !== undefined && { resourceId }) };
    const catalog = parseCatalog({ version: 1, office: 'test', namespaces: { main: namespace }, sources }, all);
    const lines: string[] = [];
    const { count } = createReaders({ settings: all, log: (line) => lines.push(line) });
    let asked = 0;
    const [source] = catalog.sources;
    if (source === undefined) throw new Error('a catalog with one entry has one source');
    return { lines, asked: () => asked, next: () => count(source, () => asked++) };
  }
  const here = () => ({ DLO_ADMINISTRATION_URL: local() });

  it.each<[string, Record<string, unknown>]>([
    ['queue', { queue: 'team/careful' }],
    ['subscription', { topic: 'events', subscription: 'billing' }],
  ])('of a %s is read by either interface, with one request', async (_kind, entry) => {
    const ways = [
      counter(entry, here()),
      counter(
        entry,
        { DLO_RESOURCE_MANAGER_URL: local(), Bus: undefined, Bus__fullyQualifiedNamespace: 'localhost' },
        NAMESPACE,
      ),
    ];
    for (const way of ways) {
      expect([await way.next(), way.asked(), way.lines]).toEqual([{ count: 0 }, 1, []]);
    }
  });

  it('that is refused is absent and says why, once, and is not asked for again with every pass', async () => {
    const server = await serve((_request, response) => response.writeHead(403).end('{}'));
    const settings = {
      DLO_RESOURCE_MANAGER_URL: server.url,
      Bus: undefined,
      Bus__fullyQualifiedNamespace: 'localhost',
    };
    const refused = counter({ queue: 'plain' }, settings, NAMESPACE);
    const right = `Microsoft.ServiceBus/namespaces/queues/read on ${NAMESPACE}/queues/plain`;
    const unread = {
      unread: `nothing from resource-manager: it needs ${right} (Resource Manager answered 403, no reason)`,
    };
    expect([await refused.next(), await refused.next(), await refused.next()]).toEqual([unread, unread, unread]);
    expect([refused.asked(), server.asked.length, refused.lines.length]).toEqual([1, 1, 1]);

    const nowhere = counter({ queue: 'plain' }, { Bus: undefined, Bus__fullyQualifiedNamespace: 'localhost' });
    expect(await nowhere.next()).toEqual({ unread: 'its namespace has neither resourceId nor connection string' });
    expect(nowhere.asked()).toBe(0);
  });

  it('is read by the other interface from the next pass on, and stays with what answers', async () => {
    const server = await serve((_request, response) => response.writeHead(403).end('{}'));
    const both = counter({ queue: 'plain' }, { ...here(), DLO_RESOURCE_MANAGER_URL: server.url }, NAMESPACE);
    expect(await both.next()).toHaveProperty('unread');
    expect([await both.next(), await both.next()]).toEqual([{ count: 0 }, { count: 0 }]);
    expect([both.asked(), server.asked.length]).toEqual([3, 1]);
  });
});
