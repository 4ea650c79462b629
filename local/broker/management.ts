/**
 * The `$management` operations on a queue, subscription or dead-letter queue (Service Bus documentation, "AMQP in
 * Service Bus: request/response-based operations"; details as seen on the wire). Pure: an entity and a request in, an
 * answer out. Operations on sessions, schedules and rules have files of their own.
 */
import { encode, encodeList } from '../../shared/brokers/serviceBus/amqp.ts';
import { encodeLockToken, encodeStringMap, encodeTimestamps, swapGuid } from './encoding.ts';
import type { Asking, Entity, Settlement } from './entity.ts';
import { BrokerError } from './errors.ts';
import { propertiesOf } from './outcome.ts';
import { deadLetterProperties } from './reasons.ts';
import { Arguments, malformed, type Request } from './request.ts';
import { manageRules, RULE_OPERATIONS } from './rules/operations.ts';
import type { RuleSet } from './rules/rule-set.ts';
import type { Right } from './sas.ts';
import { SCHEDULE_OPERATIONS } from './schedule-operations.ts';
import { SESSION_OPERATIONS } from './session-operations.ts';

/** A successful answer; `body` is an encoded value. */
export interface Answer {
  readonly status: 200 | 204;
  readonly body: Buffer;
}

/** The service caps a page at 250 messages. */
const MAX_PAGE = 250;
/** What the messages of a page weigh together at most, bytes; one of them is always given. The service gives fewer as it likes. */
const MAX_PAGE_BYTES = 1_048_576;

/** The entity a request is about, and who asks. */
export interface Managed {
  readonly entity: Entity;
  /** Stands for the connection. */
  readonly caller: object;
  /** What a topic keeps is scheduled; everything else is in its subscriptions. */
  readonly isTopic: boolean;
  /** Those of a subscription. */
  readonly rules: RuleSet | undefined;
}

/** Carries out one kind of request at `now`, milliseconds since 1970. */
export type Operation = (managed: Managed, args: Arguments, now: number) => Answer;

const OPERATIONS: Record<string, Operation> = {
  'com.microsoft:peek-message': peekMessage,
  'com.microsoft:renew-lock': renewLock,
  'com.microsoft:receive-by-sequence-number': receiveBySequenceNumber,
  'com.microsoft:update-disposition': updateDisposition,
  ...SESSION_OPERATIONS,
  ...SCHEDULE_OPERATIONS,
};

/**
 * Carries out a request at `now`, milliseconds since 1970.
 * Throws {@link BrokerError}: 501 for an unknown operation, 400 for bad arguments.
 */
export function manage(managed: Managed, request: Request, now: number): Answer {
  const { entity, isTopic, rules } = managed;
  const onRules = Object.hasOwn(RULE_OPERATIONS, request.operation) ? RULE_OPERATIONS[request.operation] : undefined;
  if (onRules) return manageRules(onRules, rules, new Arguments(request.body), now);
  const operation = Object.hasOwn(OPERATIONS, request.operation) ? OPERATIONS[request.operation] : undefined;
  if (!operation) {
    throw new BrokerError('amqp:not-implemented', `The operation '${request.operation}' is not supported.`);
  }
  if (isTopic && !Object.hasOwn(SCHEDULE_OPERATIONS, request.operation)) {
    throw new BrokerError('amqp:not-allowed', `'${entity.path}' is a topic: its messages are in its subscriptions.`);
  }
  entity.check('manage');
  return operation(managed, new Arguments(request.body), now);
}

/** Scheduling is sending. Everything else is for receivers, also the rules (documentation of the clients' rule managers). */
export function rightFor(operation: string): Right {
  return /^com\.microsoft:(schedule-message|cancel-scheduled-message)$/.test(operation) ? 'Send' : 'Listen';
}

/** What an update-disposition request asks for, for the choice of a fault; `undefined` for any other request. */
export function settlementKind(request: Request): Settlement['kind'] | undefined {
  if (request.operation !== 'com.microsoft:update-disposition') return undefined;
  return STATUS_KINDS[new Arguments(request.body).text('disposition-status') ?? ''];
}

/** The locks a request names, for a fault that takes them away; none when it is malformed, which its answer will say. */
export function locksOf(request: Request): { readonly tokens: string[]; readonly session: string | undefined } {
  try {
    const args = new Arguments(request.body);
    const renewsSession = request.operation === 'com.microsoft:renew-session-lock';
    return {
      tokens: args.raw('lock-tokens') ? lockTokens(args) : [],
      session: renewsSession ? args.text('session-id') : undefined,
    };
  } catch {
    return { tokens: [], session: undefined };
  }
}

