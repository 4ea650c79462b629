import type { Source } from '../catalog.ts';
import type { Evidence } from '../classify/evidence.ts';
import type { LetterRecord } from '../store/letterRow.ts';
import { isMasked, MASKED, textMasker } from './masking.ts';

/** What was found out about a letter's death, layer by layer. Names in the catalog's `mask` hold here too. */
export function classificationView(source: Source, { letter, classification }: LetterRecord) {
  const shownText = textMasker(source, letter);
  const shown = (evidence: Evidence) => evidenceView(source, evidence, shownText);
  return {
    runbook: classification.runbook ?? source.runbook ?? null,
    evidence: shown(classification.evidence),
    dialects: classification.dialects,
    layers: classification.layers.map(({ dialect, layer, evidence }) => ({
      dialect,
      layer,
      evidence: shown(evidence),
    })),
    violations: classification.violations ?? [],
    unread: classification.unread ?? [],
    ...(classification.error !== undefined && { classifyError: shownText(classification.error) }),
  };
}

function evidenceView(source: Source, evidence: Evidence, shownText: (text: string) => string) {
  const entries = Object.entries(evidence).map(([field, value]: [string, string | number]) => {
    if (isMasked(source, field)) return [field, MASKED];
    if (field === 'failedAt') return [field, new Date(value).toISOString()];
    return [field, typeof value === 'string' ? shownText(value) : value];
  });
  return Object.fromEntries(entries) as Record<string, string | number>;
}
