/** The HTTP side of administration: who may ask, how much may be sent, and answers that tell what was wrong. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock } from '../clock.ts';
import { asBrokerError, BrokerError } from '../errors.ts';
import { checkToken, covers, type SasKey } from '../sas.ts';
import { errorDocument } from './atom.ts';
import { isResourcePath, readResource } from './resource-manager.ts';
import { type Administered, administer } from './service.ts';

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  readonly sasKeys: readonly SasKey[];
  /** Time by which tokens expire. */
  readonly tokenClock: Clock;
  /** Scopes below the namespace that Resource Manager lets callers read, such as `queues/orders`; without them, everything. */
  readonly readable?: readonly string[] | undefined;
  readonly log: (line: string) => void;
}

export interface AdminServer {
  readonly port: number;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 262_144;
const ATOM = 'application/atom+xml;type=entry;charset=utf-8';
const XML = 'application/xml;charset=utf-8';
const JSON_TYPE = 'application/json; charset=utf-8';

/** Starts to listen. Plain HTTP: clients that insist on TLS are told otherwise by `overHttp`. */
export async function startAdministration(administered: Administered, options: AdminOptions): Promise<AdminServer> {
  const server = createServer({ maxHeaderSize: 32_768, requestTimeout: 30_000 }, (request, response) => {
    answer(request, response, administered, options).catch((caught) => {
      options.log(`administration failed: ${String(caught)}`);
      response.destroy();
    });
  });
  // A broken request is the client's; without a listener it would only be cut off.
  server.on('clientError', (_, socket) => {
    if (socket.writable) socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
    else socket.destroy();
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  administered: Administered,
  options: AdminOptions,
): Promise<void> {
  const { method = 'GET', headers } = request;
  const url = URL.parse(`http://local${request.url}`) ?? new URL('http://local/');
  const isResource = isResourcePath(url.pathname);
  let reply: Reply;
  try {
    // Read even when it is refused: an answer before the end of the request is an error to some clients.
    const body = await bodyOf(request);
    authorize(headers.authorization, url.pathname, isResource, options);
    if (isResource) {
      const { status, body: json } = readResource(
        method,
        url.pathname,
        url.searchParams,
        administered,
        options.readable,
      );
      reply = { status, type: JSON_TYPE, body: JSON.stringify(json) };
    } else {
      const path = decodedPath(url.pathname);
      const host = hostOf(headers.host, request.socket, options);
      const changes = headers['if-match'] !== undefined;
      const asked = { method, path, query: url.searchParams, changes, body, host };
      reply = { type: ATOM, ...administer(asked, administered) };
    }
  } catch (caught) {
    reply = refusal(caught, isResource);
  }
  response.writeHead(reply.status, {
    'content-type': reply.type,
    'content-length': Buffer.byteLength(reply.body),
    ...(reply.status === 401 && { 'www-authenticate': 'Bearer' }),
  });
  response.end(reply.body);
}

/** Throws {@link BrokerError} unless the token is signed with a key that has the right to manage, or is a bearer's. */
function authorize(header: string | undefined, path: string, isResource: boolean, options: AdminOptions): void {
  // Nobody issues tokens here; that there is one is all that can be asked for.
  if (header !== undefined && /^Bearer\s+\S/i.test(header)) return;
  if (header === undefined || isResource) {
    throw new BrokerError('amqp:unauthorized-access', 'The request has no token: the header Authorization is missing.');
  }
  const grant = checkToken(header, options.sasKeys, options.tokenClock.now());
  if ('refusal' in grant) throw new BrokerError('amqp:unauthorized-access', grant.refusal);
  if (!covers(grant.scope, decodedPath(path).toLowerCase())) {
    throw new BrokerError('amqp:unauthorized-access', `The token does not cover '${path}'.`);
  }
  if (!grant.rights.includes('Manage')) {
    throw new BrokerError(
      'amqp:unauthorized-access',
      `Unauthorized access: 'Manage' is required for '${path}', and the token does not give it.`,
    );
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    // What is too long is read to its end all the same, or the client would not see the answer; time is limited.
    if (length <= MAX_BODY_BYTES) chunks.push(chunk as Buffer);
  }
  if (length > MAX_BODY_BYTES) {
    throw new BrokerError('com.microsoft:argument-error', `A request body has at most ${MAX_BODY_BYTES} bytes.`);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path).replace(/^\/+/, '');
  } catch {
    throw new BrokerError('com.microsoft:argument-error', 'The path of the request is not properly encoded.');
  }
}

/** The name by which the client reached this server goes into answers, unless it is none. */
function hostOf(header: string | undefined, { localPort }: Socket, { host }: AdminOptions): string {
  return header && /^[\w.:[\]-]{1,255}$/.test(header) ? header : `${host}:${localPort}`;
}

function refusal(caught: unknown, isResource: boolean): Reply {
  const { condition, message, status } = asBrokerError(caught);
  // Clients have no word for 501; with 400 they show the text.
  const code = status === 501 ? 400 : status;
  if (isResource) {
    const error = { code: code === 401 ? 'AuthenticationFailed' : condition, message };
    return { status: code, type: JSON_TYPE, body: JSON.stringify({ error }) };
  }
  return { status: code, type: XML, body: errorDocument(code, message) };
}
