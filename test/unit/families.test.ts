import { describe, expect, test } from 'vitest';
import { familyOf } from '../../shared/classify/families.ts';

type Row = readonly [
  type: string | undefined,
  message: string | undefined,
  rule: string | undefined,
  category?: string,
];

const rule = (type: string | undefined, message: string | undefined) => familyOf(type, message);

/** Exceptions as their runtimes and libraries name them, and what they say. */
const FAMILIES: Readonly<Record<string, readonly Row[]>> = {
  '.NET': [
    ['System.TimeoutException', 'The operation has timed out.', 'timeout', 'transient'],
    ['System.Threading.Tasks.TaskCanceledException', 'A task was canceled.', 'timeout', 'transient'],
    ['Polly.Timeout.TimeoutRejectedException', undefined, 'timeout', 'transient'],
    ['Polly.CircuitBreaker.BrokenCircuitException`1', undefined, 'connection', 'transient'],
    ['System.Net.Sockets.SocketException', 'Connection refused', 'connection', 'transient'],
    ['System.Net.Http.HttpRequestException', 'Connection refused (api:443)', 'connection', 'transient'],
    [
      'System.Net.Http.HttpRequestException',
      'Response status code does not indicate success: 503 (Service Unavailable).',
      'http-5xx',
      'transient',
    ],
    [
      'System.Net.Http.HttpRequestException',
      'Response status code does not indicate success: 404 (Not Found).',
      'not-found',
      'poison',
    ],
    [
      'System.Net.Http.HttpRequestException',
      'Response status code does not indicate success: 400 (Bad Request).',
      'http-4xx',
      'poison',
    ],
    ['System.Net.WebException', 'The remote server returned an error: (401) Unauthorized.', 'access', 'consumer-fault'],
    ['Azure.RequestFailedException', 'Too many requests\nStatus: 429 (Too Many Requests)', 'throttled', 'transient'],
    ['Azure.Messaging.ServiceBus.ServiceBusException', 'The service is busy (ServiceBusy)', 'throttled', 'transient'],
    ['Grpc.Core.RpcException', 'Status(StatusCode="Unavailable", Detail="no")', 'connection', 'transient'],
    [
      'Microsoft.Data.SqlClient.SqlException',
      'Transaction (Process ID 52) was deadlocked on lock resources; deadlock victim',
      'deadlock',
      'transient',
    ],
    ['Microsoft.Data.SqlClient.SqlException', 'Execution Timeout Expired.', 'timeout', 'transient'],
    ['Microsoft.Data.SqlClient.SqlException', 'Invalid column name', undefined],
    ['Npgsql.PostgresException', '40P01: deadlock detected', 'deadlock', 'transient'],
    ['Microsoft.EntityFrameworkCore.DbUpdateConcurrencyException', undefined, 'concurrency', 'transient'],
    ['StackExchange.Redis.RedisConnectionException', undefined, 'connection', 'transient'],
    ['System.Text.Json.JsonException', undefined, 'deserialisation', 'poison'],
    ['Newtonsoft.Json.JsonReaderException', 'Unexpected character at status 503', 'deserialisation', 'poison'],
    ['System.FormatException', undefined, 'deserialisation', 'poison'],
    ['FluentValidation.ValidationException', undefined, 'validation', 'poison'],
    ['Shop.Orders.OrderValidationException', undefined, 'validation', 'poison'],
    ['Shop.CustomerNotFoundException', undefined, 'not-found', 'poison'],
    ['System.NotSupportedException', undefined, 'unsupported', 'poison'],
    ['System.NullReferenceException', undefined, 'code', 'consumer-fault'],
    ['System.IO.FileNotFoundException', undefined, 'code', 'consumer-fault'],
    ['System.UnauthorizedAccessException', undefined, 'access', 'consumer-fault'],
    ['System.InvalidOperationException', 'no', undefined],
    [
      'System.InvalidOperationException',
      'No handlers could be found for message type: Shop.Order',
      'no-handler',
      'topology',
    ],
    ['System.Exception', undefined, undefined],
  ],
  Java: [
    ['java.net.SocketTimeoutException', 'Read timed out', 'timeout', 'transient'],
    ['java.net.ConnectException', 'Connection refused', 'connection', 'transient'],
    ['java.util.concurrent.TimeoutException', undefined, 'timeout', 'transient'],
    ['java.sql.SQLTransientConnectionException', undefined, 'connection', 'transient'],
    ['org.springframework.dao.DeadlockLoserDataAccessException', undefined, 'deadlock', 'transient'],
    [
      'org.springframework.web.client.HttpServerErrorException$ServiceUnavailable',
      '503 Service Unavailable: [no body]',
      'http-5xx',
      'transient',
    ],
    [
      'org.springframework.web.client.HttpClientErrorException$TooManyRequests',
      '429 Too Many Requests',
      'throttled',
      'transient',
    ],
    [
      'org.springframework.web.client.HttpClientErrorException$NotFound',
      '404 Not Found: "none"',
      'not-found',
      'poison',
    ],
    ['jakarta.persistence.OptimisticLockException', undefined, 'concurrency', 'transient'],
    ['com.fasterxml.jackson.databind.exc.MismatchedInputException', undefined, 'deserialisation', 'poison'],
    ['java.lang.NumberFormatException', 'For input string: "x"', 'deserialisation', 'poison'],
    ['jakarta.validation.ConstraintViolationException', undefined, 'validation', 'poison'],
    ['jakarta.persistence.EntityNotFoundException', undefined, 'not-found', 'poison'],
    ['java.lang.UnsupportedOperationException', undefined, 'unsupported', 'poison'],
    ['java.lang.NullPointerException', undefined, 'code', 'consumer-fault'],
    ['java.lang.ClassNotFoundException', undefined, 'code', 'consumer-fault'],
    ['java.lang.IllegalStateException', undefined, undefined],
    ['java.lang.RuntimeException', 'deadlock found when trying to get lock', 'deadlock', 'transient'],
  ],
  Node: [
    ['Error', 'connect ECONNREFUSED 10.0.0.7:5432', 'connection', 'transient'],
    ['Error', 'getaddrinfo EAI_AGAIN api', 'connection', 'transient'],
    ['Error', 'socket hang up', 'connection', 'transient'],
    ['TypeError', 'fetch failed', 'connection', 'transient'],
    ['AxiosError', 'Request failed with status code 502', 'http-5xx', 'transient'],
    ['AxiosError', 'Request failed with status code 422', 'http-4xx', 'poison'],
    ['AxiosError', 'timeout of 5000ms exceeded', 'timeout', 'transient'],
    ['TimeoutError', undefined, 'timeout', 'transient'],
    ['MongoServerSelectionError', undefined, 'connection', 'transient'],
    ['SyntaxError', 'Unexpected token < in JSON at position 0', 'deserialisation', 'poison'],
    ['ZodError', undefined, 'validation', 'poison'],
    ['ValidationError', '"amount" is required', 'validation', 'poison'],
    ['TypeError', "Cannot read properties of undefined (reading 'id')", 'code', 'consumer-fault'],
    ['Error', 'the port is http://api:443/', undefined],
    ['Error', 'no', undefined],
  ],
  Python: [
    ['requests.exceptions.ConnectionError', undefined, 'connection', 'transient'],
    ['requests.exceptions.ReadTimeout', undefined, 'timeout', 'transient'],
    [
      'requests.exceptions.HTTPError',
      '503 Server Error: Service Unavailable for url: https://api/x',
      'http-5xx',
      'transient',
    ],
    ['requests.exceptions.HTTPError', '403 Client Error: Forbidden for url: https://api/x', 'access', 'consumer-fault'],
    ['asyncio.exceptions.TimeoutError', undefined, 'timeout', 'transient'],
    ['psycopg2.errors.DeadlockDetected', undefined, 'deadlock', 'transient'],
    ['psycopg2.errors.SerializationFailure', undefined, 'concurrency', 'transient'],
    ['sqlalchemy.exc.OperationalError', 'could not connect: Connection refused', 'connection', 'transient'],
    ['json.decoder.JSONDecodeError', undefined, 'deserialisation', 'poison'],
    ['pydantic_core._pydantic_core.ValidationError', undefined, 'validation', 'poison'],
    ['KeyError', "'customer'", 'not-found', 'poison'],
    ['shop.models.Order.DoesNotExist', undefined, 'not-found', 'poison'],
    ['AttributeError', undefined, 'code', 'consumer-fault'],
    ['ModuleNotFoundError', undefined, 'code', 'consumer-fault'],
    ['ValueError', undefined, undefined],
  ],
  PHP: [
    ['PDOException', 'SQLSTATE[40001]: Serialization failure: 1213 Deadlock found', 'deadlock', 'transient'],
    ['PDOException', 'SQLSTATE[HY000] [2002] Connection refused', 'connection', 'transient'],
    ['GuzzleHttp\\Exception\\ConnectException', undefined, 'connection', 'transient'],
    [
      'GuzzleHttp\\Exception\\ServerException',
      'Server error: `POST https://api` resulted in a `503 Service Unavailable` response',
      'http-5xx',
      'transient',
    ],
    ['App\\Exceptions\\GatewayTimeout', undefined, 'timeout', 'transient'],
    ['Illuminate\\Validation\\ValidationException', undefined, 'validation', 'poison'],
    ['Illuminate\\Database\\Eloquent\\ModelNotFoundException', undefined, 'not-found', 'poison'],
    [
      'Symfony\\Component\\Messenger\\Exception\\MessageDecodingFailedException',
      undefined,
      'deserialisation',
      'poison',
    ],
    ['Symfony\\Component\\Messenger\\Exception\\NoHandlerForMessageException', undefined, 'no-handler', 'topology'],
    ['TypeError', undefined, 'code', 'consumer-fault'],
    ['RuntimeException', undefined, undefined],
  ],
  nothing: [
    [undefined, undefined, undefined],
    ['', '', undefined],
    ['.', '(((', undefined],
    ['__proto__', 'constructor', undefined],
  ],
};

describe.each(Object.entries(FAMILIES))('exceptions of %s', (_runtime, rows) => {
  test.each(rows)('%s %s', (type, message, expected, category) => {
    const found = rule(type, message);
    expect(found?.rule).toBe(expected === undefined ? undefined : `exception:${expected}`);
    expect(found?.category).toBe(category);
    if (found !== undefined) expect(found.advice).toBe(category === 'transient' ? 'replay' : 'fix-first');
  });
});
