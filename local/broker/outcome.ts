/** What a receiver's disposition asks for. The SDK's calls map to AMQP outcomes in ways only the wire shows. */
import { encode, keyText, listItems, mapEntries, readValue, valueEnd } from '../../shared/brokers/serviceBus/amqp.ts';
import type { Settlement } from './entity.ts';
import { BrokerError } from './errors.ts';
import type { AddedProperty } from './message.ts';

const OUTCOMES: Record<string, number> = {
  'amqp:received:list': 0x23,
  'amqp:accepted:list': 0x24,
  'amqp:rejected:list': 0x25,
  'amqp:released:list': 0x26,
  'amqp:modified:list': 0x27,
};

/**
 * Reads an encoded delivery state; `undefined` for a state that decides nothing. No state at all releases, as the
 * default outcome of a source does.
 */
export function readOutcome(state: Buffer | undefined): Settlement | undefined {
  if (state === undefined) return { kind: 'release' };
  if (state[0] !== 0x00) throw new BrokerError('amqp:decode-error', 'A delivery state must be a described list.');
  const descriptor = readValue(state, 1);
  const body = valueEnd(state, 1);
  const code = descriptor.type === 'symbol' ? OUTCOMES[descriptor.value] : Number(descriptor.value);
  const fields = listItems(state, body);
  switch (code) {
    case 0x23:
      return undefined;
    case 0x24:
      return { kind: 'complete' };
    case 0x25:
      return { kind: 'dead-letter', properties: deadLetterProperties(errorInfo(fields[0])) };
    case 0x26:
      return { kind: 'release' };
    case 0x27: {
      const undeliverableHere = fields[1] !== undefined && readValue(fields[1]).value === true;
      return { kind: undeliverableHere ? 'defer' : 'abandon', properties: propertiesOf(fields[2]) };
    }
    default:
      throw new BrokerError('amqp:not-implemented', 'This broker knows no delivery state of this kind.');
  }
}

/** The entries of an encoded map as properties to add. Values keep their bytes. */
export function propertiesOf(map: Buffer | undefined): AddedProperty[] {
  if (map === undefined || map[0] === 0x40) return [];
  return mapEntries(map, 0).map((entry) => {
    const name = keyText(entry.key);
    if (name === undefined) throw new BrokerError('amqp:invalid-field', 'Property names must be strings.');
    // A copy: the value is a window into a network buffer, and the message outlives that.
    return { name, value: Buffer.from(entry.value) };
  });
}

/** The third field of an encoded error (condition, description, info). */
function errorInfo(error: Buffer | undefined): Buffer | undefined {
  if (error === undefined || error[0] !== 0x00) return undefined;
  return listItems(error, valueEnd(error, 1))[2];
}

/** The SDK sends the two reasons as null when the caller gave none; these are not properties. */
function deadLetterProperties(info: Buffer | undefined): AddedProperty[] {
  const none = encode.null();
  return propertiesOf(info).filter(
    ({ name, value }) => !value.equals(none) || (name !== 'DeadLetterReason' && name !== 'DeadLetterErrorDescription'),
  );
}
