import type { Source } from '../catalog.ts';
import type { Evidence, Sign } from '../classify/evidence.ts';
import type { ShownRecord } from '../mask.ts';

/** What was found out about a letter's death, layer by layer. */
export function classificationView(source: Source, { classification }: ShownRecord) {
  return {
    runbook: classification.runbook ?? source.runbook ?? null,
    evidence: evidenceView(classification.evidence),
    dialects: classification.dialects,
    layers: classification.layers.map(({ dialect, layer, evidence }) => ({
      dialect,
      layer,
      evidence: evidenceView(evidence),
    })),
    violations: classification.violations ?? [],
    unread: classification.unread ?? [],
    signs: (classification.signs ?? []).map((sign) => ({ sign, means: MEANS[sign] })),
    ...(classification.error !== undefined && { classifyError: classification.error }),
  };
}

const MEANS: Readonly<Record<Sign, string>> = {
  'locks-ran-out':
    'the delivery limit was reached, and its framework writes each exception on the message and wrote none: its locks ran out (a slow handler, a process that ended) rather than that a handler threw',
  'no-exception-told':
    'the delivery limit was reached and nothing tells of an exception: its locks ran out (a slow handler, a process that ended), or its consumer gives back without a word; the log of the consumer knows',
  'no-reason-told': 'the application dead-lettered it and gave no reason: the broker always gives one',
  'body-is-json':
    'the text says that the body cannot be read, and it is valid JSON: look at the type that the consumer expects, or at its encoding',
  'body-is-text':
    'the text says that the body cannot be read, and it is text in UTF-8: look at the format that the consumer expects',
};

function evidenceView(evidence: Evidence) {
  const { failedAt, ...rest } = evidence;
  return { ...rest, ...(failedAt !== undefined && { failedAt: new Date(failedAt).toISOString() }) };
}
