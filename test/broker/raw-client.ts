/** A client on bare rhea: sends exact bytes and states that no SDK would send, and sees exact answers. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import rhea, {
  type Connection,
  type ConnectionOptions,
  type Delivery,
  type EventContext,
  type Receiver,
  type Sender,
} from 'rhea';
import { encodeStringMap } from '../../local/broker/encoding.ts';
import type { RunningBroker } from '../../local/broker/index.ts';
import {
  type AmqpValue,
  encode,
  encodeList,
  encodeSection,
  readValue,
  SECTION,
  sectionsOf,
} from '../../shared/brokers/serviceBus/amqp.ts';
import { mapSection, typedEntries } from './harness.ts';

export interface RawAnswer {
  readonly status: number;
  readonly condition: string | undefined;
  readonly description: string | undefined;
  /** Decoded with types; `undefined` when the answer has no value. */
  readonly body: AmqpValue | undefined;
}

/** A shared access signature for an entity, or for whatever `resource` says. */
export function signToken(
  broker: RunningBroker,
  resource: string,
  expiresInSeconds = 3600,
  key?: string,
  keyName?: string,
): string {
  const parts = new Map(broker.connectionString.split(';').map((part) => part.split(/=(.*)/s, 2) as [string, string]));
  const sr = encodeURIComponent(resource);
  const se = Math.floor(Date.now() / 1000) + expiresInSeconds;
  const signature = createHmac('sha256', key ?? (parts.get('SharedAccessKey') as string)).update(`${sr}\n${se}`);
  const sig = encodeURIComponent(signature.digest('base64'));
  return `SharedAccessSignature sr=${sr}&sig=${sig}&se=${se}&skn=${keyName ?? parts.get('SharedAccessKeyName')}`;
}

export class RawClient {
  readonly connection: Connection;
  readonly #broker: RunningBroker;
  #requests = 0;

  private constructor(connection: Connection, broker: RunningBroker) {
    this.connection = connection;
    this.#broker = broker;
    for (const event of ['connection_error', 'disconnected', 'error', 'protocol_error']) connection.on(event, () => {});
  }

  /** Connects; with a token for the whole namespace unless told otherwise. */
  static async connect(
    broker: RunningBroker,
    authorize = true,
    session_buffer_size?: { incoming: number },
  ): Promise<RawClient> {
    const connection = rhea.create_container().connect({
      host: '127.0.0.1',
      port: broker.port,
      username: 'anybody',
      reconnect: false,
      ...(session_buffer_size && { session_buffer_size }),
    } as ConnectionOptions);
    const client = new RawClient(connection, broker);
    await once(connection, 'connection_open');
    if (authorize) await client.putToken('', signToken(broker, `sb://127.0.0.1:${broker.port}/`));
    return client;
  }

  close(): void {
    this.connection.close();
  }

  async putToken(path: string, token: string, type = 'servicebus.windows.net:sastoken'): Promise<RawAnswer> {
    return this.request('$cbs', {
      application: {
        operation: encode.string('put-token'),
        name: encode.string(`sb://127.0.0.1:${this.#broker.port}/${path}`),
        type: encode.string(type),
      },
      body: encode.string(token),
    });
  }

  manage(entity: string, operation: string, args: Record<string, Buffer>): Promise<RawAnswer> {
    return this.request(`${entity}/$management`, {
      application: { operation: encode.string(`com.microsoft:${operation}`) },
      body: encodeStringMap(args),
    });
  }

