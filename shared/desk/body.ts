import type { EncodedMessage } from '../brokers/broker.ts';
import type { Source } from '../catalog.ts';
import { OfficeError } from '../errors.ts';
import type { SequenceNumber } from '../letter.ts';
import { shownLetter } from '../mask.ts';
import type { Office } from '../office.ts';

/** One section of a body: as text, or as base64 and why it is no text. */
type Section =
  | { readonly text: string }
  | { readonly base64: string; readonly binary: 'not-utf-8' | 'control-characters' };

/** A body's sections, and whether only the first bytes are there. */
export interface ShownSections {
  readonly sections: readonly Section[];
  readonly cut: boolean;
}

/** A body as shown. */
export interface BodyView extends ShownSections {
  readonly sequenceNumber: SequenceNumber;
  readonly kind: string;
  readonly contentType: string | null;
  readonly bytes: number;
}

/**
 * Peeks a letter's body from the broker; nothing is stored. Reading bodies is audited, before it is done.
 * Throws `DLO_BODY_GONE` when the message is not there any more.
 */
export async function readBody(
  office: Office,
  source: Source,
  number: SequenceNumber,
  max: number,
  operator: string,
): Promise<BodyView> {
  const where = { key: source.key, name: source.name };
  const at = office.clock();
  const audit = await office.store.audit.open({
    at,
    operator,
    operation: 'body.read',
    source: where,
    letters: [number],
  });
  const queue = await office.broker.open(source);
  try {
    const read = await queue.peekOne(number);
    await office.store.audit.close(audit, read === undefined ? 'not there' : 'shown', office.clock());
    if (read === undefined) throw new OfficeError('DLO_BODY_GONE', `message ${number} is not in the dead-letter queue`);
    const { letter, message } = read;
    const { kind, bytes } = letter.body;
    const contentType = shownLetter(source, letter).contentType ?? null;
    return { sequenceNumber: number, kind, contentType, bytes, ...sectionsOf(office, message, max) };
  } finally {
    await queue.close();
  }
}

/** The first `max` bytes of a message's body, section by section. */
export function sectionsOf(office: Office, message: EncodedMessage, max: number): ShownSections {
  const sections: Section[] = [];
  let room = max;
  let isCut = false;
  for (const content of office.broker.bodyOf(message)) {
    const isWhole = content.length <= room;
    isCut ||= !isWhole;
    if (room > 0 || isWhole) sections.push(show(content.subarray(0, room), isWhole));
    room = Math.max(0, room - content.length);
  }
  return { sections, cut: isCut };
}

// What no text has, but a binary format that happens to be valid UTF-8 has: shown as text it would not be what was sent.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/;

function show(content: Buffer, isWhole: boolean): Section {
  const base64 = () => content.toString('base64');
  try {
    // What was cut may end in the middle of a character.
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content, { stream: !isWhole });
    return CONTROLS.test(text) ? { base64: base64(), binary: 'control-characters' } : { text };
  } catch {
    return { base64: base64(), binary: 'not-utf-8' };
  }
}
