/** A window of letters with their headers and bodies, peeked from the broker now. Nothing is stored, locked or settled. */
import type { Source } from '../catalog.ts';
import { isSameMessage, type SequenceNumber } from '../letter.ts';
import type { ShownRecord } from '../mask.ts';
import type { Office } from '../office.ts';
import type { Selection } from '../selection.ts';
import { type ShownSections, sectionsOf } from './body.ts';
import { listLetters } from './letters.ts';

/** Bodies of one page together, bytes: the answer is in memory as a whole. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Which letters, how many, and how much of each body (bytes). */
export interface Window {
  readonly selection: Selection;
  readonly top: number;
  readonly max: number;
  readonly continuation: string | undefined;
}

/** A page of letters, each with its body; `undefined` where the message is not there any more. */
export interface Download {
  readonly letters: readonly { readonly record: ShownRecord; readonly body: ShownSections | undefined }[];
  readonly unreadable: number;
  readonly continuation: SequenceNumber | undefined;
}

/**
 * The open letters that fit, lowest number first, with bodies. Ends before `top` letters where their bodies are too large together.
 * Audited like the look at a single body, before it is done. Throws `DLO_BROKER_UNAVAILABLE`, `DLO_STORE_UNAVAILABLE`.
 */
export async function download(office: Office, source: Source, window: Window, operator: string): Promise<Download> {
  const { selection, top, max, continuation } = window;
  const page = await listLetters(office, source, selection, top, continuation);
  const numbers = page.records.map(({ letter }) => letter.sequenceNumber);
  const entry = { at: office.clock(), operator, source: { key: source.key, name: source.name }, letters: numbers };
  const audit = await office.store.audit.open({ ...entry, operation: 'body.read' });
  const queue = await office.broker.open(source);
  try {
    const letters: { record: ShownRecord; body: ShownSections | undefined }[] = [];
    let room = MAX_BYTES;
    let next = page.continuation;
    for (const record of page.records) {
      const size = Math.min(record.letter.body.bytes, max);
      if (size > room && letters.length > 0) {
        next = record.letter.sequenceNumber;
        break;
      }
      room -= size;
      const found = await queue.peekOne(record.letter.sequenceNumber);
      const isThere = found !== undefined && isSameMessage(found.letter, record.letter);
      letters.push({ record, body: isThere ? sectionsOf(office, found.message, max) : undefined });
    }
    const shown = letters.filter(({ body }) => body !== undefined).length;
    await office.store.audit.close(audit, `${shown} shown, ${letters.length - shown} not there`, office.clock());
    return { letters, unreadable: page.unreadable, continuation: next };
  } finally {
    await queue.close();
  }
}
