/** One RabbitMQ server as a child process: on free ports, with its data in a folder of its own, gone when it is stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Installed, Version } from './install.ts';

/** PEM files of a certificate authority and of the server, for a listener with TLS that asks for the client's certificate. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** A server that takes connections. */
export interface RabbitMqServer {
  readonly version: Version;
  /** Such as `amqp://guest:guest@127.0.0.1:40123`. */
  readonly url: string;
  /** `amqps://…`, where certificates were given. */
  readonly secureUrl: string | undefined;
  /** The management interface, such as `http://guest:guest@127.0.0.1:40124`. */
  readonly managementUrl: string;
  /** Runs a command of `rabbitmqctl` and gives what it printed. Throws with its words when it fails. */
  ctl(...args: string[]): Promise<string>;
  /** Ends the server and removes its data. */
  stop(): Promise<void>;
}

/** Longest wait for a server to take connections, ms: 4 s here on a quiet machine. */
const START_LIMIT_MS = 90_000;
/** Longest wait for a stop that was asked for, ms. */
const GRACE_MS = 15_000;

/**
 * Server and port mapper in one process group. They end when standard input does, so also when this process is killed: a
 * background process of a shell has no standard input of its own, hence the copy.
 */
const SCRIPT = `exec 3<&0
epmd -port "$ERL_EPMD_PORT" -address 127.0.0.1 & mapper=$!
/usr/lib/rabbitmq/bin/rabbitmq-server & server=$!
{ cat <&3 >/dev/null; kill $server; } & watch=$!
trap 'kill $server' TERM
wait $server; wait $server
kill $mapper $watch
rm -rf "$HOME"
`;

/**
 * Starts a server and waits until it takes connections. Its data is in memory's place, a folder below its own root, since that
 * is all it can see. Throws with the server's own words when it does not start.
 */
export async function startRabbitMq(
  { version, root }: Installed,
  { certificates, log = () => {} }: { certificates?: Certificates; log?: (line: string) => void } = {},
): Promise<RabbitMqServer> {
  await mkdir(join(root, 'tmp'), { recursive: true });
  const outside = await mkdtemp(join(root, 'tmp', 'dlo-rabbitmq-'));
  const inside = root === '/' ? outside : outside.slice(root.length);
  const [port, secure, management, mapper, distribution] = await freePorts(5);
  const conf = [
    `listeners.tcp.1 = 127.0.0.1:${port}`,
    'management.tcp.ip = 127.0.0.1',
    `management.tcp.port = ${management}`,
    // The root of the other release has no /proc, and mounting one needs more rights than this.
    'vm_memory_calculation_strategy = allocated',
    'total_memory_available_override_value = 2GB',
    'disk_free_limit.absolute = 50MB',
  ];
  if (certificates !== undefined) {
    for (const name of ['ca', 'cert', 'key'] as const) await cp(certificates[name], join(outside, `${name}.pem`));
    conf.push(
      `listeners.ssl.1 = 127.0.0.1:${secure}`,
      `ssl_options.cacertfile = ${inside}/ca.pem`,
      `ssl_options.certfile = ${inside}/cert.pem`,
      `ssl_options.keyfile = ${inside}/key.pem`,
      'ssl_options.verify = verify_peer',
      'ssl_options.fail_if_no_peer_cert = false',
    );
  }
  await writeFile(join(outside, 'rabbitmq.conf'), `${conf.join('\n')}\n`);
  await writeFile(join(outside, 'enabled_plugins'), '[rabbitmq_management,rabbitmq_auth_mechanism_ssl].\n');
  const env = {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    HOME: inside,
    ERL_EPMD_PORT: String(mapper),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `dlo${port}@localhost`,
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_CONFIG_FILE: `${inside}/rabbitmq.conf`,
    RABBITMQ_ENABLED_PLUGINS_FILE: `${inside}/enabled_plugins`,
    RABBITMQ_MNESIA_BASE: `${inside}/data`,
    RABBITMQ_LOG_BASE: `${inside}/log`,
    RABBITMQ_LOGS: '-',
  };
  const inRoot = (program: string, args: readonly string[]) =>
    root === '/' ? ([program, args] as const) : (['chroot', [root, program, ...args]] as const);
  const child = spawn(...inRoot('/bin/sh', ['-c', SCRIPT]), { env, stdio: ['pipe', 'pipe', 'pipe'] });
  const stop = async () => {
    await end(child);
    await rm(outside, { recursive: true, force: true });
  };
  try {
    await untilStarted(child, log);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    version,
    url: `amqp://guest:guest@127.0.0.1:${port}`,
    secureUrl: certificates && `amqps://guest:guest@127.0.0.1:${secure}`,
    managementUrl: `http://guest:guest@127.0.0.1:${management}`,
    ctl: (...args) => control(...inRoot('/usr/lib/rabbitmq/bin/rabbitmqctl', args), env),
    stop,
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await exited;
  clearTimeout(late);
}

async function untilStarted(child: ChildProcess, log: (line: string) => void): Promise<void> {
  const said: string[] = [];
  const { stdout, stderr } = child;
  if (stdout === null || stderr === null) throw new Error('the server was started without pipes');
  const hear = (line: string) => {
    said.push(line);
    if (said.length > 20) said.shift();
    log(line);
  };
  createInterface({ input: stderr }).on('line', hear);
  await new Promise<void>((resolve, reject) => {
    const fail = () => reject(new Error(`RabbitMQ did not start:\n${said.join('\n')}`));
    const late = setTimeout(fail, START_LIMIT_MS);
    createInterface({ input: stdout }).on('line', (line) => {
      hear(line);
      if (!line.includes('Server startup complete')) return;
      clearTimeout(late);
      resolve();
    });
    child.once('exit', () => {
      clearTimeout(late);
      fail();
    });
  });
}

async function control(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const parts: Buffer[] = [];
  child.stdout.on('data', (bytes: Buffer) => parts.push(bytes));
  child.stderr.on('data', (bytes: Buffer) => parts.push(bytes));
  const [code] = await once(child, 'close');
  const text = Buffer.concat(parts).toString();
  if (code !== 0) throw new Error(`rabbitmqctl ${args.join(' ')}: ${text}`);
  return text;
}

/** Ports that nobody listens on now. All are open at once while they are asked for, so no two are the same. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP listener has a port');
    return address.port;
  });
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
