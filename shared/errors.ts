/** Every error of the office in one table: a stable code, the HTTP status it answers with, and what to do. */

interface ErrorEntry {
  readonly status: number;
  /** Short, the same for every occurrence (`title` of the problem details). */
  readonly title: string;
  /** What the reader can do about it. */
  readonly action: string;
}

/** The table. Codes are never renamed or reused: clients and runbooks hold on to them. */
export const ERRORS = {
  DLO_BAD_REQUEST: {
    status: 400,
    title: 'The request is not valid',
    action: 'Correct the fields named in `errors` and send the request again.',
  },
  DLO_FILTER_MASKED: {
    status: 400,
    title: 'The filter is on something that is masked',
    action:
      'Choose by other traits: what is masked cannot be asked for either, or guesses could be tried. Sequence numbers always work.',
  },
  DLO_BAD_JSON: { status: 400, title: 'The body is not JSON', action: 'Send a JSON object as UTF-8.' },
  DLO_BODY_TOO_LARGE: { status: 413, title: 'The body is too large', action: 'Send at most 256 KiB.' },
  DLO_OPERATOR_MISSING: {
    status: 400,
    title: 'The caller is not named',
    action: 'Send the header `x-operator` with your name, at most 100 printable characters; it goes into the audit.',
  },
  DLO_NOT_SIGNED_IN: {
    status: 401,
    title: 'The caller is not signed in',
    action: 'Send a token of Microsoft Entra for this office: `Authorization: Bearer <token>`.',
  },
  DLO_ROLE_MISSING: {
    status: 403,
    title: 'The caller may not do this',
    action: 'Ask for the app role that the detail names, then get a new token.',
  },
  DLO_SOURCE_UNKNOWN: {
    status: 404,
    title: 'There is no such source',
    action: 'Use a name that GET /sources lists; sources are declared in catalog.json.',
  },
  DLO_LETTER_UNKNOWN: {
    status: 404,
    title: 'There is no such letter',
    action: 'Use a sequence number that GET /sources/{source}/letters lists, or collect first.',
  },
  DLO_PLAN_UNKNOWN: { status: 404, title: 'There is no such plan', action: 'Use an id that GET /plans lists.' },
  DLO_GROUP_UNKNOWN: {
    status: 404,
    title: 'There is no such group',
    action: 'Use a fingerprint that GET /groups or a letter shows.',
  },
  DLO_BODY_GONE: {
    status: 410,
    title: 'The message is not in the dead-letter queue any more',
    action: 'Bodies are not stored; the record tells what became of the letter.',
  },
  DLO_PLAN_STATE: {
    status: 409,
    title: 'The plan is not in a state for this',
    action: 'GET the plan to see its state; a plan runs at most once, so make a new one for another run.',
  },
  DLO_PLAN_BLOCKED: {
    status: 409,
    title: 'The plan has findings that block it',
    action: 'Do what each finding with level `block` says, then make a new plan.',
  },
  DLO_PLAN_EXPIRED: {
    status: 409,
    title: 'The plan is too old to run',
    action: 'Make a new plan; what it would send may have changed.',
  },
  DLO_WRONG_ACTION: {
    status: 409,
    title: 'The plan has another action',
    action:
      'A replay plan takes POST /plans/{id}/run, /resume, /cancel; a discard plan takes POST /plans/{id}/discard, and /resume, /cancel below it.',
  },
  DLO_CONFIRM_MISMATCH: {
    status: 409,
    title: 'The confirmation does not match the plan',
    action: 'Repeat the number of letters of the plan in `confirm`.',
  },
  DLO_SOURCE_BUSY: {
    status: 409,
    title: 'Another run holds the source',
    action: 'Wait until it ends, or pause it.',
  },
  DLO_LETTERS_UNENDED: {
    status: 409,
    title: 'Another plan has begun with these letters',
    action:
      'Resume the plan that `plan` names until it ends, or cancel it; then make a new plan, which tells what may have been sent.',
  },
  DLO_CONTENDED: {
    status: 409,
    title: 'Somebody else changed this at the same time',
    action: 'Read it again and repeat the call.',
  },
  DLO_NOT_RESENDABLE: {
    status: 409,
    title: 'The message cannot be sent back exactly as it came',
    action: 'Send it back by hand, or discard it.',
  },
  DLO_TARGET_UNAVAILABLE: {
    status: 409,
    title: 'The target of the replay cannot be reached',
    action: 'Check that the entity exists, is enabled, and that the office may send to it.',
  },
  DLO_BROKER_UNAVAILABLE: {
    status: 503,
    title: 'The broker does not answer',
    action: 'Nothing was lost. Try again; GET /health tells more.',
  },
  DLO_STORE_UNAVAILABLE: {
    status: 503,
    title: 'The store does not answer',
    action: 'Nothing was lost. Try again; GET /health tells more.',
  },
  DLO_ROW_REFUSED: {
    status: 500,
    title: 'The store does not take what was to be written',
    action:
      'Nothing was lost, and trying again does not help: it is too large for the store, or not in its form. Report it.',
  },
  DLO_RECORD_UNREADABLE: {
    status: 409,
    title: 'A stored record cannot be read',
    action: 'Somebody wrote to the table by other means. Repair or remove the row that the detail names.',
  },
  DLO_CATALOG_INVALID: {
    status: 503,
    title: 'The catalog is not valid',
    action: 'Correct what the detail names and restart the office.',
  },
  DLO_SETTINGS_INVALID: {
    status: 503,
    title: 'The app settings or host.json are not valid',
    action: 'Correct the setting that the detail names and restart the office.',
  },
  DLO_NODE_TOO_OLD: {
    status: 503,
    title: 'The office does not run on this version of Node.js',
    action: 'Set the runtime version of the function app to one that the detail names.',
  },
  DLO_PACKAGE_INCOMPLETE: {
    status: 503,
    title: 'The package lacks a file',
    action: 'Build the package and deploy it whole: `npm run package`.',
  },
  DLO_INTERNAL: {
    status: 500,
    title: 'Something unexpected happened',
    action: 'Look up the request id in the log and report it.',
  },
} as const satisfies Record<string, ErrorEntry>;

