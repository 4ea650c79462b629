/** What the replay bench plays on: broker, storage and office, each in a process of its own, and letters in the broker. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ServiceBusClient } from '@azure/service-bus';
import { type Azurite, startAzurite } from '../../../local/azurite.ts';
import { keysByRight } from '../../../local/rights.ts';
import { withHeap } from '../../harness/heap.ts';
import { type OfficeProcess, startOfficeProcess } from '../../harness/host.ts';
import type { Question } from './child.ts';
import { type CpuTimes, cpuTimes } from './cpu.ts';
import { type Distance, openDistance } from './distance.ts';

/** Heap of the storage, megabytes: it keeps everything in memory, several kilobytes a row. */
const STORAGE_HEAP = 8192;
/** So much that the office never waits for a turn, as the client it is compared with does not. */
const OPERATIONS_PER_SECOND = 100_000;
/** Messages in one send when a queue is filled. */
const FILL = 200;

/** What is known of a plan in its JSON view. */
export interface PlanView {
  readonly id: string;
  readonly state: string;
  readonly counts: { readonly pending: number; readonly done: number };
}

export class Stage {
  /** One connection of the official client. */
  readonly client: ServiceBusClient;
  readonly azurite: Azurite;
  readonly #broker: ChildProcess;
  readonly #connectionString: string;
  readonly #folder: string;
  readonly #sources: readonly string[];
  readonly #distances: Distance[] = [];

  private constructor(
    parts: { broker: ChildProcess; connectionString: string; azurite: Azurite; folder: string },
    sources: readonly string[],
  ) {
    this.#broker = parts.broker;
    this.#connectionString = parts.connectionString;
    this.azurite = parts.azurite;
    this.#folder = parts.folder;
    this.#sources = sources;
    this.client = new ServiceBusClient(parts.connectionString, { retryOptions: { maxRetries: 0 } });
  }

