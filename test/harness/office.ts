/** The whole office on local parts: broker in this process, storage in its own, the app in the host in a child process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ServiceBusClient } from '@azure/service-bus';
import { parseConfig, type RunningBroker, startBroker } from '../../local/broker/index.ts';
import { keysByRight, type RightKeys } from '../../local/rights.ts';
import type { Right } from '../../shared/http/route.ts';
import { type Answer, type OfficeProcess, startOfficeProcess } from './host.ts';
import { takeStorage } from './storage.ts';

type Json = Record<string, unknown>;

export interface TestOfficeOptions {
  /** Queues beside those that the sources name, with their properties in the emulator's words. */
  queues?: Record<string, Json>;
  topics?: Record<string, Record<string, Json>>;
  /** Entries of the catalog; what they leave out is filled in with what a test needs. */
  sources?: Json[];
  settings?: Record<string, string>;
  /** Default `functions/index.ts`. */
  entry?: string;
  root?: string;
  /** Path of the Node.js that the app runs on, and its own options. */
  node?: string;
  nodeOptions?: string[];
  /** Connection string of the store; a fresh account by default. */
  storage?: string;
  /** Another broker, already running. */
  broker?: RunningBroker;
  /** Whether the office may ask the broker's administration interface. Default no: facts come from the catalog alone. */
  administration?: boolean;
  /** Further fields of the catalog. */
  catalog?: Json;
}

/** What is known of a plan in its JSON view. */
export interface PlanJson {
  id: string;
  action: 'replay' | 'discard';
  state: string;
  stateReason: string | null;
  counts: Record<'planned' | 'pending' | 'done' | 'skipped' | 'failed' | 'left' | 'maybeDuplicate', number>;
  findings: { code: string; level: string; letters: number; message: string }[];
  returned: number;
  target: string | null;
}

export interface LetterJson {
  sequenceNumber: string;
  messageId: string | null;
  reason: string | null;
  category: string;
  advice: string;
  replayCount: number;
  replayId: string | null;
  fate: { fate: string; planId: string | null } | null;
  properties: { name: string; type: string; value: unknown }[];
  history: { sequenceNumber: string; fate: { planId: string } | null }[];
  [field: string]: unknown;
}

/** Facts of a queue that the office can replay to. */
export const PLAIN = {
  duplicateDetection: false,
  requiresSession: false,
  deadLettersOnExpiry: true,
  lockDuration: 'PT1M',
};

/** So much that no test waits for its turn. */
const NAMESPACE = { connection: 'ServiceBusConnection', operationsPerSecond: 100_000 };

export class TestOffice {
  readonly broker: RunningBroker;
  readonly client: ServiceBusClient;
  readonly keys: RightKeys;
  readonly storage: string;
  /** App settings that it was started with. */
  readonly settings: Readonly<Record<string, string>>;
  process: OfficeProcess;
  readonly #start: () => Promise<OfficeProcess>;
  readonly #close: () => Promise<void>;

  constructor(parts: {
    broker: RunningBroker;
    client: ServiceBusClient;
    keys: RightKeys;
    storage: string;
    settings: Readonly<Record<string, string>>;
    process: OfficeProcess;
    start: () => Promise<OfficeProcess>;
    close: () => Promise<void>;
  }) {
    this.broker = parts.broker;
    this.client = parts.client;
    this.keys = parts.keys;
    this.storage = parts.storage;
    this.settings = parts.settings;
    this.process = parts.process;
    this.#start = parts.start;
    this.#close = parts.close;
  }

  call(
    right: Right,
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const key = right === 'probe' ? {} : { key: this.keys[right] };
    return this.process.call(method, `/api/${path}`, {
      ...key,
      headers: { 'x-operator': 'test', ...headers },
      ...(body !== undefined && { body }),
    });
  }

  /** A call that has to succeed. */
  async get<Result>(path: string): Promise<Result> {
    const answer = await this.call('read', 'GET', path);
    if (answer.status !== 200) throw new Error(`GET ${path}: ${answer.status} ${answer.text}`);
    return answer.json as Result;
  }

