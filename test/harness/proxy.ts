/** A storage account behind a wire that can be cut. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface Wire {
  /** The connection string of the account, through the wire. */
  readonly connectionString: string;
  /** Cuts all connections, and every new one at once. */
  cut(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Lays a wire to every endpoint that the connection string of a storage account names. */
export async function layWire(connectionString: string): Promise<Wire> {
  const endpoints = new Set(
    [...connectionString.matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)),
  );
  const lines = await Promise.all([...endpoints].map(layLine));
  let through = connectionString;
  for (const { target, port } of lines) through = through.replaceAll(`127.0.0.1:${target}/`, `127.0.0.1:${port}/`);
  return {
    connectionString: through,
    cut: () => {
      for (const line of lines) line.setOpen(false);
    },
    mend: () => {
      for (const line of lines) line.setOpen(true);
    },
    close: async () => {
      await Promise.all(lines.map((line) => line.close()));
    },
  };
}

async function layLine(target: number) {
  const sockets = new Set<Socket>();
  let isOpen = true;
  const server = createServer((socket) => {
    if (!isOpen) {
      socket.destroy();
      return;
    }
    const onward = connect(target, '127.0.0.1');
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(one);
      one.setNoDelay(true);
      one.on('error', () => {}); // it closes next, and takes the other end along
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    target,
    port: (server.address() as AddressInfo).port,
    setOpen(open: boolean) {
      isOpen = open;
      if (!open) cut();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      cut();
      await closed;
    },
  };
}