  async request(address: string, request: { application: Record<string, Buffer>; body: Buffer }): Promise<RawAnswer> {
    const replyTo = `reply-${++this.#requests}`;
    const receiver = this.connection.open_receiver({
      name: replyTo,
      source: address,
      target: replyTo,
      autoaccept: true,
    });
    const sender = this.connection.open_sender({ name: `request-${this.#requests}`, target: address });
    await Promise.all([opened(receiver), opened(sender)]);
    keepBytes(receiver);
    const answered = once(receiver, 'message');
    const none = encode.null();
    this.sendBytes(
      sender,
      Buffer.concat([
        encodeSection(
          SECTION.properties,
          encodeList([encode.string(`id-${this.#requests}`), none, none, none, encode.string(replyTo)]),
        ),
        mapSection(SECTION.applicationProperties, request.application),
        encodeSection(SECTION.value, request.body),
      ]),
    );
    const [context] = (await answered) as [EventContext];
    const bytes = context.message as unknown as Buffer;
    const properties = typedEntries(bytes, SECTION.applicationProperties);
    const value = sectionsOf(bytes).find((section) => section.code === SECTION.value);
    sender.close();
    receiver.close();
    const text = (...names: string[]) =>
      names.map((name) => properties[name]?.value).find((found) => found !== undefined);
    return {
      status: Number(text('statusCode', 'status-code')),
      condition: text('errorCondition', 'error-condition') as string | undefined,
      description: text('statusDescription', 'status-description') as string | undefined,
      body: value && readValue(bytes, value.body),
    };
  }

  async sender(address: string): Promise<Sender> {
    const sender = this.connection.open_sender({ target: address });
    await opened(sender);
    return sender;
  }

  /** A receiver in peek-lock mode that gets each message as its bytes. */
  async receiver(address: string, credit: number): Promise<Receiver> {
    const receiver = this.connection.open_receiver({
      source: address,
      credit_window: 0,
      autoaccept: false,
      autosettle: false,
      rcv_settle_mode: 1,
      snd_settle_mode: 0,
    });
    await opened(receiver);
    keepBytes(receiver);
    receiver.add_credit(credit);
    return receiver;
  }

  sendBytes(sender: Sender, bytes: Buffer, format = 0): Delivery {
    const send = sender.send as unknown as (message: Buffer, tag: Buffer | undefined, format: number) => Delivery;
    return send.call(sender, bytes, undefined, format);
  }

  /** Writes a disposition frame of our own making: a range of deliveries, not settled yet, and an encoded outcome. */
  writeDisposition({ session }: Receiver, first: number, last: number, outcome: Buffer): void {
    const fields = [encode.boolean(true), encode.uint(first), encode.uint(last), encode.boolean(false), outcome];
    const body = Buffer.concat([Buffer.from([0x00, 0x53, 0x15]), encodeList(fields)]);
    const head = Buffer.alloc(8);
    head.writeUInt32BE(body.length + 8, 0);
    head.writeUInt8(2, 4);
    head.writeUInt16BE((session as unknown as { local: { channel: number } }).local.channel, 6);
    const { socket } = this.connection as unknown as { socket: { write(bytes: Buffer): void } };
    socket.write(Buffer.concat([head, body]));
  }

  /** Sends and waits for the outcome: `accepted`, or the condition of the rejection. */
  async sent(sender: Sender, bytes: Buffer, format = 0): Promise<string> {
    const settled = once(sender, 'settled');
    this.sendBytes(sender, bytes, format);
    const [context] = (await settled) as [EventContext];
    const state = context.delivery?.remote_state as { error?: { condition: string } } | undefined;
    return state?.error?.condition ?? 'accepted';
  }
}

/** Waits until a link is open, or throws the error it is refused with. */
export async function opened(link: Sender | Receiver): Promise<void> {
  const kind = link.is_sender() ? 'sender' : 'receiver';
  await new Promise<void>((resolve, reject) => {
    // A refused attach names no terminus; the reason follows with the detach.
    link.once(`${kind}_open`, () => {
      if (kind === 'sender' ? link.target?.address : link.source?.address) resolve();
    });
    link.once(`${kind}_error`, () => reject(link.error));
    link.once(`${kind}_close`, () => reject(new Error('the link was closed')));
  });
}

/** Makes rhea hand on the bytes of messages instead of decoding them. */
function keepBytes(receiver: Receiver): void {
  const incoming = (
    receiver.session as unknown as {
      incoming: { on_transfer(frame: { performative: { message_format: number } }, link: Receiver): void };
    }
  ).incoming;
  const original = incoming.on_transfer;
  incoming.on_transfer = (frame, link) => {
    frame.performative.message_format = 1;
    original.call(incoming, frame, link);
  };
}
