/** AMQP error conditions this broker answers with, each with the status code it has in a `$management` answer. */
const STATUS = {
  'amqp:decode-error': 400,
  'amqp:internal-error': 500,
  'amqp:invalid-field': 400,
  'amqp:link:message-size-exceeded': 403,
  'amqp:not-allowed': 400,
  'amqp:not-found': 404,
  'amqp:not-implemented': 501,
  'amqp:resource-limit-exceeded': 403,
  'amqp:unauthorized-access': 401,
  'com.microsoft:argument-error': 400,
  'com.microsoft:argument-out-of-range': 400,
  'com.microsoft:entity-disabled': 400,
  'com.microsoft:entity-already-exists': 409,
  'com.microsoft:message-lock-lost': 410,
  'com.microsoft:message-not-found': 404,
  'com.microsoft:server-busy': 503,
  'com.microsoft:session-cannot-be-locked': 410,
  'com.microsoft:session-lock-lost': 410,
  'com.microsoft:timeout': 408,
} as const;

/** A condition this broker uses of its own accord. Faults may name any other. */
export type Condition = keyof typeof STATUS;

/** A refusal that the client is told, as condition and description. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  readonly condition: string;
  /** HTTP-like status for `$management` and `$cbs` answers. */
  readonly status: number;

  constructor(condition: Condition | (string & {}), description: string, options: ErrorOptions = {}) {
    super(description, options);
    this.condition = condition;
    this.status = condition in STATUS ? STATUS[condition as Condition] : 500;
  }
}

/** The refusal for any caught value: itself when it is one, else an internal error that names the cause. */
export function asBrokerError(caught: unknown): BrokerError {
  if (caught instanceof BrokerError) return caught;
  const text = caught instanceof Error ? caught.message : String(caught);
  if (caught instanceof Error && caught.name === 'AmqpFormatError') {
    return new BrokerError('amqp:decode-error', text, { cause: caught });
  }
  return new BrokerError('amqp:internal-error', text, { cause: caught });
}

/** What every settlement, renewal or removal says when its lock token no longer holds a lock. */
export function lockLost(): BrokerError {
  return new BrokerError(
    'com.microsoft:message-lock-lost',
    'The lock supplied is invalid. Either the lock expired, or the message has already been removed from the queue.',
  );
}
