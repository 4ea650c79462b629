/** What the tests of the pure core share: a clock that stands still, entities without sockets, and messages. */
import { Entity, type EntitySettings } from '../../local/broker/entity.ts';
import { BrokerError } from '../../local/broker/errors.ts';
import { type Arrival, receiveMessage } from '../../local/broker/message.ts';
import { deadLetterSettings } from '../../local/broker/settings.ts';
import { encode, encodeList, encodeSection, SECTION } from '../../shared/brokers/serviceBus/amqp.ts';
import { dataSection, mapSection, typedEntries } from './harness.ts';

export const START = 1_700_000_000_000;

/** Everything an entity needs, and the hand that moves its clock. */
export class Core {
  readonly clock = { time: START, now: () => this.clock.time };
  #tokens = 0;
  readonly #entities: Entity[] = [];
  readonly context = {
    clock: this.clock,
    lockToken: () => {
      const token = Buffer.alloc(16);
      token.writeUInt32BE(++this.#tokens);
      return token;
    },
  };

  open(path: string, settings: Partial<EntitySettings> = {}, bindsDeferred = true) {
    const all: EntitySettings = {
      lockDuration: 10_000,
      maxDeliveryCount: 3,
      defaultTimeToLive: Number.POSITIVE_INFINITY,
      deadLetteringOnMessageExpiration: true,
      ...settings,
    };
    const letterSettings = deadLetterSettings(all, bindsDeferred);
    const deadLetters = new Entity(`${path}/$DeadLetterQueue`, letterSettings, this.context);
    const queue = new Entity(path, all, this.context, deadLetters);
    this.#entities.push(queue, deadLetters);
    return { queue, deadLetters };
  }

  /** Moves the clock and lets everything fall due. */
  advance(ms: number): void {
    this.clock.time += ms;
    for (const entity of this.#entities) entity.sweep();
  }
}

export interface MessageOptions {
  readonly id?: string;
  readonly session?: string;
  readonly partitionKey?: string;
  readonly scheduledFor?: number;
  readonly ttl?: number;
  readonly absoluteExpiry?: number;
  readonly body?: string;
}

/** A message as it comes in. */
export function arrival(options: MessageOptions = {}): Arrival {
  const none = encode.null();
  const { id, session, partitionKey, scheduledFor, ttl, absoluteExpiry, body = 'body' } = options;
  const properties = Array.from({ length: 11 }, () => none);
  if (id !== undefined) properties[0] = encode.string(id);
  if (absoluteExpiry !== undefined) properties[8] = encode.timestamp(absoluteExpiry);
  if (session !== undefined) properties[10] = encode.string(session);
  const annotations: Record<string, Buffer> = {};
  if (partitionKey !== undefined) annotations['x-opt-partition-key'] = encode.string(partitionKey);
  if (scheduledFor !== undefined) annotations['x-opt-scheduled-enqueue-time'] = encode.timestamp(scheduledFor);
  const sections = [mapSection(SECTION.messageAnnotations, annotations)];
  if (ttl !== undefined) {
    sections.unshift(encodeSection(SECTION.header, encodeList([none, none, encode.uint(ttl)])));
  }
  sections.push(encodeSection(SECTION.properties, encodeList(properties)), dataSection(body));
  return receiveMessage(Buffer.concat(sections), () => 'generated');
}

/** Locks the next message, which must be there. */
export function lock(entity: Entity, ...session: Parameters<Entity['lockNext']>) {
  const locked = entity.lockNext(...session);
  if (!locked) throw new Error('nothing to lock');
  return locked;
}

export function numbers(entity: Entity): bigint[] {
  return entity.all().map((entry) => entry.sequenceNumber);
}

/** Reason and description of the dead letter in this place. */
export function reasonOf(entity: Entity, at = 0): unknown[] {
  const entry = entity.all()[at];
  const properties = entry ? typedEntries(entry.message.bytes, SECTION.applicationProperties) : {};
  return [properties.DeadLetterReason?.value, properties.DeadLetterErrorDescription?.value];
}

export function conditionOf(act: () => unknown): string {
  try {
    act();
  } catch (caught) {
    if (caught instanceof BrokerError) return caught.condition;
    throw caught;
  }
  return 'nothing was thrown';
}
