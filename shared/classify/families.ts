/**
 * Families of exceptions in .NET, Java, Node, Python and PHP, and what they mean for sending back. Only names and messages that
 * leave no doubt are here: `InvalidOperationException` or `ValueError` can be anything, and stay unjudged.
 */
import type { Advice, Category } from './evidence.ts';

/** What an exception's family says. */
export interface Family {
  readonly rule: string;
  readonly category: Category;
  readonly advice: Advice;
}

function family(rule: string, category: Category, advice: Advice): Family {
  return { rule: `exception:${rule}`, category, advice };
}

const TIMEOUT = family('timeout', 'transient', 'replay');
const CONNECTION = family('connection', 'transient', 'replay');
const THROTTLED = family('throttled', 'transient', 'replay');
const SERVER = family('http-5xx', 'transient', 'replay');
const DEADLOCK = family('deadlock', 'transient', 'replay');
const CONCURRENCY = family('concurrency', 'transient', 'replay');
const FORMAT = family('deserialisation', 'poison', 'fix-first');
const VALIDATION = family('validation', 'poison', 'fix-first');
const UNSUPPORTED = family('unsupported', 'poison', 'fix-first');
const NOT_FOUND = family('not-found', 'poison', 'fix-first');
const REFUSED = family('http-4xx', 'poison', 'fix-first');
const ACCESS = family('access', 'consumer-fault', 'fix-first');
const CODE = family('code', 'consumer-fault', 'fix-first');
const NO_HANDLER = family('no-handler', 'topology', 'fix-first');

