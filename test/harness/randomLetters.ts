/** Random letters of every kind: typed properties, headers of the known formats with any value, bodies of any bytes or JSON. */
import fc from 'fast-check';
import type { Letter, LetterProperty } from '../../shared/letter.ts';
import { aLetter } from './values.ts';

/** Names that dialects and rules ask for. */
const NAMES = [
  'MT-Reason',
  'MT-Fault-ExceptionType',
  'MT-Fault-Message',
  'MT-Fault-StackTrace',
  'MT-Fault-RetryCount',
  'MT-Fault-Timestamp',
  'NServiceBus.ExceptionInfo.ExceptionType',
  'NServiceBus.ExceptionInfo.StackTrace',
  'NServiceBus.TimeOfFailure',
  'NServiceBus.FailedQ',
  'NServiceBus.EnclosedMessageTypes',
  'rbs2-error-details',
  'rbs2-msg-type',
  'exception-type',
  'exception-stack',
  'failed-at',
  'Diagnostic-Id',
  'traceparent',
  'x-death',
  '__proto__',
  'constructor',
] as const;

/** Pieces of which hostile texts are made. */
const PIECES = [
  'at ',
  'at System.A.B()',
  'at Shop.A.B() in /x.cs:line 1',
  'at f (/a/b.js:1:2)',
  ' ---> ',
  'Caused by: ',
  '\n',
  '\r\n',
  ': ',
  'System.Exception: no',
  'Traceback (most recent call last):\n',
  '  File "/a.py", line 1, in f\n',
  '#0 /a.php(1): f()',
  'Stack trace:',
  'Next ',
  '(Inner Exception #0) ',
  '[cause]: ',
  'status code 503',
  '(',
  '[',
  '*',
  'a',
  ' ',
  '\u0000',
  '\ud800',
  '12 unhandled exceptions: ',
  'urn:message:A:B',
  '|',
] as const;

const smallText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((parts) => parts.join('')),
);
/** Beginnings behind which a text is taken for a printed exception. */
const BEGINNINGS = [
  '',
  'System.Exception: x',
  'Error: x\nStack trace:\n',
  'Traceback (most recent call last):\n',
  '5 unhandled exceptions: 1: System.Exception: x',
] as const;
/** Two pieces over and over, up to more than a message's headers can hold. */
const longText = fc
  .tuple(
    fc.constantFrom(...BEGINNINGS),
    fc.constantFrom(...PIECES),
    fc.constantFrom(...PIECES),
    fc.integer({ min: 1000, max: 80_000 }),
  )
  .map(([start, a, b, length]) => start + (a + b).repeat(Math.ceil(length / (a.length + b.length))));
const anyText = fc.oneof({ weight: 12, arbitrary: smallText }, { weight: 1, arbitrary: longText });

const property: fc.Arbitrary<LetterProperty> = fc.record({
  name: fc.oneof(fc.constantFrom(...NAMES), fc.string({ unit: 'binary' })),
  type: fc.constantFrom(
    'string',
    'symbol',
    'int',
    'long',
    'null',
    'uuid',
    'binary',
    'list',
    'map',
    'timestamp',
    'boolean',
    'unreadable',
  ),
  value: fc.oneof({ weight: 4, arbitrary: anyText }, fc.double(), fc.integer(), fc.boolean(), fc.constant(null)),
});

/** JSON with keys that dialects ask for. */
const json = fc
  .dictionary(
    fc.constantFrom(
      'dead_letter',
      'pubsubname',
      'specversion',
      'messageType',
      'message',
      'data',
      'job',
      'type',
      'headers',
      '__proto__',
    ),
    fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constant({ reason: 'failed', error: 'x: y', exception: 'A' }), anyText),
  )
  .map((value) => Buffer.from(JSON.stringify(value)));
/** Bodies that are hard to parse for their size: many short keys, deep nesting. */
const heavy = fc
  .tuple(
    fc.constantFrom('{"dead_letter":', '[', '{"a":1,"b":2},', '"pubsubname",', '"\\u0041",'),
    fc.integer({ min: 1, max: 70_000 }),
  )
  .map(([piece, length]) => Buffer.from(piece.repeat(Math.ceil(length / piece.length))));
const manyKeys = fc
  .integer({ min: 1, max: 7000 })
  .map((keys) => Buffer.from(`{"dead_letter":{${Array.from({ length: keys }, (_, i) => `"k${i}":${i}`).join(',')}}}`));
const body = fc.oneof(
  { weight: 6, arbitrary: json },
  { weight: 3, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: heavy },
  { weight: 1, arbitrary: manyKeys },
);

const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });

/** A letter and the one section of its body. */
export const anyLetter: fc.Arbitrary<{ letter: Letter; content: Buffer }> = fc
  .record({
    reason: optional(
      fc.oneof(anyText, fc.constantFrom('MaxDeliveryCountExceeded', 'TTLExpiredException', 'System.Exception')),
    ),
    description: optional(anyText),
    subject: optional(anyText),
    contentType: optional(fc.oneof(fc.constantFrom('application/vnd.masstransit+json', 'application/json'), anyText)),
    correlationId: optional(anyText),
    properties: fc.array(property, { maxLength: 12 }),
    deliveryCount: fc.integer(),
    kind: fc.constantFrom('data', 'data', 'data', 'data-several', 'value', 'sequence', 'none'),
    count: fc.oneof(fc.constant(0), fc.nat()),
    content: body,
  })
  .map(({ kind, count, content, ...changes }) => ({
    content,
    letter: aLetter({
      ...changes,
      body: { kind, bytes: content.length, hash: 'hash-1' },
      replay: { count, planId: undefined, of: undefined, at: undefined },
    }),
  }));
