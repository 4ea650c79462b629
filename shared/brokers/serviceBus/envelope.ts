/**
 * The sections of one encoded message, found but not decoded. What is never decoded cannot be changed by accident:
 * a replay keeps the bytes of everything it does not reset.
 *
 * Order of the sections: OASIS AMQP 1.0, part 3, section 3.2.
 */
import type { BodyKind } from '../../letter.ts';
import { AmqpFormatError, SECTION, type Section, sectionAt } from './amqp.ts';

/** An encoded message and where its sections are. */
export interface Envelope {
  readonly message: Buffer;
  readonly header: Section | undefined;
  readonly deliveryAnnotations: Section | undefined;
  readonly messageAnnotations: Section | undefined;
  readonly properties: Section | undefined;
  readonly applicationProperties: Section | undefined;
  readonly body: readonly Section[];
  readonly footer: Section | undefined;
  /** Why the message cannot be taken apart and put together again; the sections before the trouble are given. */
  readonly problem: string | undefined;
}

/** Finds the sections of `message`. Never throws: what cannot be read is told in `problem`. */
export function openEnvelope(message: Buffer): Envelope {
  const found = new Map<number, Section>();
  const body: Section[] = [];
  let problem: string | undefined;
  let last = 0;
  try {
    for (let at = 0; at < message.length; ) {
      const section = sectionAt(message, at);
      const isBody = section.code >= SECTION.data && section.code <= SECTION.value;
      if (section.code < last) problem ??= 'its sections are not in the order that AMQP prescribes';
      if (isBody) body.push(section);
      else if (found.has(section.code)) problem ??= 'a section is there twice';
      else found.set(section.code, section);
      last = section.code;
      at = section.end;
    }
    problem ??= bodyProblem(body);
  } catch (error) {
    if (!(error instanceof AmqpFormatError)) throw error;
    problem = error.message;
  }
  return {
    message,
    header: found.get(SECTION.header),
    deliveryAnnotations: found.get(SECTION.deliveryAnnotations),
    messageAnnotations: found.get(SECTION.messageAnnotations),
    properties: found.get(SECTION.properties),
    applicationProperties: found.get(SECTION.applicationProperties),
    body,
    footer: found.get(SECTION.footer),
    problem,
  };
}

function bodyProblem(body: readonly Section[]): string | undefined {
  const first = body[0];
  if (first === undefined) return undefined;
  if (body.some((section) => section.code !== first.code)) return 'its body mixes kinds of sections';
  if (first.code === SECTION.value && body.length > 1) return 'its body has more than one value';
  return undefined;
}

/** How the body is carried. */
export function bodyKind(envelope: Envelope): BodyKind {
  const [first, second] = envelope.body;
  if (first === undefined) return 'none';
  if (first.code === SECTION.sequence) return 'sequence';
  if (first.code === SECTION.value) return 'value';
  return second === undefined ? 'data' : 'data-several';
}

/**
 * The body's bytes, one buffer a section: the content of data sections, and the encoded AMQP value of value and
 * sequence sections. A data section that does not hold binary is given as it is encoded.
 */
export function bodyParts(envelope: Envelope): Buffer[] {
  return envelope.body.map((section) => {
    const inner = envelope.message.subarray(section.body, section.end);
    return section.code === SECTION.data ? (binaryContent(inner) ?? inner) : inner;
  });
}

/** The content of an encoded binary, or `undefined` when it is a value of another type. */
export function binaryContent(encoded: Buffer): Buffer | undefined {
  if (encoded[0] === 0xa0) return encoded.subarray(2);
  if (encoded[0] === 0xb0) return encoded.subarray(5);
  return undefined;
}
