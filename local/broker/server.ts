/** The broker as a running server: the listening socket, the connections, and the passing of time. */
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Notes } from './admin/notes.ts';
import { startAdministration } from './admin/server.ts';
import { Chaos, type ChaosOptions } from './chaos.ts';
import { type Clock, MovableClock } from './clock.ts';
import type { EmulatorConfig } from './config.ts';
import { acceptConnection, createContainer } from './connection.ts';
import { Faults } from './faults.ts';
import { Namespace } from './namespace.ts';
import { type BrokerParts, Peer } from './peer.ts';
import type { SasKey } from './sas.ts';
import type { EntityStatus } from './status.ts';

/** How a broker is started. Everything but the configuration has a default. */
export interface BrokerOptions {
  /** Made by `parseConfig`. */
  readonly config: EmulatorConfig;
  /** 0, the default, takes a free one. */
  readonly port?: number;
  /** Where administration and Resource Manager requests are answered, over plain HTTP. 0, the default, takes a free one. */
  readonly adminPort?: number;
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** Time for locks and times to live. */
  readonly clock?: MovableClock;
  /** Time by which access tokens expire. Default: the real time. */
  readonly tokenClock?: Clock;
  /** Makes a lock token, 16 bytes. Default: random ones. */
  readonly lockToken?: () => Buffer;
  /** Largest message or batch, bytes. Default 262,144, the limit of the Standard tier. */
  readonly maxMessageBytes?: number;
  /** Default: `RootManageSharedAccessKey` with a random key. */
  readonly sasKey?: SasKey;
  /** Further keys, with what they allow and where. */
  readonly sasKeys?: readonly SasKey[];
  /** Scopes of the roles of those who ask Resource Manager, such as `queues/orders`; without them, the whole namespace. */
  readonly readable?: readonly string[];
  /**
   * Whether a deferred dead letter of an entity with sessions can be received by number only over the connection that
   * deferred it, and is answered with session-lock-lost elsewhere. Default `true`: so it was seen on Azure.
   */
  readonly bindsDeferredSessionLetters?: boolean;
  /** Lets things go wrong at random, the same way for the same seed. Default: nothing does of itself. */
  readonly chaos?: ChaosOptions;
  /** Takes one line for every connection that ends in an error. Default: nobody does. */
  readonly log?: (line: string) => void;
}

/** One message as an entity holds it, for assertions of tests. Times are milliseconds since 1970. */
export interface StoredView {
  readonly sequenceNumber: bigint;
  /** The number it was given first, of which forwarding and becoming active leave nothing else. */
  readonly enqueueSequenceNumber: bigint;
  readonly state: 'active' | 'deferred' | 'scheduled';
  readonly locked: boolean;
  readonly lockedUntil: number | undefined;
  readonly enqueuedAt: number;
  /** `Infinity` when it never expires. */
  readonly expiresAt: number;
  readonly deliveryCount: number;
  /** The encoded message as a peek answers it. */
  readonly raw: Buffer;
  /** The encoded message as it is stored: as it came, with what settlements added. */
  readonly stored: Buffer;
}

/** A broker that is listening. */
export interface RunningBroker {
  readonly port: number;
  /** For the unmodified Service Bus clients; the development emulator setting makes them speak plain TCP. */
  readonly connectionString: string;
  /** The same with another key, given by its name. */
  connectionStringWith(keyName: string): string;
  readonly adminPort: number;
  /**
   * For administration clients: that of .NET takes it as it is, the JavaScript one needs `overHttp` besides.
   */
  readonly adminConnectionString: string;
  /** The same with another key, given by its name. */
  adminConnectionStringWith(keyName: string): string;
  readonly clock: MovableClock;
  readonly faults: Faults;
  /** What goes wrong at random, if anything does. */
  readonly chaos: Chaos | undefined;
  /** Everything the queue, subscription or dead-letter queue at `path` holds, in sequence order. */
  messages(path: string): StoredView[];
  /**
   * Empties a queue, subscription or topic with its dead-letter queues and restarts its numbering, as deleting and
   * creating it does. Open links stay, locks on it are lost.
   */
  recreate(path: string): void;
  /** Sets whether the queue, topic or subscription at `path` takes and gives messages. */
  setStatus(path: string, status: EntityStatus): void;
  /** Lets every lock on messages and sessions of the entity at `path` be lost now. */
  loseLocks(path: string): void;
  /** Destroys all connections and keeps listening, as a failover does. */
  dropConnections(): void;
  /** Destroys all connections and stops listening. */
  close(): Promise<void>;
}

/** How often locks and times to live are looked at while the clock just runs, milliseconds. */
const SWEEP_INTERVAL = 50;
const RANDOM_BLOCK = 4096;
/** The only name of a namespace the emulator's configuration allows. */
const NAMESPACE = 'sbemulatorns';

