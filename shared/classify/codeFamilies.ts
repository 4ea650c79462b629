/**
 * Codes in an error's message: a status of HTTP or gRPC, a SQLSTATE, an AMQP condition, an error number of a driver. They say the same in
 * every language of the world. All patterns are of bounded length.
 */
import {
  ACCESS,
  CODE,
  CONCURRENCY,
  CONNECTION,
  CONSTRAINT,
  DEADLOCK,
  type Family,
  LOCK_LOST,
  NO_HANDLER,
  NOT_FOUND,
  REFUSED,
  SERVER,
  THROTTLED,
  TIMEOUT,
  VALIDATION,
} from './family.ts';

/**
 * The family by a code in `text` (lower-case). `name` is the exception's own, lower-case: some drivers write bare codes. `named` is
 * asked for codes that are names, as those of AWS are.
 */
export function codeFamily(
  text: string,
  name: string | undefined,
  named: (code: string) => Family | undefined,
): Family | undefined {
  const aws = /^an error occurred \((\w{1,80})\) when calling/.exec(text)?.[1];
  if (aws !== undefined) {
    const found = named(aws);
    if (found !== undefined) return found;
  }
  return grpcFamily(text) ?? sqlFamily(text, name) ?? conditionFamily(text) ?? statusFamily(httpStatus(text, name));
}

