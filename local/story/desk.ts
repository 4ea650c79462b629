/** The office's counter: calls its interface, and shows call and answer. */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import type { Right } from '../../shared/http/route.ts';
import type { LocalOffice } from '../office.ts';
import { NotAsTold } from './check.ts';
import { type Print, pretty, WIDTH, wrap } from './print.ts';

/** A call. Paths begin behind `/api`, or at `/admin` for the host's own routes. */
export interface Call {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Which key goes with it; `master` is for the host's own routes. */
  readonly key: Right | 'master';
  readonly body?: unknown;
  /** Seconds to wait for the end of a run. */
  readonly wait?: number;
}

/** Longest wait for something that has to come, ms. */
const PATIENCE_MS = 30_000;
const POLL_MS = 100;

export class Desk {
  readonly #office: LocalOffice;
  readonly #print: Print;

  constructor(office: LocalOffice, print: Print) {
    this.#office = office;
    this.#print = print;
  }

  /** Makes a call and shows it with what `schema` picks of the answer. Throws {@link NotAsTold} on another status. */
  async show<Schema extends z.ZodType>(call: Call, status: number, schema: Schema): Promise<z.infer<Schema>> {
    const answer = await this.#send(call);
    for (const line of requestLines(call)) this.#print(line);
    if (answer.status !== status) throw new NotAsTold(`${call.method} ${call.path}`, status, answer);
    if (answer.json === undefined) {
      this.#print(`   < ${status}`);
      return schema.parse(undefined);
    }
    const picked = schema.parse(answer.json);
    const [first, ...more] = pretty(picked, WIDTH - 9).split('\n');
    this.#print(`   < ${status} ${first}`);
    for (const line of more) this.#print(`         ${line}`);
    return picked;
  }

  /** Makes a call that answers text, and shows both. Throws {@link NotAsTold} on another status than 200. */
  async showText(call: Call): Promise<string> {
    const answer = await this.#fetch(call);
    const text = await answer.text();
    for (const line of requestLines(call)) this.#print(line);
    if (answer.status !== 200) throw new NotAsTold(`${call.method} ${call.path}`, 200, text);
    const [first = '', ...more] = text
      .trimEnd()
      .split('\n')
      .flatMap((line) => wrap(line, WIDTH - 10));
    this.#print(`   < 200 ${first}`);
    for (const line of more) this.#print(`         ${line}`);
    return text;
  }

  /** Makes a call without showing it. Throws {@link NotAsTold} on another status. */
  async call<Schema extends z.ZodType>(call: Call, status: number, schema: Schema): Promise<z.infer<Schema>> {
    const answer = await this.#send(call);
    if (answer.status !== status) throw new NotAsTold(`${call.method} ${call.path}`, status, answer);
    return schema.parse(answer.json);
  }

  /** Makes a read call without showing it. */
  async look<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.infer<Schema>> {
    const answer = await this.#send({ method: 'GET', path, key: 'read' });
    if (answer.status !== 200) throw new NotAsTold(`GET ${path}`, 200, answer);
    return schema.parse(answer.json);
  }

  /** Collects a source now, without showing it. */
  async collect(source: string): Promise<void> {
    const answer = await this.#send({ method: 'POST', path: `/sources/${source}/collect`, key: 'read' });
    if (answer.status !== 200) throw new NotAsTold(`POST /sources/${source}/collect`, 200, answer);
  }

  async #send(call: Call): Promise<{ status: number; json: unknown }> {
    const answer = await this.#fetch(call);
    const text = await answer.text();
    return { status: answer.status, json: text === '' ? undefined : JSON.parse(text) };
  }

  #fetch({ method, path, key, body, wait }: Call): Promise<Response> {
    const { url, adminUrl, rights, masterKey } = this.#office;
    return fetch(key === 'master' ? path.replace(/^\/admin/, adminUrl) : `${url}${path}`, {
      method,
      headers: {
        'x-functions-key': key === 'master' ? masterKey : rights[key],
        'x-operator': 'on-call',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(wait !== undefined && { prefer: `wait=${wait}` }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }
}

/** The call in one line, its body beneath where the line would grow too long. */
function requestLines({ method, path, key, body, wait }: Call): string[] {
  const notes = [`key: ${key}`, ...(wait === undefined ? [] : [`Prefer: wait=${wait}`])].join(', ');
  const target = `   > ${method} ${key === 'master' ? path : `/api${path}`}`;
  const text = body === undefined ? '' : JSON.stringify(body);
  const line = `${target} ${text}`.trimEnd();
  if (line.length + notes.length + 4 <= WIDTH) return [`${line}  (${notes})`];
  return [`${target}  (${notes})`, `     ${text}`];
}

/** Looks again until what is seen is `expected`. Throws {@link NotAsTold} when it does not become so. */
export async function becomes(what: string, look: () => Promise<unknown>, expected: unknown): Promise<void> {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const seen = await look();
    if (isDeepStrictEqual(seen, expected)) return;
    if (Date.now() > end) throw new NotAsTold(`${what}, within ${PATIENCE_MS / 1000} s`, expected, seen);
    await delay(POLL_MS);
  }
}
