/** `npm run broker`: the broker as a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ServiceBusAdministrationClient, ServiceBusClient } from '@azure/service-bus';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { overHttp } from '../../local/broker/index.ts';

const MAIN = join(import.meta.dirname, '../../local/broker/main.ts');
let folder: string;
const children: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'broker-command-'));
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

async function file(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function configOf(queue: object) {
  return { UserConfig: { Namespaces: [{ Name: 'sbemulatorns', Queues: [queue], Topics: [] }] } };
}

function start(args: string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...output }));
  return { child, ended };
}

/** Waits for the two connection strings. */
async function opened(child: ChildProcess): Promise<{ connection: string; administration: string }> {
  const found: string[] = [];
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const text = /(Endpoint=\S+)/.exec(line)?.[1];
    if (text) found.push(text);
    if (found.length === 2) return { connection: found[0] as string, administration: found[1] as string };
  }
  throw new Error('the broker ended without a connection string');
}

describe('npm run broker', () => {
  it('serves clients until it is interrupted', async () => {
    const config = await file('good.json', configOf({ Name: 'q' }));
    const keys = await file('keys.json', [
      { name: 'first', key: 'Zmlyc3Q=', rights: ['Manage'] },
      { name: 'listen', key: 'bGlzdGVu', rights: ['Listen'] },
    ]);
    const { child, ended } = start(['--config', config, '--port', '0', '--admin-port', '0', '--keys', keys]);
    const { connection, administration } = await opened(child);
    expect(connection).toMatch(
      /^Endpoint=sb:\/\/127\.0\.0\.1:\d+;SharedAccessKeyName=first;.*UseDevelopmentEmulator=true$/,
    );
    const client = new ServiceBusClient(connection);
    await client.createSender('q').sendMessages({ body: 'hello' });
    const admin = overHttp(new ServiceBusAdministrationClient(administration));
    expect((await admin.getQueueRuntimeProperties('q')).activeMessageCount).toBe(1);
    const listener = connection.replace('first', 'listen').replace('Zmlyc3Q=', 'bGlzdGVu');
    const other = new ServiceBusClient(listener, { retryOptions: { maxRetries: 0 } });
    await expect(other.createSender('q').sendMessages({ body: 1 })).rejects.toMatchObject({
      code: 'UnauthorizedAccess',
    });
    await Promise.all([client.close(), other.close()]);
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('reads a file with comments and a byte order mark, and tells what has no effect', async () => {
    const text = JSON.stringify(configOf({ Name: 'q', Properties: { EnableExpress: true } }));
    const config = await file('sample.json', `\uFEFF// a sample\n${text}`);
    const { child, ended } = start(['--config', config, '--port', '0', '--admin-port', '0']);
    await opened(child);
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `${config}: line 2, UserConfig.Namespaces[0].Queues[0].Properties.EnableExpress: has no effect here\n`,
    });
  });

  it('says that it runs under chaos, and by which seed', async () => {
    const config = await file('good.json', configOf({ Name: 'q' }));
    const { child, ended } = start(['--config', config, '--port', '0', '--admin-port', '0', '--chaos', '7']);
    await opened(child);
    child.stdout.resume(); // reading lines ends with a pause
    child.kill('SIGINT');
    expect(await ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^chaos: +seed 7,/m) });
  });

  it.each([
    [[], '--config is missing'],
    [['--config'], '--config'],
    [['--config', 'x', '--port', 'many'], "--port: 'many' is no port"],
    [['--config', 'x', '--port', '70000'], 'is no port'],
    [['--config', 'x', '--admin-port', '-1'], '--admin-port'],
    [['--config', 'x', '--speed', '9'], '--speed'],
    [['--config', 'x', '--chaos', 'much'], "--chaos: 'much' is no seed"],
    [['--config', 'x', 'more'], 'more'],
  ])('is told how it is used: %j', async (args, reason) => {
    const { code, stdout, stderr } = await start(args).ended;
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(reason);
    expect(stderr).toContain('usage: npm run broker');
  });

  it.each([
    ['a file that is not there', undefined, 'nowhere.json'],
    ['no JSON', '{', 'line 1, column 2: the end of the file'],
    [
      'a wrong setting',
      configOf({ Name: 'q', Properties: { LockDuration: 'PT6M' } }),
      'Queues[0].Properties.LockDuration',
    ],
    ['a target that is not there', configOf({ Name: 'q', Properties: { ForwardTo: 'x' } }), "'x'"],
  ])('says what is wrong with its configuration: %s', async (name, content, reason) => {
    const path = content === undefined ? join(folder, 'nowhere.json') : await file(`${name}.json`, content);
    const { code, stdout, stderr } = await start(['--config', path, '--port', '0', '--admin-port', '0']).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(reason);
    expect(stderr).not.toContain('    at ');
  });

  it('says what is wrong with its keys, and shows none of them', async () => {
    const config = await file('good.json', configOf({ Name: 'q' }));
    const keys = await file('bad-keys.json', [{ name: 'x', key: 'c2VjcmV0', rights: ['Fly'] }]);
    const { code, stderr } = await start(['--config', config, '--port', '0', '--admin-port', '0', '--keys', keys])
      .ended;
    expect(code).toBe(1);
    expect(stderr).toContain('0.rights.0');
    expect(stderr).not.toContain('c2VjcmV0');
  });
});
