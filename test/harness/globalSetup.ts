/**
 * One Azurite for the whole test run, and a desk that hands out its accounts. Test files run in several processes at once,
 * so they ask over HTTP: no two of them get the same account.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { startAzurite } from '../../local/azurite.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    storageDesk: string;
  }
}

const accounts = 400;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const azurite = await startAzurite({ accounts });
  const desk = createServer((_request, response) => {
    try {
      response.end(azurite.takeAccount().connectionString);
    } catch (error) {
      response.writeHead(410).end((error as Error).message);
    }
  });
  desk.listen(0, '127.0.0.1');
  await once(desk, 'listening');
  project.provide('storageDesk', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`);
  return async () => {
    desk.close();
    desk.closeAllConnections();
    await azurite.stop();
  };
}