const GRPC: Readonly<Record<string, Family>> = {
  unavailable: CONNECTION,
  deadlineexceeded: TIMEOUT,
  cancelled: TIMEOUT,
  resourceexhausted: THROTTLED,
  aborted: CONCURRENCY,
  invalidargument: VALIDATION,
  outofrange: VALIDATION,
  notfound: NOT_FOUND,
  alreadyexists: CONSTRAINT,
  permissiondenied: ACCESS,
  unauthenticated: ACCESS,
  unimplemented: CODE,
};
/** .NET, Go, Python, Rust; then Java, where it stands first, and Node, with its number in front. */
const GRPC_FORMS: readonly RegExp[] = [
  /\b(?:statuscode ?= ?"?|code = |statuscode\.|status: )'?([a-z_]{5,20})\b/,
  /^(?:\d{1,2} )?([a-z]{5,16}(?:_[a-z]{4,9})?)(?::|$)/,
];

function grpcFamily(text: string): Family | undefined {
  for (const form of GRPC_FORMS) {
    const code = form.exec(text)?.[1]?.replaceAll('_', '');
    // `aborted` and `cancelled` alone are words that anybody writes.
    if (code === undefined || !Object.hasOwn(GRPC, code)) continue;
    if (form === GRPC_FORMS[0] || (code !== 'aborted' && code !== 'cancelled')) return GRPC[code];
  }
  return undefined;
}

/** By the SQLSTATE itself, or else by its class, the first two characters (ISO 9075; PostgreSQL, "Error Codes"). */
const SQLSTATE: Readonly<Record<string, Family>> = {
  '08': CONNECTION,
  '22': VALIDATION,
  '23': CONSTRAINT,
  '25006': CONNECTION, // read only: the server is not the primary any more
  '28': ACCESS,
  '40': DEADLOCK,
  '40001': CONCURRENCY,
  '40002': CONSTRAINT,
  '42': CODE,
  '42501': ACCESS,
  '53': THROTTLED,
  '53300': CONNECTION,
  '54': CODE,
  '55p03': DEADLOCK,
  '57014': TIMEOUT,
  '57p': CONNECTION,
  '58': SERVER,
};
const STATE = /\bsqlstate[\s:=#([]{0,3}"?([0-9a-z]{5})\b/;
/** Npgsql, `pq` and others put it in front. */
const BARE_STATE = /^\(?([0-9][0-9a-z]\d[0-9a-z]{2}|[0-9][0-9a-z]p\d\d)\)?: /;

function sqlFamily(text: string, name: string | undefined): Family | undefined {
  const state =
    STATE.exec(text)?.[1] ??
    (name === 'postgresexception' || name === 'psqlexception' ? BARE_STATE.exec(text)?.[1] : undefined);
  if (state !== undefined) {
    // MySQL has one state for a deadlock, and calls it one.
    if (state === '40001' && text.includes('deadlock')) return DEADLOCK;
    for (const length of [5, 3, 2]) {
      const found = SQLSTATE[state.slice(0, length)];
      if (found !== undefined) return found;
    }
  }
  const oracle = /\bora-(\d{5})\b/.exec(text)?.[1];
  return oracle === undefined ? undefined : ORACLE[oracle];
}

const ORACLE: Readonly<Record<string, Family>> = {
  '00001': CONSTRAINT,
  '01400': CONSTRAINT,
  '02291': CONSTRAINT,
  '02292': CONSTRAINT,
  '12899': VALIDATION,
  '00054': DEADLOCK,
  '00060': DEADLOCK,
  '08177': CONCURRENCY,
  '01013': TIMEOUT,
  '12170': TIMEOUT,
  '01033': CONNECTION,
  '01089': CONNECTION,
  '03113': CONNECTION,
  '03114': CONNECTION,
  '03135': CONNECTION,
  '12514': CONNECTION,
  '12541': CONNECTION,
  '12545': CONNECTION,
  '12560': CONNECTION,
  '01017': ACCESS,
  '01031': ACCESS,
  '00904': CODE,
  '00942': CODE,
};

/** Conditions of AMQP and of Service Bus, as its clients print them. */
const CONDITIONS: readonly (readonly [string, Family])[] = [
  ['com.microsoft:server-busy', THROTTLED],
  ['amqp:resource-limit-exceeded', THROTTLED],
  ['com.microsoft:timeout', TIMEOUT],
  ['com.microsoft:operation-cancelled', TIMEOUT],
  ['com.microsoft:message-lock-lost', LOCK_LOST],
  ['com.microsoft:session-lock-lost', LOCK_LOST],
  ['com.microsoft:entity-disabled', ACCESS],
  ['com.microsoft:auth-failed', ACCESS],
  ['amqp:unauthorized-access', ACCESS],
  ['amqp:link:detach-forced', CONNECTION],
  ['amqp:connection:forced', CONNECTION],
  ['amqp:connection:framing-error', CONNECTION],
  ['amqp:internal-error', SERVER],
  ['amqp:not-found', NO_HANDLER],
  ['amqp:link:message-size-exceeded', REFUSED],
  ['amqp:decode-error', VALIDATION],
];

function conditionFamily(text: string): Family | undefined {
  if (!text.includes('amqp:') && !text.includes('com.microsoft:')) return undefined;
  return CONDITIONS.find(([condition]) => text.includes(condition))?.[1];
}

const STATUS = /\b(?:status|response)(?:[ _-]?code)?\b[^\d\n]{0,60}\b([1-5]\d\d)\b/;
const SURE_STATUS =
  /\b(?:status[ _-]?code|response code|http status|(?:unexpected|with|returned|got) status|status(?=["']?[:=]))["']?[ :=]{1,3}(?:is |was |of |does not indicate success: )?(?:\w{1,30} \()?([45]\d\d)\b/;
const PROTOCOL = /\bhttp(?:\/\d(?:\.\d)?)?:? ?(?:error |status |code )?([1-5]\d\d)\b/;
const PHRASE =
  /(?:^|[`'(: "])([45]\d\d)\)?:? \(?(?:server error|client error|service unavailable|service temporarily|bad gateway|gateway time|internal server|too many requests|not found|bad request|unauthorized|forbidden|unprocessable|conflict|precondition)/;

/** An HTTP status where lower-case text calls it one: `status code 503`, `http 503`, `503 server error`, `(404) not found`. */
function httpStatus(text: string, name: string | undefined): number | undefined {
  // Untyped text may hold any number: there it must say that it is a status.
  const status = ((name === undefined ? SURE_STATUS : STATUS).exec(text) ??
    PROTOCOL.exec(text) ??
    PHRASE.exec(text) ??
    (name === 'webexception' ? /\(([45]\d\d)\)/.exec(text) : undefined))?.[1];
  return status === undefined ? undefined : Number(status);
}

function statusFamily(status: number | undefined): Family | undefined {
  if (status === undefined || status < 400) return undefined;
  if (status >= 500) return SERVER;
  if (status === 408) return TIMEOUT;
  if (status === 429) return THROTTLED;
  if (status === 401 || status === 403 || status === 407) return ACCESS;
  if (status === 404 || status === 410) return NOT_FOUND;
  if (status === 409 || status === 412 || status === 423) return CONCURRENCY;
  return REFUSED;
}
