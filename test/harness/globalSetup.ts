/**
 * One Azurite for the whole test run, started when the first test wants it, and a desk that hands out its accounts. Test
 * files run in several processes at once, so they ask over HTTP: no two of them get the same account.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { type Azurite, startAzurite } from '../../local/azurite.ts';
import { leftOut } from './runtimes.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    storageDesk: string;
  }
}

const accounts = 400;

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const missing = leftOut();
  if (missing !== undefined) console.log(missing);
  if (!process.env.DLO_TEST_RABBITMQ) {
    console.log(
      'Left out: test/rabbitmq, for want of a server. `npm run rabbitmq -- npm test` starts two and runs everything.',
    );
  }
  let starting: Promise<Azurite> | undefined;
  const desk = createServer(async (_request, response) => {
    try {
      starting ??= startAzurite({ accounts });
      response.end((await starting).takeAccount().connectionString);
    } catch (error) {
      response.writeHead(500).end((error as Error).message);
    }
  });
  desk.listen(0, '127.0.0.1');
  await once(desk, 'listening');
  project.provide('storageDesk', `http://127.0.0.1:${(desk.address() as AddressInfo).port}`);
  return async () => {
    desk.close();
    desk.closeAllConnections();
    const azurite = await starting?.catch(() => undefined);
    await azurite?.stop();
  };
}