  async post<Result>(path: string, body?: unknown, right: Right = 'replay', headers = {}): Promise<Result> {
    const answer = await this.call(right, 'POST', path, body, headers);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
    return answer.json as Result;
  }

  async letters(source = 'orders', query = ''): Promise<LetterJson[]> {
    return (await this.get<{ letters: LetterJson[] }>(`sources/${source}/letters?top=500${query}`)).letters;
  }

  letter(number: string, source = 'orders'): Promise<LetterJson> {
    return this.get<LetterJson>(`sources/${source}/letters/${number}`);
  }

  collect(source = 'orders'): Promise<{ collected: number; open: number }> {
    return this.post(`sources/${source}/collect`, {}, 'read');
  }

  plan(body: unknown = {}, source = 'orders'): Promise<PlanJson> {
    return this.post<PlanJson>(`sources/${source}/plans`, body);
  }

  getPlan(id: string): Promise<PlanJson> {
    return this.get<PlanJson>(`plans/${id}`);
  }

  /** Starts a plan and waits for its end, in the call and then by asking. */
  async run(plan: PlanJson, wait = 20): Promise<PlanJson> {
    const path = `plans/${plan.id}/run`;
    const started = await this.post<PlanJson>(path, { confirm: plan.counts.pending, ramp: false }, 'replay', {
      prefer: `wait=${wait}`,
    });
    return started.state === 'finished' ? this.getPlan(plan.id) : this.finished(plan.id);
  }

  /** The plan once it has reached one of `states`. */
  async finished(id: string, states: readonly string[] = ['finished']): Promise<PlanJson> {
    return until(
      async () => {
        const plan = await this.getPlan(id);
        return states.includes(plan.state) ? plan : undefined;
      },
      `plan ${id} to be ${states.join(' or ')}`,
    );
  }

  /** Sends messages with the official client. */
  async send(
    queue: string,
    ...messages: Parameters<ReturnType<ServiceBusClient['createSender']>['sendMessages']>[0][]
  ) {
    const sender = this.client.createSender(queue);
    try {
      for (const message of messages) await sender.sendMessages(message);
    } finally {
      await sender.close();
    }
  }

  /** Dead-letters everything that is active in a queue, as a consumer would. */
  async deadLetterAll(
    queue: string,
    reason = 'UnsupportedCurrency',
    description = 'no such currency',
  ): Promise<number> {
    const receiver = this.client.createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 });
    let count = 0;
    try {
      const due = this.broker.messages(queue).filter(({ state }) => state === 'active').length;
      while (count < due) {
        const messages = await receiver.receiveMessages(Math.min(due - count, 200), { maxWaitTimeInMs: 5000 });
        if (messages.length === 0) break;
        for (const message of messages) {
          await receiver.deadLetterMessage(message, {
            deadLetterReason: reason,
            deadLetterErrorDescription: description,
          });
          count++;
        }
      }
    } finally {
      await receiver.close();
    }
    return count;
  }

  /** Puts `count` letters into the DLQ of a queue and waits until the office holds them. */
  async deadLetters(count: number, queue = 'orders', source = queue): Promise<LetterJson[]> {
    const before = (await this.letters(source)).length;
    const bodies = Array.from({ length: count }, (_, i) => ({ messageId: `m-${before + i}`, body: { order: i } }));
    for (let i = 0; i < bodies.length; i += 100) await this.send(queue, bodies.slice(i, i + 100));
    await this.deadLetterAll(queue);
    return this.held(before + count, queue, source);
  }

  /** Collects until the office has recorded and set aside `count` letters. */
  async held(count: number, queue = 'orders', source = queue): Promise<LetterJson[]> {
    return until(async () => {
      await this.collect(source);
      const held = this.broker.messages(`${queue}/$DeadLetterQueue`).filter(({ state }) => state === 'deferred').length;
      const letters = await this.letters(source);
      return held >= count && letters.length >= Math.min(count, 500) ? letters : undefined;
    }, `${count} letters of ${source} to be held`);
  }

  /** A crash: the process ends at once, broker and storage live on. */
  async kill(): Promise<void> {
    await this.process.kill();
  }

  /** Starts the office again after a crash. */
  async restart(): Promise<void> {
    this.process = await this.#start();
  }

  async close(): Promise<void> {
    await this.#close();
  }
}

