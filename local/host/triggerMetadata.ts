/** Trigger metadata as the real host builds it for a Node function. The library then lower-cases the first letter of every key. */
import type { TypedData } from './core.ts';

/** Values that .NET would hold: text stays text, everything else travels as JSON. Null is left out, as the host does. */
export type MetadataValue = string | number | boolean | object | null | undefined;

/** Metadata by .NET property name, encoded for the way to the function. */
export function encodeMetadata(values: Record<string, MetadataValue>): Record<string, TypedData> {
  const encoded: Record<string, TypedData> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined) continue;
    encoded[name] = typeof value === 'string' ? { string: value } : { json: JSON.stringify(value) };
  }
  return encoded;
}

/**
 * Adds the top-level properties of a JSON object body to the metadata, over what is there. The real host does this for
 * every text trigger, so a body with a property `messageId` hides the message's own id (seen in its
 * `WorkerFunctionInvoker.TransformInput` and `Utility.ApplyBindingData`). Objects stay JSON, other values become .NET text,
 * nulls and arrays are skipped.
 */
export function overlayBody(metadata: Record<string, TypedData>, body: string): Record<string, TypedData> {
  const properties = parseObject(body);
  if (!properties) return metadata;
  const result = { ...metadata };
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || Array.isArray(value)) continue;
    // The host's table of metadata does not regard case.
    const key = Object.keys(result).find((known) => known.toLowerCase() === name.toLowerCase()) ?? name;
    result[key] = typeof value === 'object' ? { json: JSON.stringify(value) } : { string: toDotNetText(value) };
  }
  return result;
}

function parseObject(text: string): Record<string, unknown> | undefined {
  if (!/^\s*\{[\s\S]*\}\s*$/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

function toDotNetText(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return String(value);
}

/** A moment as Newtonsoft.Json writes a UTC DateTime: fraction only where there is one, trailing zeros dropped. */
export function toDateTime(moment: Date, zone: 'Z' | '+00:00'): string {
  return moment.toISOString().replace(/\.?0*Z$/, '') + zone;
}
