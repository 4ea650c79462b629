/**
 * A storage account behind a proxy that understands HTTP: it fails a seeded share of the calls the way Azure Storage does, or
 * stops at a chosen write. A client that tries again is recognised by its request id, so that a call can fail as a whole.
 */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Dice } from './dice.ts';

/** What happens to a call. */
export const TROUBLES = [
  /** 503 to every try; nothing is done. */
  'busy',
  /** 503 to the first try. */
  'busy-once',
  /** 412: the row is said to have changed. Only for conditional writes. */
  'conflict',
  /** The connection is cut before anything is done, at every try. */
  'cut-before',
  /** It is done, and the connection is cut at every try. */
  'cut-after',
  /** It is done, the answer is lost, and the next try finds what it did itself. Only for writes to tables. */
  'answer-lost',
  /** A page without rows that has a continuation. Only for table queries. */
  'empty-page',
  /** A page with one row. Only for table queries. */
  'short-page',
] as const;
export type Trouble = (typeof TROUBLES)[number];

/** A write at which the proxy stops: it is done or not, and no answer comes until the client is gone. */
export interface Stop {
  readonly hit: Promise<void>;
  /** Gives it up, if it has not been hit. */
  remove(): void;
}

/** Trouble for one chosen call. */
export interface Strike {
  readonly isHit: boolean;
}

export interface StoreProxy {
  /** The connection string of the account, through the proxy. */
  readonly connectionString: string;
  /** Calls that were given trouble, by kind. */
  readonly troubles: Readonly<Record<Trouble, number>>;
  /** Calls of all kinds, each counted once however often it was tried. */
  readonly calls: number;
  /** From now on that share of calls has trouble. */
  fail(share: number): void;
  /** Gives `trouble` to the next call of `method` (`GET` or any write) to `service` whose path or body has `text` in it. */
  strike(trouble: Trouble, method: 'GET' | 'write', text: string, service?: 'table' | 'blob'): Strike;
  /** From now on every write to the tables whose body has `text` in it is refused for good with `status`; `undefined`: none. */
  refuseRows(text: string | undefined, status?: 400 | 413): void;
  /** From now on every call to the blobs is answered with 503, or none. */
  blobsOut(isOut: boolean): void;
  /** Stops at the table write after the next `skip` ones. */
  stopAt(skip: number, when: 'before' | 'after'): Stop;
  close(): Promise<void>;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly kind: 'table' | 'queue' | 'blob';
  readonly body: Buffer;
  readonly isWrite: boolean;
  readonly isConditional: boolean;
  readonly isQuery: boolean;
}

/** Opens a proxy to every endpoint that the connection string of a storage account names. It fails nothing until it is told. */
export async function openStoreProxy(connectionString: string, seed: number): Promise<StoreProxy> {
  const proxy = new Account(new Dice(seed));
  const endpoints = [...connectionString.matchAll(/(Blob|Queue|Table)Endpoint=http:\/\/127\.0\.0\.1:(\d+)/g)];
  let through = connectionString;
  for (const [text = '', service, port] of endpoints) {
    const kind = service === 'Table' ? 'table' : service === 'Queue' ? 'queue' : 'blob';
    const own = await proxy.listen(kind, Number(port));
    through = through.replace(text, text.replace(`:${port}`, `:${own}`));
  }
  return {
    connectionString: through,
    troubles: proxy.troubles,
    get calls() {
      return proxy.calls;
    },
    fail: (share) => {
      proxy.share = share;
    },
    strike: (trouble, method, text, service = 'table') => proxy.strike(trouble, method, text, service),
    refuseRows: (text, status = 400) => {
      proxy.refused = text === undefined ? undefined : { text, status };
    },
    blobsOut: (isOut) => {
      proxy.isBlobOut = isOut;
    },
    stopAt: (skip, when) => proxy.stopAt(skip, when),
    close: () => proxy.close(),
  };
}

interface ArmedStrike {
  readonly trouble: Trouble;
  readonly method: 'GET' | 'write';
  readonly text: string;
  readonly service: 'table' | 'blob';
  isHit: boolean;
}

interface ArmedStop {
  skip: number;
  readonly when: 'before' | 'after';
  readonly hit: () => void;
}

