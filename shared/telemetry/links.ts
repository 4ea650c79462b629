import type { Letter } from '../letter.ts';
import type { TraceLink } from '../telemetry.ts';

/** Links of one span: what fits into the 8192 characters that Application Insights takes of them, 76 each. */
export const MAX_LINKS = 100;

/** Where a message carries the trace it belongs to: the SDKs of Service Bus write the first, OpenTelemetry's the second. */
const PROPERTIES = ['Diagnostic-Id', 'traceparent'];
/** W3C trace context, level 1: version, trace, span, flags. Ids of zeros only mean none. */
const TRACE_PARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-[\da-f]{2}$/;

/** The traces that letters belong to, each once, at most {@link MAX_LINKS}. What is not a trace context is passed over. */
export function tracesOf(letters: readonly Pick<Letter, 'properties'>[]): TraceLink[] {
  const links = new Map<string, TraceLink>();
  for (const letter of letters) {
    const link = traceOf(letter);
    if (link !== undefined) links.set(`${link.traceId}-${link.spanId}`, link);
    if (links.size >= MAX_LINKS) break;
  }
  return [...links.values()];
}

function traceOf({ properties }: Pick<Letter, 'properties'>): TraceLink | undefined {
  for (const name of PROPERTIES) {
    const value = properties.find((property) => property.name === name)?.value;
    const [, traceId, spanId] = (typeof value === 'string' && TRACE_PARENT.exec(value)) || [];
    if (traceId !== undefined && spanId !== undefined) return { traceId, spanId };
  }
  return undefined;
}
