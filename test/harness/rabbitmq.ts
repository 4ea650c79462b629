/** The RabbitMQ servers that tests may use: those that `DLO_TEST_RABBITMQ` names. `npm run rabbitmq -- npm test` starts them. */
import { type ChannelModel, type ConfirmChannel, connect } from 'amqplib';
import { afterAll, beforeAll, describe } from 'vitest';
import { type ExactConnection, keepExact } from '../../shared/brokers/rabbitmq/exactBytes.ts';

/** One server under test. */
export interface TestServer {
  readonly url: string;
  /** Of the management interface, with user and password; `undefined` where none was named. */
  readonly managementUrl: string | undefined;
}

/** The servers, from `amqp://…[,http://…]`, separated by blanks. */
export function rabbitMqServers(text = process.env.DLO_TEST_RABBITMQ ?? ''): TestServer[] {
  return text
    .split(/\s+/)
    .filter((part) => part !== '')
    .map((part) => {
      const [url = '', managementUrl] = part.split(',');
      return { url, managementUrl };
    });
}

/** A connection of a test's own, with a channel that confirms. */
export interface TestConnection {
  readonly model: ChannelModel;
  readonly channel: ConfirmChannel;
  readonly exact: ExactConnection;
  /** Major and minor version of the server. */
  readonly version: string;
}

let counter = 0;
/** A name for a queue or exchange that no other test uses. */
export function uniqueName(what: string): string {
  counter += 1;
  return `test-${process.pid}-${counter}-${what}`;
}

/** The same tests on every server; skipped where there is none. */
export function describeOnRabbitMq(
  name: string,
  tests: (server: TestServer, open: () => TestConnection) => void,
): void {
  const servers = rabbitMqServers();
  if (servers.length === 0)
    describe.skip(`${name} (needs RabbitMQ)`, () => tests({ url: '', managementUrl: undefined }, never));
  for (const [index, server] of servers.entries()) {
    describe(`${name} (server ${index + 1} of ${servers.length})`, () => {
      let connection: TestConnection | undefined;
      beforeAll(async () => {
        const model = await connect(server.url);
        const exact = keepExact(model);
        const channel = await model.createConfirmChannel();
        const [major = '', minor = ''] = (model.connection.serverProperties.version ?? '').split('.');
        connection = { model, channel, exact, version: `${major}.${minor}` };
      });
      afterAll(async () => {
        await connection?.model.close();
      });
      tests(server, () => connection ?? never());
    });
  }
}

function never(): never {
  throw new Error('the connection is open while tests run');
}