/** By the exception's own name, lower-case, without namespace. */
const BY_NAME: ReadonlyMap<string, Family> = new Map(
  (
    [
      [
        TIMEOUT,
        'TimeoutException TaskCanceledException TimeoutRejectedException RequestTimeoutException SocketTimeoutException ' +
          'HttpTimeoutException QueryTimeoutException SQLTimeoutException LockTimeoutException TimeoutError Timeout ' +
          'ReadTimeout ConnectTimeout WriteTimeout PoolTimeout ReadTimeoutError ConnectTimeoutError ServerTimeoutError ' +
          'GatewayTimeout HeadersTimeoutError BodyTimeoutError TimeoutExceededException ETIMEDOUT ESOCKETTIMEDOUT',
      ],
      [
        CONNECTION,
        'SocketException WebException ConnectException ConnectionException UnknownHostException NoRouteToHostException ' +
          'ResourceAccessException RetryableException SQLTransientConnectionException SQLTransientException SQLRecoverableException ' +
          'TransientDataAccessException TransientDataAccessResourceException CannotGetJdbcConnectionException JDBCConnectionException ' +
          'RedisConnectionException RedisTimeoutException BrokenCircuitException IsolatedCircuitException ' +
          'CallNotPermittedException BrokerUnreachableException MongoConnectionException MongoTimeoutException ' +
          'ConnectionError ConnectionRefusedError ConnectionResetError ConnectionAbortedError BrokenPipeError MaxRetryError ' +
          'NewConnectionError ProtocolError RemoteDisconnected ClientConnectorError ServerDisconnectedError ConnectError ReadError ' +
          'EndpointConnectionError MongoServerSelectionError MongoNetworkError MongoNetworkTimeoutError SequelizeConnectionError ' +
          'SequelizeConnectionRefusedError SequelizeHostNotReachableError PrismaClientInitializationError ECONNREFUSED ECONNRESET ' +
          'EAI_AGAIN EPIPE EHOSTUNREACH ENETUNREACH',
      ],
      [
        THROTTLED,
        'TooManyRequests TooManyRequestsException ThrottlingException RateLimitExceededException RateLimitError',
      ],
      [SERVER, 'HttpServerErrorException ServiceUnavailable BadGateway InternalServerError'],
      [
        DEADLOCK,
        'DeadlockLoserDataAccessException DeadlockException DeadlockDetected LockAcquisitionException CannotAcquireLockException ' +
          'PessimisticLockingFailureException PessimisticLockException',
      ],
      [
        CONCURRENCY,
        'DbUpdateConcurrencyException DBConcurrencyException ConcurrencyException OptimisticLockException ' +
          'OptimisticLockingFailureException ObjectOptimisticLockingFailureException StaleObjectStateException ' +
          'SerializationFailure StaleDataError',
      ],
      [
        FORMAT,
        'JsonException JsonReaderException JsonSerializationException JsonParseException JsonMappingException JsonSyntaxException ' +
          'JsonProcessingException MismatchedInputException InvalidFormatException UnrecognizedPropertyException ' +
          'SerializationException DeserializationException MessageDeserializationException MessageConversionException ' +
          'MessageDecodingFailedException InvalidProtocolBufferException AvroTypeException XmlException SAXParseException ' +
          'UnexpectedValueException FormatException NumberFormatException DateTimeParseException DateTimeException SyntaxError ' +
          'JSONDecodeError UnicodeDecodeError DecodeError ParseError ParseException EncodingException',
      ],
      [
        VALIDATION,
        'ValidationException ValidationError ValidatorError ConstraintViolationException ConstraintViolationError ' +
          'MethodArgumentNotValidException ZodError SchemaError BadRequest UnprocessableEntity InvalidArgumentException',
      ],
      [UNSUPPORTED, 'NotSupportedException UnsupportedOperationException UnsupportedMediaTypeException'],
      [
        NOT_FOUND,
        'NotFoundException EntityNotFoundException ObjectNotFoundException ResourceNotFoundException ModelNotFoundException ' +
          'EmptyResultDataAccessException NoResultException NotFoundError NotFound DoesNotExist ObjectDoesNotExist NoResultFound ' +
          'KeyNotFoundException KeyError',
      ],
      [
        ACCESS,
        'UnauthorizedAccessException AuthenticationException AuthorizationException AccessDeniedException Unauthorized Forbidden',
      ],
      [
        CODE,
        'NullReferenceException IndexOutOfRangeException InvalidCastException DivideByZeroException NotImplementedException ' +
          'MissingMethodException TypeLoadException FileNotFoundException OutOfMemoryException StackOverflowException ' +
          'NullPointerException ClassCastException ArrayIndexOutOfBoundsException IndexOutOfBoundsException ' +
          'StringIndexOutOfBoundsException ClassNotFoundException NoClassDefFoundError NoSuchMethodError NoSuchFieldError ' +
          'ArithmeticException OutOfMemoryError StackOverflowError TypeError ReferenceError RangeError AttributeError NameError ' +
          'UnboundLocalError IndexError ImportError ModuleNotFoundError ZeroDivisionError NotImplementedError AssertionError ' +
          'RecursionError DivisionByZeroError ArgumentCountError ErrorException MaxAttemptsExceededException',
      ],
      [
        NO_HANDLER,
        'MessageCouldNotBeDispatchedToAnyHandlersException NoHandlerForMessageException UnknownMessageTypeException',
      ],
    ] as const
  ).flatMap(([found, names]) => names.split(' ').map((name): [string, Family] => [name.toLowerCase(), found])),
);

/** By how a name ends, where it is not listed: applications name their own exceptions by the same habit. */
const BY_ENDING: readonly (readonly [string, Family])[] = [
  ['timeoutexception', TIMEOUT],
  ['timeouterror', TIMEOUT],
  ['timeout', TIMEOUT],
  ['timedoutexception', TIMEOUT],
  ['unavailableexception', CONNECTION],
  ['unavailableerror', CONNECTION],
  ['connectionexception', CONNECTION],
  ['connectionerror', CONNECTION],
  ['deadlockexception', DEADLOCK],
  ['concurrencyexception', CONCURRENCY],
  ['deserializationexception', FORMAT],
  ['deserializationerror', FORMAT],
  ['deserialisationexception', FORMAT],
  ['serializationexception', FORMAT],
  ['parseexception', FORMAT],
  ['parseerror', FORMAT],
  ['validationexception', VALIDATION],
  ['validationerror', VALIDATION],
  ['unsupportedexception', UNSUPPORTED],
  ['notsupportedexception', UNSUPPORTED],
  ['notfoundexception', NOT_FOUND],
  ['notfounderror', NOT_FOUND],
  ['doesnotexist', NOT_FOUND],
];

