import type { Source } from '../catalog.ts';
import { OfficeError } from '../errors.ts';
import type { SequenceNumber } from '../letter.ts';
import type { Office } from '../office.ts';

/** One section of a body: as text when it is valid UTF-8, else base64. */
type Section = { readonly text: string } | { readonly base64: string };

/** A body as shown. */
export interface BodyView {
  readonly sequenceNumber: SequenceNumber;
  readonly kind: string;
  readonly contentType: string | null;
  readonly bytes: number;
  readonly sections: readonly Section[];
  /** True when only the first `max` bytes are shown. */
  readonly cut: boolean;
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
    const sections: Section[] = [];
    let room = max;
    for (const content of office.broker.bodyOf(message)) {
      if (room <= 0) break;
      sections.push(show(content.subarray(0, room)));
      room -= content.length;
    }
    const { kind, bytes } = letter.body;
    return { sequenceNumber: number, kind, contentType: letter.contentType ?? null, bytes, sections, cut: room < 0 };
  } finally {
    await queue.close();
  }
}

function show(content: Buffer): Section {
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content) };
  } catch {
    return { base64: content.toString('base64') };
  }
}