class Account {
  share = 0;
  isBlobOut = false;
  refused: { readonly text: string; readonly status: 400 | 413 } | undefined;
  calls = 0;
  readonly troubles = Object.fromEntries(TROUBLES.map((trouble) => [trouble, 0])) as Record<Trouble, number>;
  readonly #dice: Dice;
  readonly #servers: Server[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #stops = new Set<ArmedStop>();
  readonly #strikes = new Set<ArmedStrike>();
  /** Trouble of calls that were tried already, by request id. */
  readonly #known = new Map<string, { trouble: Trouble | undefined; tries: number }>();
  /** Where the page begins that stands behind a continuation of ours. */
  readonly #pages = new Map<string, string>();

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  async listen(kind: Call['kind'], target: number): Promise<number> {
    const server = createServer((incoming, response) => {
      this.#serve(kind, target, incoming, response).catch(() => response.destroy());
    });
    server.keepAliveTimeout = 60_000;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.#servers.push(server);
    return (server.address() as AddressInfo).port;
  }

  strike(trouble: Trouble, method: 'GET' | 'write', text: string, service: 'table' | 'blob'): Strike {
    const strike = { trouble, method, text, service, isHit: false };
    this.#strikes.add(strike);
    return strike;
  }

  stopAt(skip: number, when: 'before' | 'after'): Stop {
    let hit = () => {};
    const promise = new Promise<void>((resolve) => {
      hit = resolve;
    });
    const stop: ArmedStop = { skip, when, hit };
    this.#stops.add(stop);
    return { hit: promise, remove: () => this.#stops.delete(stop) };
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    }
    this.#agent.destroy();
  }

  async #serve(kind: Call['kind'], port: number, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = describe(kind, incoming, await bodyOf(incoming));
    const stop = call.isWrite && call.kind === 'table' ? this.#stopFor() : undefined;
    if (stop !== undefined) {
      if (stop.when === 'after') await this.#forward(port, incoming, call.path, call.body);
      stop.hit();
      return;
    }
    if (kind === 'blob' && this.isBlobOut) return refuse(response, 503, 'ServerBusy');
    if (this.refused !== undefined && call.kind === 'table' && call.isWrite && call.body.includes(this.refused.text)) {
      const [code, { status }] = ['PropertyValueTooLarge', this.refused];
      // A transaction that is too large as a whole is not looked into.
      return status === 400 && call.path.includes('$batch')
        ? refuseBatch(response, '400 Bad Request', code)
        : refuse(response, status, code);
    }
    const { trouble, tries } = this.#troubleOf(call, String(incoming.headers['x-ms-client-request-id'] ?? ''));
    const path = this.#pathOf(call);
    switch (trouble) {
      case 'busy':
        return refuse(response, 503, 'ServerBusy');
      case 'busy-once':
        if (tries === 1) return refuse(response, 503, 'ServerBusy');
        break;
      case 'conflict':
        return call.path.includes('$batch')
          ? refuseBatch(response, '412 Precondition Failed', 'UpdateConditionNotSatisfied')
          : refuse(response, 412, 'UpdateConditionNotSatisfied');
      case 'cut-before':
        response.destroy();
        return;
      case 'cut-after':
        if (tries === 1) await this.#forward(port, incoming, path, call.body);
        response.destroy();
        return;
      case 'answer-lost':
        if (tries > 1) break;
        await this.#forward(port, incoming, path, call.body);
        response.destroy();
        return;
      case 'empty-page':
        return this.#emptyPage(response, path);
      case 'short-page':
        return answer(response, await this.#forward(port, incoming, withTop(path, 1), call.body));
    }
    answer(response, await this.#forward(port, incoming, path, call.body));
  }

  #stopFor(): ArmedStop | undefined {
    for (const stop of this.#stops) {
      if (stop.skip-- > 0) continue;
      this.#stops.delete(stop);
      return stop;
    }
    return undefined;
  }