/**
 * Starts a broker. Throws when the configuration asks for something that is not supported, naming the settings, or
 * when the port is taken.
 */
export async function startBroker(options: BrokerOptions): Promise<RunningBroker> {
  const { config, host = '127.0.0.1', clock = new MovableClock() } = options;
  if (config.unsupported.length > 0) {
    throw new Error(`This broker does not support:\n  ${config.unsupported.join('\n  ')}`);
  }
  const sasKey = options.sasKey ?? { name: 'RootManageSharedAccessKey', key: randomBytes(32).toString('base64') };
  const namespace = new Namespace(
    config,
    { clock, lockToken: options.lockToken ?? randomTokens() },
    { bindsDeferredSessionLetters: options.bindsDeferredSessionLetters ?? true },
  );
  const chaos = options.chaos && new Chaos(options.chaos);
  const broker: BrokerParts = {
    namespace,
    faults: new Faults(chaos),
    clock,
    tokenClock: options.tokenClock ?? { now: () => Date.now() },
    sasKeys: [sasKey, ...(options.sasKeys ?? [])],
    maxMessageBytes: options.maxMessageBytes ?? 262_144,
    log: options.log ?? (() => {}),
  };
  const container = createContainer(`broker-${randomUUID()}`);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    const connection = acceptConnection(container, socket, () => peer.admitsFrame());
    const peer: Peer = new Peer(connection, socket, broker);
    socket.on('close', () => {
      sockets.delete(socket);
      peer.close();
      // A destroyed socket emits no 'end', and rhea would keep its heartbeat timers.
      connection._disconnected();
    });
  });
  const notes = new Notes(clock.now());
  const administered = { namespace, notes, clock, name: NAMESPACE, startedAt: clock.now() };
  const { sasKeys, tokenClock, log } = broker;
  const administration = await startAdministration(administered, {
    host,
    port: options.adminPort ?? 0,
    readable: options.readable,
    sasKeys,
    tokenClock,
    log,
  });
  try {
    server.listen(options.port ?? 0, host);
    await once(server, 'listening');
  } catch (error) {
    await administration.close();
    throw error;
  }
  const { port } = server.address() as AddressInfo;

  const sweeping = setInterval(() => {
    try {
      namespace.sweep();
    } catch (caught) {
      broker.log(`sweep failed: ${String(caught)}`);
    }
  }, SWEEP_INTERVAL);
  const stopMoving = clock.onMove(() => namespace.sweep());

  const connectionStringOf = ({ name, key }: SasKey, at: number): string =>
    `Endpoint=sb://${host}:${at};SharedAccessKeyName=${name};SharedAccessKey=${key};UseDevelopmentEmulator=true`;
  const keyNamed = (name: string): SasKey => {
    const key = sasKeys.find((each) => each.name === name);
    if (key) return key;
    throw new Error(`This broker has no key '${name}'.`);
  };
  return {
    port,
    connectionString: connectionStringOf(sasKey, port),
    connectionStringWith: (keyName) => connectionStringOf(keyNamed(keyName), port),
    adminPort: administration.port,
    adminConnectionString: connectionStringOf(sasKey, administration.port),
    adminConnectionStringWith: (keyName) => connectionStringOf(keyNamed(keyName), administration.port),
    clock,
    faults: broker.faults,
    chaos,
    messages(path) {
      const entity = namespace.entity(path);
      return entity.all().map((entry) => ({
        sequenceNumber: entry.sequenceNumber,
        enqueueSequenceNumber: entry.enqueueSequenceNumber,
        state: entry.scheduledFor !== undefined ? 'scheduled' : entry.deferred ? 'deferred' : 'active',
        locked: entry.lock !== undefined,
        lockedUntil: entry.lock?.session?.until ?? entry.lock?.until,
        enqueuedAt: entry.enqueuedAt,
        expiresAt: entry.expiresAt,
        deliveryCount: entry.deliveryCount,
        raw: entity.encoded(entry),
        stored: entry.message.bytes,
      }));
    },
    recreate: (path) => namespace.recreate(path),
    setStatus: (path, status) => namespace.setStatus(path, status),
    loseLocks: (path) => namespace.entity(path).loseAllLocks(),
    dropConnections() {
      for (const socket of sockets) socket.destroy();
    },
    async close() {
      clearInterval(sweeping);
      stopMoving();
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      await administration.close();
      broker.faults.clear();
    },
  };
}

/** Lock tokens cut from blocks of random bytes: asking for 16 bytes at a time costs more than all else of a delivery. */
function randomTokens(): () => Buffer {
  let block = Buffer.alloc(0);
  let at = 0;
  return () => {
    if (at >= block.length) {
      block = randomBytes(RANDOM_BLOCK);
      at = 0;
    }
    at += 16;
    return block.subarray(at - 16, at);
  };
}
