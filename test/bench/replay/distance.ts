/** Distance on one machine: what goes through arrives later, as from another data centre. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A way to a port on this machine that takes time. */
export interface Distance {
  readonly port: number;
  close(): Promise<void>;
}

/** Opens a port behind which lies `port`, `ms` away in each direction. Order is kept. */
export async function openDistance(port: number, ms: number): Promise<Distance> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ port, host: '127.0.0.1', noDelay: true });
    near.setNoDelay(true);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => setTimeout(() => to.write(bytes), ms));
      from.on('close', () => {
        sockets.delete(from);
        setTimeout(() => to.destroy(), ms);
      });
      from.on('error', () => {}); // its close follows
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
