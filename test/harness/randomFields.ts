/** Random headers of AMQP 0-9-1: every type that RabbitMQ knows, nested, as encoded tables. */
import fc from 'fast-check';

/** A type's letter and its bytes. */
const fixed = (type: string, width: number) =>
  fc.uint8Array({ minLength: width, maxLength: width }).map((bytes) => Buffer.concat([Buffer.from(type), bytes]));

const sized = (type: string, bytes: fc.Arbitrary<Buffer | Uint8Array>) =>
  bytes.map((body) => {
    const size = Buffer.alloc(4);
    size.writeUInt32BE(body.length);
    return Buffer.concat([Buffer.from(type), size, body]);
  });

const boolean = fc.boolean().map((value) => Buffer.from(value ? [0x74, 1] : [0x74, 0]));
/** No infinities and no NaN: the server refuses to read them. */
const float = fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => {
  const bytes = Buffer.from('f....');
  bytes.writeFloatBE(value, 1);
  return bytes;
});
const double = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => {
  const bytes = Buffer.from('d........');
  bytes.writeDoubleBE(value, 1);
  return bytes;
});
const simple = fc.oneof(
  fc.constant(Buffer.from('V')),
  boolean,
  fixed('b', 1),
  fixed('B', 1),
  fixed('s', 2),
  fixed('u', 2),
  fixed('I', 4),
  fixed('i', 4),
  fixed('l', 8),
  float,
  double,
  fixed('D', 5),
  fixed('T', 8),
  sized(
    'S',
    fc.string({ unit: 'grapheme' }).map((text) => Buffer.from(text)),
  ),
  // Not UTF-8 as a rule: the server passes any bytes.
  sized('S', fc.uint8Array({ maxLength: 20 })),
  sized('x', fc.uint8Array({ maxLength: 20 })),
);

const names = fc.stringMatching(/^[a-z][A-Za-z0-9._-]{0,20}$/);

/** Entries with names in order, as a server since 3.13 writes them again. */
const table = (value: fc.Arbitrary<Buffer>) =>
  fc
    .uniqueArray(fc.tuple(names, value), { selector: ([name]) => name, maxLength: 6 })
    .map((entries) =>
      Buffer.concat(
        entries
          .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
          .flatMap(([name, bytes]) => [Buffer.of(name.length), Buffer.from(name), bytes]),
      ),
    );

const { value } = fc.letrec<{ value: Buffer }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    simple,
    sized(
      'A',
      fc.array(tie('value'), { maxLength: 4 }).map((items) => Buffer.concat(items)),
    ),
    sized('F', table(tie('value'))),
  ),
}));

/** A headers table without its length in front. */
export const randomHeaders: fc.Arbitrary<Buffer> = table(value);
