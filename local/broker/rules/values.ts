/** Values as filters compare them: AMQP types brought to the few kinds that operators know. */
import type { AmqpValue } from '../../../shared/brokers/serviceBus/amqp.ts';

/**
 * A value to compare. Integers of every width are one kind, float and double another, as in the language whose
 * conversions the operators follow (documentation: C#). `opaque` stands for a type that has no operators here.
 */
export type Comparable =
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'integer'; readonly value: bigint }
  | { readonly kind: 'double'; readonly value: number }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'timestamp'; readonly value: bigint }
  | { readonly kind: 'uuid'; readonly value: string }
  | { readonly kind: 'opaque'; readonly type: string };

/** The comparable of an AMQP value, `undefined` for null. */
export function comparable(value: AmqpValue): Comparable | undefined {
  switch (value.type) {
    case 'null':
      return undefined;
    case 'string':
    case 'symbol':
      return { kind: 'string', value: value.value };
    case 'ubyte':
    case 'ushort':
    case 'uint':
    case 'byte':
    case 'short':
    case 'int':
      return { kind: 'integer', value: BigInt(value.value) };
    case 'ulong':
    case 'long':
      return { kind: 'integer', value: value.value };
    case 'float':
    case 'double':
      return { kind: 'double', value: value.value };
    case 'boolean':
      return { kind: 'boolean', value: value.value };
    case 'timestamp':
      return { kind: 'timestamp', value: value.value };
    case 'uuid':
      return { kind: 'uuid', value: value.value };
    default:
      return { kind: 'opaque', type: value.type };
  }
}

/** Less than, equal to or greater than zero; `NaN` when a number is none; `undefined` when the kinds do not compare. */
export function compare(a: Comparable, b: Comparable): number | undefined {
  // JavaScript compares integers and doubles by their exact values, without rounding either.
  if ((a.kind === 'integer' || a.kind === 'double') && (b.kind === 'integer' || b.kind === 'double')) {
    // Neither less nor greater nor equal is what a NaN is.
    return a.value < b.value ? -1 : a.value > b.value ? 1 : a.value >= b.value ? 0 : Number.NaN;
  }
  if (a.kind === 'string' && b.kind === 'string') return order(a.value, b.value);
  if (a.kind === 'timestamp' && b.kind === 'timestamp') return order(a.value, b.value);
  if (a.kind === 'uuid' && b.kind === 'uuid') return order(a.value, b.value);
  if (a.kind === 'boolean' && b.kind === 'boolean') return order(a.value, b.value);
  return undefined;
}

function order<T extends string | bigint | boolean>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
