/** What classification found, as one cell of a letter's row: written and replaced as a whole, so that nothing old stays beside it. */
import { z } from 'zod';
import {
  type Classification,
  type Evidence,
  LAYER_KINDS,
  type Layer,
  MECHANISMS,
  SIGNS,
} from '../classify/evidence.ts';
import { type Cutter, json } from './rows.ts';

/** Largest cell, characters; a row has many others. */
const MAX_CELL = 16_000;
/** Longest texts, tried in this order until everything fits. */
const TEXT_LIMITS = [1000, 300, 60] as const;

// Values that a later version may add are left out by this one; they are no reason not to read the row.
const evidenceSchema = z.object({
  reason: z.string().optional(),
  description: z.string().optional(),
  exceptionType: z.string().optional(),
  exceptionMessage: z.string().optional(),
  causeType: z.string().optional(),
  causeMessage: z.string().optional(),
  frame: z.string().optional(),
  failedAt: z.number().optional(),
  attempts: z.number().optional(),
  consumer: z.string().optional(),
  messageType: z.string().optional(),
  correlationId: z.string().optional(),
  traceId: z.string().optional(),
  deadLetterSource: z.string().optional(),
  mechanism: z.enum(MECHANISMS).optional().catch(undefined),
});

/** The cell, parsed. */
export const foundCell = json(
  z.object({
    evidence: evidenceSchema,
    layers: z.array(
      z.object({ dialect: z.string(), layer: z.enum(LAYER_KINDS).catch('framework'), evidence: evidenceSchema }),
    ),
    label: z.string().optional(),
    runbook: z.string().optional(),
    violations: z.array(z.object({ path: z.string(), problem: z.string() })).optional(),
    unread: z.array(z.string()).optional(),
    signs: z
      .array(z.enum(SIGNS).or(z.string().transform(() => undefined)))
      .transform((signs) => signs.filter((sign) => sign !== undefined))
      .optional(),
  }),
);

/** The cell's text. Texts are cut so that it fits, and `cutter` is told which. */
export function foundText(found: Classification, cutter: Cutter): string {
  const { evidence, layers, label, runbook, violations, unread, signs } = found;
  const more = { label, runbook, violations, unread, signs };
  for (const max of TEXT_LIMITS) {
    const cut = new Set<string>();
    const parts = {
      evidence: cutTexts(withoutColumns(evidence), max, (field) => cut.add(`evidence.${field}`)),
      layers: layers.map((layer) => ({ ...layer, evidence: cutTexts(layer.evidence, max, () => cut.add('layers')) })),
      ...more,
    };
    const text = JSON.stringify(parts);
    if (text.length > MAX_CELL) continue;
    cutter.cut.push(...cut);
    return text;
  }
  cutter.cut.push('evidence', 'layers');
  const bare: Layer[] = layers.map(({ dialect, layer }) => ({ dialect, layer, evidence: {} }));
  const text = JSON.stringify({ evidence: {}, layers: bare, ...more });
  if (text.length <= MAX_CELL) return text;
  cutter.cut.push('violations', 'unread');
  return NOTHING_FOUND;
}

/** The cell that holds nothing. */
export const NOTHING_FOUND = JSON.stringify({ evidence: {}, layers: [] });

/** Reason, exception type and message type have columns of their own; the description is the letter's. */
function withoutColumns(evidence: Evidence): Evidence {
  const { reason: _r, description: _d, exceptionType: _e, messageType: _m, ...rest } = evidence;
  return rest;
}

function cutTexts(evidence: Evidence, max: number, onCut: (field: string) => void): Evidence {
  return Object.fromEntries(
    Object.entries(evidence).map(([field, value]: [string, unknown]) => {
      if (typeof value !== 'string' || value.length <= max) return [field, value];
      onCut(field);
      return [field, value.slice(0, max)];
    }),
  );
}