// 'defered' is how the service spells it.
const STATUS_KINDS: Record<string, Settlement['kind']> = {
  completed: 'complete',
  abandoned: 'abandon',
  defered: 'defer',
  suspended: 'dead-letter',
};

/**
 * Which messages a request may touch: on an entity with sessions those of the one it names, whose lock it needs. Dead
 * letters keep their session id, and clients name it when they settle one; there it means nothing.
 */
function askingOf({ entity, caller }: Managed, args: Arguments): Asking {
  const id = args.text('session-id');
  if (id === undefined || !entity.sessions) return { caller };
  entity.sweep();
  return { caller, session: entity.sessions.lockOf(id, caller) };
}

/** Peeking by session needs no lock. */
function peekMessage({ entity }: Managed, args: Arguments): Answer {
  const session = args.text('session-id');
  if (session !== undefined && !entity.sessions) {
    throw new BrokerError('amqp:not-implemented', `'session-id' is not supported: '${entity.path}' has no sessions.`);
  }
  const count = args.integer('message-count', 'int');
  if (count < 1n) throw new BrokerError('com.microsoft:argument-out-of-range', "'message-count' must be positive.");
  const omitBody = args.flag('omit-message-body');
  const page = count > MAX_PAGE ? MAX_PAGE : Number(count);
  const entries = entity.peek(args.integer('from-sequence-number', 'long'), page, session);
  const encoded = pageOf(entries, (entry) => entity.encoded(entry, omitBody));
  const messages = encoded.map((bytes) => encodeStringMap({ message: encode.binary(bytes) }));
  return {
    status: messages.length > 0 ? 200 : 204,
    body: encodeStringMap({ messages: encodeList(messages) }),
  };
}

/** As many of the first entries as a page may weigh. */
function pageOf<T>(entries: readonly T[], encode: (entry: T) => Buffer): Buffer[] {
  const page: Buffer[] = [];
  let weight = 0;
  for (const entry of entries) {
    const bytes = encode(entry);
    weight += bytes.length;
    if (page.length > 0 && weight > MAX_PAGE_BYTES) break;
    page.push(bytes);
  }
  return page;
}

function renewLock({ entity }: Managed, args: Arguments): Answer {
  const expirations = entity.renew(lockTokens(args));
  return { status: 200, body: encodeStringMap({ expirations: encodeTimestamps(expirations) }) };
}

function receiveBySequenceNumber(managed: Managed, args: Arguments): Answer {
  const { entity } = managed;
  const asking = askingOf(managed, args);
  const numbers = args.longs('sequence-numbers');
  const mode = args.integer('receiver-settle-mode', 'uint', 'ubyte');
  if (mode !== 0n && mode !== 1n) throw malformed("'receiver-settle-mode' must be 0 or 1.");
  const messages =
    mode === 1n
      ? entity.lockDeferred(numbers, asking).map(({ entry, tag }) =>
          encodeStringMap({
            message: encode.binary(entity.encoded(entry, false, true)),
            'lock-token': encodeLockToken(tag),
          }),
        )
      : entity
          .removeDeferred(numbers, asking)
          .map((entry) => encodeStringMap({ message: encode.binary(entity.encoded(entry)) }));
  return { status: 200, body: encodeStringMap({ messages: encodeList(messages) }) };
}

function updateDisposition(managed: Managed, args: Arguments): Answer {
  const kind = STATUS_KINDS[args.text('disposition-status') ?? ''];
  if (!kind) throw malformed("'disposition-status' must be completed, abandoned, defered or suspended.");
  const properties = propertiesOf(args.raw('properties-to-modify'));
  if (kind === 'dead-letter') {
    properties.push(...deadLetterProperties(args.text('deadletter-reason'), args.text('deadletter-description')));
  }
  const settlement: Settlement = kind === 'complete' || kind === 'release' ? { kind } : { kind, properties };
  managed.entity.settle(lockTokens(args), settlement, askingOf(managed, args));
  return { status: 200, body: encodeStringMap({}) };
}

function lockTokens(args: Arguments): string[] {
  return args.uuids('lock-tokens').map((uuid) => swapGuid(uuid).toString('hex'));
}