  #troubleOf(call: Call, id: string): { trouble: Trouble | undefined; tries: number } {
    const known = this.#known.get(id);
    if (known !== undefined) {
      known.tries++;
      return known;
    }
    this.calls++;
    const trouble = this.#struckBy(call) ?? (this.#dice.chance(this.share) ? this.#choose(call) : undefined);
    if (trouble !== undefined) this.troubles[trouble]++;
    const fresh = { trouble, tries: 1 };
    if (id !== '') this.#known.set(id, fresh);
    return fresh;
  }

  #struckBy(call: Call): Trouble | undefined {
    for (const strike of this.#strikes) {
      if (call.kind !== strike.service || call.isWrite !== (strike.method === 'write')) continue;
      if (!call.path.includes(strike.text) && !call.body.includes(strike.text)) continue;
      this.#strikes.delete(strike);
      strike.isHit = true;
      return strike.trouble;
    }
    return undefined;
  }

  #choose(call: Call): Trouble {
    // A client tries three times: where only one try fails, the call does not. Some calls fail as a whole.
    if (this.#dice.chance(0.3)) return this.#dice.pick(['busy', 'cut-before', 'cut-after'] as const);
    const possible: [Trouble, ...Trouble[]] = ['busy-once'];
    if (call.isConditional) possible.push('conflict', 'conflict');
    if (call.kind === 'table' && call.isWrite) possible.push('answer-lost');
    if (call.isQuery) possible.push('empty-page', 'short-page');
    return this.#dice.pick(possible);
  }

  /** The path to ask for: a continuation of ours stands for the page that was kept back. */
  #pathOf({ path }: Call): string {
    const token = /[?&]NextPartitionKey=(proxy-\d+)/.exec(path)?.[1];
    return (token !== undefined && this.#pages.get(token)) || path;
  }

  #emptyPage(response: ServerResponse, path: string): void {
    const token = `proxy-${this.#pages.size}`;
    this.#pages.set(token, path);
    response.writeHead(200, {
      'content-type': 'application/json;odata=minimalmetadata',
      'x-ms-continuation-nextpartitionkey': token,
      'x-ms-continuation-nextrowkey': token,
    });
    response.end(JSON.stringify({ value: [] }));
  }

  #forward(port: number, incoming: IncomingMessage, path: string, body: Buffer): Promise<Kept> {
    return new Promise((resolve, reject) => {
      const { method = 'GET', headers } = incoming;
      const onward = request({ host: '127.0.0.1', port, method, path, headers, agent: this.#agent }, (answered) => {
        bodyOf(answered).then(
          (content) => resolve({ status: answered.statusCode ?? 502, headers: answered.headers, content }),
          reject,
        );
      });
      onward.on('error', reject);
      onward.end(body);
    });
  }
}

interface Kept {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly content: Buffer;
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function describe(kind: Call['kind'], incoming: IncomingMessage, body: Buffer): Call {
  const { method = 'GET', url = '/', headers } = incoming;
  const condition = headers['if-match'];
  const isBatch = url.includes('$batch');
  return {
    method,
    path: url,
    kind,
    body,
    isWrite: method !== 'GET' && method !== 'HEAD',
    isConditional:
      kind === 'table' &&
      ((condition !== undefined && condition !== '*') || (isBatch && /if-match: *W\//i.test(body.toString('latin1')))),
    isQuery: kind === 'table' && method === 'GET' && /\w+\(\)\?/.test(url),
  };
}

function withTop(path: string, top: number): string {
  const [before = '', query = ''] = path.split('?');
  const kept = query.split('&').filter((part) => !/^(\$|%24)top=/.test(part));
  return `${before}?${[...kept, `%24top=${top}`].join('&')}`;
}

function answer(response: ServerResponse, { status, headers, content }: Kept): void {
  const { connection: _own, 'transfer-encoding': _whole, ...rest } = headers;
  // The answer to a HEAD tells the length of what it leaves out.
  const length = response.req.method === 'HEAD' ? headers['content-length'] : content.length;
  response.writeHead(status, { ...rest, ...(length !== undefined && { 'content-length': length }) });
  response.end(content);
}

function errorBody(code: string): string {
  return JSON.stringify({ 'odata.error': { code, message: { lang: 'en-US', value: `${code} on demand.` } } });
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const headers = { 'content-type': 'application/json;odata=minimalmetadata', 'x-ms-error-code': code };
  response.writeHead(status, headers);
  response.end(errorBody(code));
}

/** A transaction that was refused is answered with 202 and tells of it inside (Azure Tables, "Performing entity group transactions"). */
function refuseBatch(response: ServerResponse, status: string, code: string): void {
  const lines = [
    '--batchresponse_proxy',
    'Content-Type: multipart/mixed; boundary=changesetresponse_proxy',
    '',
    '--changesetresponse_proxy',
    'Content-Type: application/http',
    'Content-Transfer-Encoding: binary',
    '',
    `HTTP/1.1 ${status}`,
    'X-Content-Type-Options: nosniff',
    'DataServiceVersion: 3.0;',
    'Content-Type: application/json;odata=minimalmetadata;streaming=true;charset=utf-8',
    '',
    errorBody(code),
    '--changesetresponse_proxy--',
    '--batchresponse_proxy--',
    '',
  ];
  response.writeHead(202, { 'content-type': 'multipart/mixed; boundary=batchresponse_proxy' });
  response.end(lines.join('\r\n'));
}
