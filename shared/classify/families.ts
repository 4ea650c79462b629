/**
 * Families of exceptions by name, in .NET, Java, Node, Python, PHP, Ruby and Go, and what they mean for sending back. Only names
 * that leave no doubt are here: `InvalidOperationException` or `ValueError` can be anything, and stay unjudged.
 */
import { codeFamily } from './codeFamilies.ts';
import {
  ACCESS,
  CODE,
  CONCURRENCY,
  CONNECTION,
  CONSTRAINT,
  DEADLOCK,
  type Family,
  FORMAT,
  LOCK_LOST,
  NO_HANDLER,
  NOT_FOUND,
  SERVER,
  THROTTLED,
  TIMEOUT,
  UNSUPPORTED,
  VALIDATION,
} from './family.ts';
import { toldFamily } from './toldFamilies.ts';

/** By the exception's own name, lower-case, without namespace. */
const BY_NAME: ReadonlyMap<string, Family> = new Map(
  (
    [
      [
        TIMEOUT,
        'TimeoutException TaskCanceledException TimeoutRejectedException RequestTimeoutException SocketTimeoutException ' +
          'HttpTimeoutException QueryTimeoutException SQLTimeoutException LockTimeoutException TimeoutError Timeout ' +
          'ReadTimeout ConnectTimeout WriteTimeout PoolTimeout ReadTimeoutError ConnectTimeoutError ServerTimeoutError ' +
          'GatewayTimeout HeadersTimeoutError BodyTimeoutError TimeoutExceededException ETIMEDOUT ESOCKETTIMEDOUT ' +
          'OperationCanceledException RequestTimeoutError ConnectTimeoutException ConnectionTimeoutException ' +
          'ReadTimeoutException WriteTimeoutException AsyncRequestTimeoutException ClientTimeout OpenTimeout ' +
          'WriteTimeoutError Timeout::Error TimeLimitExceeded SoftTimeLimitExceeded QueryCanceled QueryCanceledError ' +
          'QueryCanceledException StatementTimeout LockWaitTimeout UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT ' +
          'UND_ERR_BODY_TIMEOUT ECONNABORTED ESOCKETTIMEOUT RequestTimeout TimeoutCancellationException ' +
          'MongoExecutionTimeoutException MongoWaitQueueTimeoutException OperationTimedOutException ' +
          'DriverTimeoutException',
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
          'EAI_AGAIN EPIPE EHOSTUNREACH ENETUNREACH ' +
          'HttpRequestException HttpIOException HttpHostConnectException WebClientRequestException RemoteProtocolError ' +
          'WriteError NetworkError CloseError PrematureCloseException NoHttpResponseException ' +
          'ConnectionClosedException ConnectionPoolTimeoutException ClosedChannelException ClosedConnectionException ' +
          'SocketError SocketClosedException PortUnreachableException ' +
          'ConnectionInterruptedError ConnectionDoesNotExistError CannotConnectNowError ' +
          'TooManyConnectionsError TooManyConnections ConnectionFailure ConnectionFailed ConnectionBad UnableToSend ' +
          'ConnectionNotEstablished ConnectionTimeoutError CannotConnectError ServerSelectionTimeoutError AutoReconnect ' +
          'NetworkTimeout NotPrimaryError NotMasterError MongoNotPrimaryException MongoNodeIsRecoveringException ' +
          'ClientOSError ClientConnectorDNSError ClientConnectionError ServerConnectionError ClientPayloadError ' +
          'IncompleteRead IncompleteReadError ChunkedEncodingError ConnectionClosed ConnectionClosedError ' +
          'AdminShutdown CrashShutdown CannotConnectNow AMQPConnectionError AMQPConnectorException ' +
          'AlreadyClosedException AutorecoveringConnectionException KafkaConnectionError NoBrokersAvailable ' +
          'NoBrokersAvailableError BrokerNotAvailableError KafkaJSConnectionError KafkaJSBrokerNotFound ' +
          'ServiceUnreachable UnreachableError TransientException SQLNonTransientConnectionException ' +
          'CommunicationsException CommunicationException DataAccessResourceFailureException JedisConnectionException ' +
          'RedisConnectionFailureException CircuitBreakerOpenException CircuitBreakerError ' +
          'OpenCircuitError ECONNECTION EHOSTDOWN ENETDOWN ENOTFOUND ENOTCONN UND_ERR_SOCKET ' +
          'PROTOCOL_CONNECTION_LOST P1001 P1002 P1017 P2024 SequelizeConnectionTimedOutError ' +
          'SequelizeConnectionAcquireTimeoutError',
      ],
      [
        THROTTLED,
        'TooManyRequests TooManyRequestsException ThrottlingException RateLimitExceededException RateLimitError ' +
          'ThrottledException Throttling ThrottledError RateLimitExceeded RateLimited RateLimiterRejectedException ' +
          'RequestNotPermitted RequestLimitExceeded ProvisionedThroughputExceededException ' +
          'ProvisionedThroughputExceeded LimitExceededException TooManyRequestsError SlowDown ServerBusy ' +
          'ServerBusyException BulkheadRejectedException BulkheadFullException KafkaThrottlingException ' +
          'QuotaExceededException ResourceExhausted',
      ],
      [
        SERVER,
        'HttpServerErrorException ServiceUnavailable BadGateway InternalServerError ' +
          'InternalServerErrorException ServiceUnavailableError ServiceUnavailableException BadGatewayException ' +
          'HttpServerError InternalFailure ServerException InternalServerException',
      ],
      [
        DEADLOCK,
        'DeadlockLoserDataAccessException DeadlockException DeadlockDetected LockAcquisitionException CannotAcquireLockException ' +
          'PessimisticLockingFailureException PessimisticLockException ' +
          'Deadlocked DeadlockDetectedError DeadlockDetectedException LockNotAvailable LockNotAvailableError ' +
          'LockWaitTimeoutException TransactionRollbackError MySQLTransactionRollbackException P2034',
      ],
      [
        CONCURRENCY,
        'DbUpdateConcurrencyException DBConcurrencyException ConcurrencyException OptimisticLockException ' +
          'OptimisticLockingFailureException ObjectOptimisticLockingFailureException StaleObjectStateException ' +
          'SerializationFailure StaleDataError ' +
          'StaleObjectError StaleStateException OptimisticLockError OptimisticConcurrencyException ' +
          'ConditionalCheckFailedException TransactionConflictException TransactionCanceledException ' +
          'DocumentConflictException VersionConflictException PreconditionFailed PreconditionFailedException ' +
          'EntityVersionConflictException CannotSerializeTransactionException WriteConflict',
      ],
      [
        FORMAT,
        'JsonException JsonReaderException JsonSerializationException JsonParseException JsonMappingException JsonSyntaxException ' +
          'JsonProcessingException MismatchedInputException InvalidFormatException UnrecognizedPropertyException ' +
          'SerializationException DeserializationException MessageDeserializationException MessageConversionException ' +
          'MessageDecodingFailedException InvalidProtocolBufferException AvroTypeException XmlException SAXParseException ' +
          'UnexpectedValueException FormatException NumberFormatException DateTimeParseException DateTimeException SyntaxError ' +
          'JSONDecodeError UnicodeDecodeError DecodeError ParseError ParseException EncodingException ' +
          'ParserError JSONParserError JsonEOFException JsonMappingError JsonDecodingException ' +
          'InvalidDefinitionException InvalidTypeIdException InvalidNullException MalformedJsonException ' +
          'HttpMessageNotReadableException MessageFormatException ExpatError XMLSyntaxError ' +
          'DecoderFallbackException EncoderFallbackException CharacterCodingException MalformedInputException ' +
          'UnmappableCharacterException MarshalException UnmarshalException UnmarshallingException UnmarshalTypeError ' +
          'SchemaParseException SerializerException YAMLException YAMLError CsvException BadZipFile ' +
          'InvalidDataException MessagePackSerializationException ProtocolBufferException DecodingException ' +
          'EncodingError DecodingError CborException AvroRuntimeException AvroSerializationException UnicodeError',
      ],
      [
        VALIDATION,
        'ValidationException ValidationError ValidatorError ConstraintViolationException ConstraintViolationError ' +
          'MethodArgumentNotValidException ZodError SchemaError BadRequest UnprocessableEntity InvalidArgumentException ' +
          'BadRequestException BadRequestError ' +
          'UnprocessableEntityException UnprocessableEntityError RecordInvalid ConstraintViolation ' +
          'InvalidRequestException RequestValidationError SchemaValidationException JsonSchemaValidationException ' +
          'AjvError ValidationFailed YupError MultipleInvalid InvalidMessageException InvalidMessageError ' +
          'DomainValidationException',
      ],
      [UNSUPPORTED, 'NotSupportedException UnsupportedOperationException UnsupportedMediaTypeException'],
      [
        CONSTRAINT,
        'DuplicateKeyException DuplicateKeyError DataIntegrityViolationException SQLIntegrityConstraintViolationException ' +
          'UniqueConstraintException UniqueConstraintError UniqueConstraintViolationException UniqueViolation UniqueViolationError ' +
          'ForeignKeyViolation ForeignKeyViolationError NotNullViolation NotNullViolationError CheckViolation CheckViolationError ' +
          'IntegrityError IntegrityConstraintViolationException IntegrityConstraintViolation RecordNotUnique InvalidForeignKey ' +
          'DuplicateEntryException MongoDuplicateKeyException SequelizeUniqueConstraintError SequelizeForeignKeyConstraintError ' +
          'StringDataRightTruncation NumericValueOutOfRange InvalidTextRepresentation DataError P2002 P2003 ER_DUP_ENTRY',
      ],
      [
        LOCK_LOST,
        'MessageLockLostException MessageLockLostError SessionLockLostException SessionLockLostError MessageLockLost SessionLockLost',
      ],
      [
        NOT_FOUND,
        'NotFoundException EntityNotFoundException ObjectNotFoundException ResourceNotFoundException ModelNotFoundException ' +
          'EmptyResultDataAccessException NoResultException NotFoundError NotFound DoesNotExist ObjectDoesNotExist NoResultFound ' +
          'KeyNotFoundException KeyError ' +
          'RecordNotFound RecordNotFoundException ResourceNotFound ResourceNotFoundError NoSuchKey NoSuchKeyException ' +
          'NoSuchBucket NoSuchEntityException BlobNotFound NoSuchObjectException ' +
          'NotFoundHttpException EntityNotFoundError P2025',
      ],
      [
        ACCESS,
        'UnauthorizedAccessException AuthenticationException AuthorizationException AccessDeniedException Unauthorized Forbidden ' +
          'UnauthorizedException UnauthorizedError ForbiddenException ForbiddenError AccessDenied AccessDeniedError ' +
          'AuthenticationError AuthenticationFailedException AuthenticationFailed AuthorizationFailed PermissionError ' +
          'PermissionDenied PermissionDeniedException InsufficientPrivilege InsufficientPrivilegeError InvalidPassword ' +
          'InvalidPasswordError InvalidAuthorizationSpecification CredentialUnavailableException ' +
          'CredentialUnavailableError ClientAuthenticationError MsalServiceException MsalUiRequiredException ' +
          'TokenExpiredError TokenExpiredException JsonWebTokenError ExpiredTokenException UnrecognizedClientException ' +
          'InvalidClientTokenId SignatureDoesNotMatch NoCredentialsError BadCredentialsException EACCES EPERM ' +
          'MongoAuthenticationException MongoSecurityException P1000',
      ],
      [
        CODE,
        'NullReferenceException IndexOutOfRangeException InvalidCastException DivideByZeroException NotImplementedException ' +
          'MissingMethodException TypeLoadException FileNotFoundException OutOfMemoryException StackOverflowException ' +
          'NullPointerException ClassCastException ArrayIndexOutOfBoundsException IndexOutOfBoundsException ' +
          'StringIndexOutOfBoundsException ClassNotFoundException NoClassDefFoundError NoSuchMethodError NoSuchFieldError ' +
          'ArithmeticException OutOfMemoryError StackOverflowError TypeError ReferenceError RangeError AttributeError NameError ' +
          'UnboundLocalError IndexError ImportError ModuleNotFoundError ZeroDivisionError NotImplementedError AssertionError ' +
          'RecursionError DivisionByZeroError ArgumentCountError ErrorException MaxAttemptsExceededException ' +
          'NoMethodError LoadError NoMatchingPatternError FrozenError SystemStackError ClassNotFoundError ' +
          'AbstractMethodError IncompatibleClassChangeError LinkageError UnsatisfiedLinkError ' +
          'ExceptionInInitializerError ArrayStoreException NegativeArraySizeException ConcurrentModificationException ' +
          'KotlinNullPointerException UninitializedPropertyAccessException AmbiguousMatchException ' +
          'BadImageFormatException EntryPointNotFoundException DllNotFoundException FileLoadException ' +
          'MissingFieldException MissingMemberException TypeInitializationException AccessViolationException ' +
          'InvalidProgramException ObjectDisposedException MemoryError ERR_MODULE_NOT_FOUND ' +
          'MODULE_NOT_FOUND UndefinedTable UndefinedTableError UndefinedColumn UndefinedColumnError UndefinedFunction ' +
          'BadSqlGrammarException SQLSyntaxErrorException SQLGrammarException InvalidSqlException ER_NO_SUCH_TABLE ' +
          'ER_BAD_FIELD_ERROR UnhandledMatchError ArityError NoSuchBeanDefinitionException ' +
          'UnsatisfiedDependencyException BeanCreationException DependencyResolutionException',
      ],
      [
        NO_HANDLER,
        'MessageCouldNotBeDispatchedToAnyHandlersException NoHandlerForMessageException UnknownMessageTypeException ' +
          'NoHandlerException NoHandlerFoundException HandlerNotFoundException NoMessageHandlerException ' +
          'NoSuchMessageHandler NotRegistered UnknownMessageType UnhandledMessageException UnroutableMessageException ' +
          'NoConsumerException MessagingEntityNotFoundException MessagingEntityNotFoundError ' +
          'IndeterminateRoutesException',
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

/** How much of a message is looked through, characters. */
const MAX_MESSAGE = 600;

/** The family of an exception by its name, a code or status in its message, or its message; `undefined` when none is certain. */
export function familyOf(type: string | undefined, message: string | undefined): Family | undefined {
  const name = type === undefined ? undefined : simpleName(type);
  const exact =
    type === undefined || name === undefined ? undefined : (BY_NAME.get(lastTwo(type)) ?? BY_NAME.get(name));
  const text = message?.slice(0, MAX_MESSAGE).toLowerCase();
  // A client's error tells more by its status: a web exception for 404 is no broken connection.
  const code =
    text === undefined || exact === FORMAT || exact === VALIDATION ? undefined : codeFamily(text, name, namedFamily);
  if (code !== undefined) return code;
  // Node's fetch reports a broken connection as a TypeError.
  if (name === 'typeerror' && text?.startsWith('fetch failed')) return CONNECTION;
  if (exact !== undefined) return exact;
  const told = text === undefined ? undefined : toldFamily(text, name !== undefined);
  if (told !== undefined) return told;
  if (name !== undefined) for (const [ending, found] of BY_ENDING) if (name.endsWith(ending)) return found;
  return undefined;
}

/** The family of a text without any type, such as the errors of Go: only what nobody writes about anything else. */
export function familyOfText(text: string | undefined): Family | undefined {
  return text === undefined ? undefined : familyOf(undefined, text);
}

function namedFamily(name: string): Family | undefined {
  return BY_NAME.get(name);
}

/** Whether a name without namespace is that of an exception, whatever it ends with. */
export function isKnownName(type: string): boolean {
  return BY_NAME.has(simpleName(type));
}

/** `timeout::error`: where the last part alone says nothing. */
function lastTwo(type: string): string {
  const at = type.lastIndexOf('::', type.lastIndexOf('::') - 1);
  return (at < 0 ? type : type.slice(at + 2)).toLowerCase();
}

/** `System.Net.Http.HttpRequestException`, `App\Oops`, `Outer+Inner`, `Client$NotFound` without what is in front; lower-case. */
function simpleName(type: string): string {
  let from = 0;
  for (let i = type.length - 1; i >= 0; i--) {
    const c = type[i];
    if (c !== '.' && c !== '\\' && c !== '+' && c !== '$' && c !== ':') continue;
    from = i + 1;
    break;
  }
  return type.slice(from).replace(/`\d+$/, '').toLowerCase();
}
