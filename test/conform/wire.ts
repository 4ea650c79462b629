/** Parts of encoded messages, as rhea reads them and not the office's own codec. Bytes are hex. */
import { CODE, sectionByRhea, sectionsByRhea, types } from '../harness/typedMessage.ts';

/** Annotations that the broker writes or may write. */
export const BROKER_WRITES = [
  'x-opt-sequence-number',
  'x-opt-enqueue-sequence-number',
  'x-opt-enqueued-time',
  'x-opt-locked-until',
  'x-opt-message-state',
];

/** Message annotations by name. */
export function annotationsOf(message: Buffer): ReadonlyMap<string, string> {
  return sectionByRhea(message, CODE.messageAnnotations)?.entries ?? new Map();
}

/** Application properties by name. */
export function applicationOf(message: Buffer): ReadonlyMap<string, string> {
  return sectionByRhea(message, CODE.applicationProperties)?.entries ?? new Map();
}

/** The items of the properties section. */
export function propertiesOf(message: Buffer): readonly string[] {
  return sectionByRhea(message, CODE.properties)?.items ?? [];
}

/** A value from its hex. */
export function decoded(hex: string | undefined): unknown {
  return hex === undefined ? undefined : new types.Reader(Buffer.from(hex, 'hex')).read().value;
}

/** Everything of a message that no broker has a reason to touch, for comparing. */
export function kept(message: Buffer, without: readonly string[] = []) {
  const others = (entries: ReadonlyMap<string, string>, dropped: readonly string[]) =>
    Object.fromEntries([...entries].filter(([name]) => !dropped.includes(name)));
  return {
    annotations: others(annotationsOf(message), BROKER_WRITES),
    properties: propertiesOf(message),
    application: others(applicationOf(message), without),
    rest: sectionsByRhea(message)
      .filter(({ code }) => code >= CODE.data)
      .map(({ bytes }) => bytes),
  };
}

/** Names of the parts in which two messages differ, with what stands there. */
export function differences(was: ReturnType<typeof kept>, is: ReturnType<typeof kept>): string[] {
  const found: string[] = [];
  for (const map of ['annotations', 'application'] as const) {
    for (const name of new Set([...Object.keys(was[map]), ...Object.keys(is[map])])) {
      if (was[map][name] !== is[map][name]) found.push(`${map} ${name}: ${was[map][name]} became ${is[map][name]}`);
    }
  }
  const length = Math.max(was.properties.length, is.properties.length);
  for (let i = 0; i < length; i += 1) {
    // Null items at the end of a list may be left out.
    const [before, after] = [was.properties[i] ?? '40', is.properties[i] ?? '40'];
    if (before !== after) found.push(`property ${i}: ${before} became ${after}`);
  }
  if (was.rest.join() !== is.rest.join()) found.push(`body or footer: ${short(was.rest)} became ${short(is.rest)}`);
  return found;
}

function short(sections: readonly string[]): string {
  const text = sections.join(' ');
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
