/** Connections: accepting them, and reading their frames with a limit to everything a peer may claim. */
import type { Socket } from 'node:net';
import { type Container, frames, type RheaConnection, rhea, type Transport } from './rhea.ts';
import { checkValue } from './well-formed.ts';

/** Largest frame this broker takes and announces, bytes. */
export const MAX_FRAME_SIZE = 65_536;
const FRAME_HEAD = 8;

/** The container that owns a broker's connections, with the two SASL mechanisms Service Bus clients ask for. */
export function createContainer(id: string): Container {
  const container = rhea.create_container({
    id,
    require_sasl: true,
    sender_options: { autosettle: false, treat_modified_as_released: false },
    receiver_options: { autoaccept: false, autosettle: false, credit_window: 0 },
    max_frame_size: MAX_FRAME_SIZE,
    idle_time_out: 120_000,
    tcp_no_delay: true,
  });
  // Neither proves anything: the proof is the token put over $cbs.
  for (const name of ['ANONYMOUS', 'MSSBCBS']) {
    container.sasl_server_mechanisms[name] = () => ({
      outcome: undefined,
      start() {
        this.outcome = true;
      },
    });
  }
  return container;
}

/**
 * A connection that accepts `socket`, with its frames bounded. `admits` is asked before every AMQP frame; once it says
 * no, nothing more is read.
 */
export function acceptConnection(container: Container, socket: Socket, admits: () => boolean): RheaConnection {
  const connection = container.create_connection({
    container_id: 'dead-letter-office',
    max_frame_size: MAX_FRAME_SIZE,
    idle_time_out: 120_000,
    reconnect: false,
  });
  boundFrames(connection.amqp_transport, admits);
  connection.accept(socket);
  if (connection.sasl_transport) boundFrames(connection.sasl_transport.transport, () => true);
  return connection;
}

/** Reads frames as rhea does, but keeps each frame's bytes and refuses one of an impossible size. */
function boundFrames(transport: Transport, admits: () => boolean): void {
  const { read } = transport;
  transport.read = (buffer) => {
    let at = 0;
    if (!transport.header_received) {
      if (buffer.length < FRAME_HEAD) return 0;
      at = read.call(transport, buffer.subarray(0, FRAME_HEAD));
    }
    while (buffer.length - at >= FRAME_HEAD && !transport.read_complete) {
      const size = frameSize(buffer, at);
      if (buffer.length < at + size) break;
      const raw = buffer.subarray(at, at + size);
      const performative = (raw[4] as number) * 4;
      if (performative < size) checkValue(raw, performative);
      const frame = frames.read_frame(raw);
      if (frame.type !== transport.frame_type) throw new Error(`unexpected frame type ${frame.type}`);
      at += size;
      if (!frame.performative) continue;
      if (!admits()) return buffer.length;
      frame.raw = raw;
      frame.performative.dispatch(transport.handler, frame);
    }
    return at;
  };
  transport.peek_size = (buffer) =>
    transport.header_received && buffer.length >= 4 ? frameSize(buffer, 0) : undefined;
}

function frameSize(buffer: Buffer, at: number): number {
  const size = buffer.readUInt32BE(at);
  if (size < FRAME_HEAD || size > MAX_FRAME_SIZE) throw new Error(`a frame claims ${size} bytes`);
  return size;
}

/** Whether the peer takes frames of the smallest size AMQP allows (part 2, 2.7.1). */
export function acceptsFrames(connection: RheaConnection): boolean {
  return (connection.max_frame_size ?? MAX_FRAME_SIZE) >= 512;
}