/** Opens an office on a broker with one queue a source (and `queues`), named like the source unless the entry says otherwise. */
export async function openTestOffice(options: TestOfficeOptions = {}): Promise<TestOffice> {
  const entries = options.sources ?? [{ name: 'orders' }];
  const sources: Json[] = entries.map((entry) => ({
    mode: 'defer',
    owner: { team: 'test', contact: 'test@example.org' },
    entity: PLAIN,
    ...('topic' in entry ? {} : { queue: entry.name }),
    ...entry,
  }));
  const queues: Record<string, Json> = {};
  for (const source of sources) if (typeof source.queue === 'string') queues[source.queue] = {};
  Object.assign(queues, options.queues);
  const broker = options.broker ?? (await startBroker({ config: brokerConfig(queues, options.topics ?? {}) }));
  const storage = options.storage ?? (await takeStorage());
  const folder = await mkdtemp(join(tmpdir(), 'office-'));
  const catalog = { version: 1, office: 'test', namespaces: { main: NAMESPACE }, sources };
  const file = join(folder, 'catalog.json');
  await writeFile(file, JSON.stringify({ ...catalog, ...options.catalog }));
  const { rights, host } = keysByRight();
  const settings = {
    ServiceBusConnection: broker.connectionString,
    AzureWebJobsStorage: storage,
    DLO_CATALOG: file,
    DLO_LEASE_SECONDS: '2',
    DLO_RETRY_SECONDS: '1',
    DLO_SEND_TIMEOUT_SECONDS: '1',
    DLO_COLLECT_WAIT_SECONDS: '0.2',
    ...(options.administration && { DLO_ADMINISTRATION_URL: `http://127.0.0.1:${broker.adminPort}` }),
    ...options.settings,
  };
  const start = () =>
    startOfficeProcess({
      settings,
      keys: host,
      timers: false,
      ...(options.entry !== undefined && { entry: options.entry }),
      ...(options.root !== undefined && { root: options.root }),
      ...(options.node !== undefined && { node: options.node }),
      ...(options.nodeOptions !== undefined && { nodeOptions: options.nodeOptions }),
    });
  const process = await start();
  const client = new ServiceBusClient(broker.connectionString, {
    retryOptions: { maxRetries: 0, timeoutInMs: 10_000 },
  });
  const office: TestOffice = new TestOffice({
    broker,
    client,
    keys: rights,
    storage,
    settings,
    process,
    start,
    close: async () => {
      await office.process.stop();
      await client.close();
      if (options.broker === undefined) await broker.close();
      await rm(folder, { recursive: true, force: true });
    },
  });
  return office;
}

/** A broker's configuration in the emulator's format. */
export function brokerConfig(queues: Record<string, Json>, topics: Record<string, Record<string, Json>> = {}) {
  const properties = { LockDuration: 'PT1M', MaxDeliveryCount: 3 };
  return parseConfig({
    UserConfig: {
      Namespaces: [
        {
          Name: 'sbemulatorns',
          Queues: Object.entries(queues).map(([Name, more]) => ({ Name, Properties: { ...properties, ...more } })),
          Topics: Object.entries(topics).map(([Name, subscriptions]) => ({
            Name,
            Subscriptions: Object.entries(subscriptions).map(([subscription, { Rules, ...more }]) => ({
              Name: subscription,
              Properties: { ...properties, ...more },
              ...(Rules !== undefined && { Rules }),
            })),
          })),
        },
      ],
      Logging: { Type: 'Console' },
    },
  });
}

/** Waits for a condition, and says what it waited for when it does not come. */
export async function until<Value>(
  probe: () => Promise<Value | undefined> | Value | undefined,
  what: string,
  timeoutMs = 20_000,
): Promise<Value> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > end) throw new Error(`waited ${timeoutMs} ms for ${what}`);
    await delay(25);
  }
}