/** A code of the error table. */
export type ErrorCode = keyof typeof ERRORS;

/** An error of the office. `message` says what happened this time; the table says what to do. */
export class OfficeError extends Error {
  override readonly name = 'OfficeError';
  readonly code: ErrorCode;
  /** Facts for the caller, shown beside the message. No personal data. */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; data?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.data = options.data ?? {};
  }
}

/** Whether `error` is an {@link OfficeError}, of one of `codes` if given. */
export function isOfficeError(error: unknown, ...codes: ErrorCode[]): error is OfficeError {
  return error instanceof OfficeError && (codes.length === 0 || codes.includes(error.code));
}

/**
 * Whether `error` tells a mistake of the program or a part that its package lacks, and nothing about what it works with: trying
 * again finds the same. What the engine throws has no cause; `fetch` tells a broken connection by a `TypeError` with one.
 */
export function isMistake(error: unknown): error is Error {
  return chain(error).some((one) => one instanceof Error && (missingFile(one) !== undefined || isSlip(one)));
}

function isSlip(error: Error): boolean {
  // What `JSON.parse` says is of a text that came from elsewhere, in every wording of it.
  if (error instanceof SyntaxError && error.message.includes('JSON')) return false;
  return error.cause === undefined && MISTAKES.some((kind) => error instanceof kind);
}

const MISTAKES = [TypeError, ReferenceError, RangeError, SyntaxError, EvalError, URIError];

/** What a mistake says, by the name of its kind, at most 300 characters. */
export function mistakeText(error: unknown): string {
  const innermost = chain(error).findLast((one) => one instanceof Error);
  const incomplete = incompletePackage(error);
  if (incomplete !== undefined) return incomplete.message;
  return errorText(innermost ?? error, 300);
}

/** `DLO_PACKAGE_INCOMPLETE` naming the file, when `error` is that a part of the package could not be loaded. */
export function incompletePackage(error: unknown): OfficeError | undefined {
  for (const one of chain(error)) {
    const file = missingFile(one);
    if (file !== undefined) {
      return new OfficeError('DLO_PACKAGE_INCOMPLETE', `the package lacks the file "${file}"`, { cause: error });
    }
  }
  return undefined;
}

/** Name of the file that could not be found by `require` or `import`, without its folder. */
function missingFile(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  if (error.code !== 'MODULE_NOT_FOUND' && error.code !== 'ERR_MODULE_NOT_FOUND') return undefined;
  return /^Cannot find \w+ '(?:[^']*[\\/])?([^']+)'/.exec(error.message)?.[1] ?? 'unknown';
}

/** An error with its causes, the outermost first. */
function chain(error: unknown): unknown[] {
  const found: unknown[] = [];
  for (let current = error; current !== undefined && found.length < 5; ) {
    found.push(current);
    current = current instanceof Error ? current.cause : undefined;
  }
  return found;
}

/**
 * The text of anything thrown, with those of its causes that it does not quote already, at most `max` characters. A mistake of the
 * program is told with its kind.
 */
export function errorText(error: unknown, max = 1000): string {
  let text = '';
  for (const one of chain(error)) {
    const part = one instanceof Error ? ownText(one) : plainText(one);
    if (!text.includes(part)) text = text === '' ? part : `${text}: ${part}`;
  }
  return text.slice(0, max);
}

function ownText(error: Error): string {
  if (error.message === '') return error.name;
  return isSlip(error) ? `${error.name}: ${error.message}` : error.message;
}

/** Anything can be thrown, also what cannot be turned into text; AMQP libraries throw a condition with a description. */
function plainText(value: unknown): string {
  try {
    if (typeof value !== 'object' || value === null) return String(value);
    const { condition, description, message } = value as Record<string, unknown>;
    const parts = [condition, description ?? message].filter((part) => part !== undefined && part !== null);
    return parts.length > 0 ? parts.map(String).join(': ') : String(value);
  } catch {
    return typeof value;
  }
}