  /** Starts broker and storage. `sources` are queues that the office manages, `others` those that it knows nothing of. */
  static async open(sources: readonly string[], others: readonly string[]): Promise<Stage> {
    const azurite = await withHeap(STORAGE_HEAP, () => startAzurite({ accounts: 8 }));
    const broker = fork(join(import.meta.dirname, 'child.ts'), [...sources, ...others], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const ended = once(broker, 'exit').then((): never => {
      throw new Error('the broker ended before it was open');
    });
    const [connectionString] = await Promise.race([once(broker, 'message'), ended]);
    ended.catch(() => {}); // from now on that is how it closes
    const folder = await mkdtemp(join(tmpdir(), 'bench-'));
    return new Stage({ broker, connectionString: String(connectionString), azurite, folder }, sources);
  }

  /** A client of its own, `ms` away from the broker in each direction. */
  async farClient(ms: number): Promise<ServiceBusClient> {
    return new ServiceBusClient(await this.#from(ms, this.#connectionString), { retryOptions: { maxRetries: 0 } });
  }

  /** Opens an office with a store of its own, `ms` away from broker and storage in each direction. */
  async office(ms = 0): Promise<BenchOffice> {
    const file = join(this.#folder, 'catalog.json');
    await writeFile(file, JSON.stringify(catalogOf(this.#sources)));
    const { rights, host } = keysByRight();
    const settings = {
      ServiceBusConnection: await this.#from(ms, this.#connectionString),
      AzureWebJobsStorage: await this.#from(ms, this.azurite.takeAccount().connectionString),
      DLO_CATALOG: file,
      DLO_COLLECT_WAIT_SECONDS: '0.2',
    };
    const app = await startOfficeProcess({ settings, keys: host, timers: false });
    return new BenchOffice(app, rights.replay, rights.read);
  }

  /** Puts `count` letters into the dead-letter queue of each of `queues`: sent, and expired there. */
  async fill(queues: readonly string[], count: number): Promise<void> {
    for (const queue of queues) {
      const sender = this.client.createSender(queue);
      for (let sent = 0; sent < count; sent += FILL) {
        await sender.sendMessages(Array.from({ length: Math.min(FILL, count - sent) }, (_, i) => aMessage(sent + i)));
      }
      await sender.close();
    }
    await this.#ask({ ask: 'expire' });
    for (const queue of queues) {
      const there = await this.letters(queue);
      if (there.length === count) continue;
      throw new Error(`${there.length} letters are in the dead-letter queue of ${queue}, not ${count}`);
    }
  }

  /** Empties a queue and its dead-letter queue. */
  async empty(queue: string): Promise<void> {
    await this.#ask({ ask: 'recreate', queue });
  }

  /** The numbers of the letters in the dead-letter queue of `queue`, ascending. */
  letters(queue: string): Promise<string[]> {
    return this.#ask({ ask: 'numbers', path: `${queue}/$DeadLetterQueue` });
  }

  /** CPU time that all have used until now. */
  cpu(office: BenchOffice): CpuTimes {
    return cpuTimes(office.pid, this.#broker.pid);
  }

  async close(): Promise<void> {
    await this.client.close();
    for (const distance of this.#distances) await distance.close();
    const ended = once(this.#broker, 'exit');
    this.#broker.disconnect();
    await ended;
    await this.azurite.stop();
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** A connection string whose ports are that far away. */
  async #from(ms: number, connectionString: string): Promise<string> {
    if (ms === 0) return connectionString;
    let text = connectionString;
    for (const [, port = ''] of connectionString.matchAll(/127\.0\.0\.1:(\d+)/g)) {
      const distance = await openDistance(Number(port), ms);
      this.#distances.push(distance);
      text = text.replace(`127.0.0.1:${port}`, `127.0.0.1:${distance.port}`);
    }
    return text;
  }

  async #ask(question: Question): Promise<string[]> {
    const answered = once(this.#broker, 'message') as Promise<[string[]]>;
    this.#broker.send(question);
    return (await answered)[0];
  }
}

/** An office in its own process, asked over HTTP as an operator does. */
export class BenchOffice {
  readonly #app: OfficeProcess;
  readonly #replayKey: string;
  readonly #readKey: string;

  constructor(app: OfficeProcess, replayKey: string, readKey: string) {
    this.#app = app;
    this.#replayKey = replayKey;
    this.#readKey = readKey;
  }

  get pid(): number | undefined {
    return this.#app.process.pid;
  }

  /** One collecting pass; how many letters it held. */
  async collect(source: string): Promise<number> {
    const { collected } = await this.#post<{ collected: number }>(`sources/${source}/collect`, {}, this.#readKey);
    return collected;
  }

  /** Passes until `count` letters are held. */
  async collectAll(source: string, count: number): Promise<void> {
    for (let held = 0; held < count; ) {
      const more = await this.collect(source);
      if (more === 0) throw new Error(`only ${held} of ${count} letters were collected`);
      held += more;
    }
  }

  /** Records all letters that are held and not known to it. */
  async reconcile(): Promise<void> {
    await this.#app.run('reconcile');
  }

  /** A plan over `count` letters, ready to be run. */
  async plan(source: string, selection: unknown, count: number): Promise<PlanView> {
    let plan = await this.#post<PlanView>(`sources/${source}/plans`, { selection }, this.#replayKey);
    while (plan.state === 'preparing') plan = await this.#again(plan);
    if (plan.state !== 'ready' || plan.counts.pending !== count) throw new Error(`a plan is ${JSON.stringify(plan)}`);
    return plan;
  }

  /** Runs a plan to its end, at full speed. */
  async run(ready: PlanView): Promise<void> {
    const { pending } = ready.counts;
    const body = { confirm: pending, ramp: false };
    let plan = await this.#post<PlanView>(`plans/${ready.id}/run`, body, this.#replayKey, { prefer: 'wait=60' });
    while (plan.state === 'running') plan = await this.#again(plan);
    if (plan.state !== 'finished' || plan.counts.done !== pending) throw new Error(`a run is ${JSON.stringify(plan)}`);
  }

  /** The most memory it has had since {@link forgetPeak}, bytes. Linux tells it of every process. */
  async peakMemory(): Promise<number> {
    const status = await readFile(`/proc/${this.#app.process.pid}/status`, 'utf8');
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(status) ?? [];
    if (kilobytes === undefined) throw new Error('this system does not tell the peak memory of a process');
    return Number(kilobytes) * 1024;
  }

  /** Lets the peak begin anew at what it has now. */
  async forgetPeak(): Promise<void> {
    await writeFile(`/proc/${this.#app.process.pid}/clear_refs`, '5');
  }

  async close(): Promise<void> {
    await this.#app.stop();
  }

  async #again({ id }: PlanView): Promise<PlanView> {
    const answer = await this.#app.call('GET', `/api/plans/${id}`, { key: this.#readKey });
    return answer.json as PlanView;
  }

  async #post<Result>(path: string, body: unknown, key: string, headers: Record<string, string> = {}): Promise<Result> {
    const options = { key, body, headers: { 'x-operator': 'bench', ...headers } };
    const answer = await this.#app.call('POST', `/api/${path}`, options);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${answer.text}\n${this.#app.log()}`);
    return answer.json as Result;
  }
}

function catalogOf(sources: readonly string[]): unknown {
  return {
    version: 1,
    office: 'bench',
    namespaces: { main: { connection: 'ServiceBusConnection', operationsPerSecond: OPERATIONS_PER_SECOND } },
    sources: sources.map((name) => ({
      name,
      queue: name,
      mode: 'defer',
      trigger: false,
      owner: { team: 'bench', contact: 'bench@example.org' },
      entity: {
        lockDuration: 'PT5M',
        maxDeliveryCount: 10,
        duplicateDetection: false,
        requiresSession: false,
        deadLettersOnExpiry: true,
      },
    })),
  };
}

/** An order as services send it: about half a kilobyte, with what tracing and routing add. */
function aMessage(number: number) {
  return {
    messageId: `order-${number}`,
    correlationId: `correlation-${number}`,
    subject: 'OrderPlaced',
    contentType: 'application/json',
    body: { order: number, customer: `c-${number % 997}`, currency: 'EUR', note: 'x'.repeat(160) },
    applicationProperties: {
      tenant: `t-${number % 7}`,
      attempt: 3,
      amount: 12.5,
      urgent: false,
      traceparent: `00-${'ab'.repeat(16)}-${'cd'.repeat(8)}-01`,
    },
  };
}