/** Messages of drivers and clients whose exceptions have one name for everything, lower-case. */
const BY_MESSAGE: readonly (readonly [string, Family])[] = [
  ['deadlock', DEADLOCK],
  ['40p01', DEADLOCK],
  ['sqlstate[40001]', DEADLOCK],
  ['could not serialize access', CONCURRENCY],
  ['connection refused', CONNECTION],
  ['actively refused', CONNECTION],
  ['econnrefused', CONNECTION],
  ['connection reset', CONNECTION],
  ['econnreset', CONNECTION],
  ['eai_again', CONNECTION],
  ['no route to host', CONNECTION],
  ['name or service not known', CONNECTION],
  ['socket hang up', CONNECTION],
  ['fetch failed', CONNECTION],
  ['forcibly closed by the remote host', CONNECTION],
  ['server has gone away', CONNECTION],
  ['too many connections', CONNECTION],
  ['statuscode="unavailable"', CONNECTION],
  ['(servicecommunicationproblem)', CONNECTION],
  ['too many requests', THROTTLED],
  ['rate limit', THROTTLED],
  ['(servicebusy)', THROTTLED],
  ['timeout expired', TIMEOUT],
  ['timed out', TIMEOUT],
  ['timeout of ', TIMEOUT],
  ['etimedout', TIMEOUT],
  ['statuscode="deadlineexceeded"', TIMEOUT],
  ['(servicetimeout)', TIMEOUT],
  ['is not valid json', FORMAT],
  ['no handlers could be found for message type', NO_HANDLER],
];

/** How much of a message is looked through, characters. */
const MAX_MESSAGE = 600;

/** The family of an exception by its name, an HTTP status in its message, or its message; `undefined` when none is certain. */
export function familyOf(type: string | undefined, message: string | undefined): Family | undefined {
  const name = type === undefined ? undefined : simpleName(type);
  const exact = name === undefined ? undefined : BY_NAME.get(name);
  const text = message?.slice(0, MAX_MESSAGE).toLowerCase();
  // A client's error tells more by its status: a web exception for 404 is no broken connection.
  const status =
    text === undefined || exact === FORMAT || exact === VALIDATION ? undefined : statusFamily(httpStatus(text));
  if (status !== undefined) return status;
  // Node's fetch reports a broken connection as a TypeError.
  if (name === 'typeerror' && text?.startsWith('fetch failed')) return CONNECTION;
  if (exact !== undefined) return exact;
  if (text !== undefined) for (const [part, found] of BY_MESSAGE) if (text.includes(part)) return found;
  if (name !== undefined) for (const [ending, found] of BY_ENDING) if (name.endsWith(ending)) return found;
  return undefined;
}

/** `System.Net.Http.HttpRequestException`, `App\Oops`, `Outer+Inner`, `Client$NotFound` without what is in front; lower-case. */
function simpleName(type: string): string {
  let from = 0;
  for (let i = type.length - 1; i >= 0; i--) {
    const c = type[i];
    if (c !== '.' && c !== '\\' && c !== '+' && c !== '$') continue;
    from = i + 1;
    break;
  }
  return type.slice(from).replace(/`\d+$/, '').toLowerCase();
}

const STATUS = /\bstatus(?:[ _-]?code)?\b[^\d\n]{0,40}\b([1-5]\d\d)\b/;
const PROTOCOL = /\bhttp(?:\/\d(?:\.\d)?)? ?(?:error |status )?([1-5]\d\d)\b/;
const PHRASE =
  /(?:^|[`(: ])([45]\d\d)\)? (?:server error|client error|service unavailable|bad gateway|gateway time|internal server|too many requests|not found|bad request|unauthorized|forbidden|unprocessable|conflict)/;

/** An HTTP status where lower-case text calls it one: `status code 503`, `http 503`, `503 server error`, `(404) not found`. */
function httpStatus(text: string): number | undefined {
  const status = (STATUS.exec(text) ?? PROTOCOL.exec(text) ?? PHRASE.exec(text))?.[1];
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
