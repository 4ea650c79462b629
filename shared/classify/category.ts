import type { Evidence, Verdict } from './evidence.ts';

/**
 * Reason codes that Service Bus writes itself, compared without regard to case, outer blanks or a dot at the end
 * (documented in "Overview of Service Bus dead-letter queues"; the session reason is seen in two spellings).
 */
const SYSTEM_REASONS: Readonly<Record<string, Verdict>> = {
  maxdeliverycountexceeded: { category: 'consumer-fault', advice: 'fix-first', rule: 'system:delivery-limit' },
  ttlexpiredexception: { category: 'expired', advice: 'investigate', rule: 'system:expired' },
  headersizeexceeded: { category: 'oversized', advice: 'fix-first', rule: 'system:header-size' },
  'session id is null': { category: 'topology', advice: 'fix-first', rule: 'system:session-missing' },
  maxtransferhopcountexceeded: { category: 'topology', advice: 'fix-first', rule: 'system:hop-count' },
};

/** Judges evidence. An application's own reason says that the consumer decided, not what the cause was: have a look. */
export function judge(evidence: Evidence): Verdict {
  const reason = evidence.reason?.trim().replace(/\.$/, '').toLowerCase();
  if (reason === undefined || reason === '') return { category: 'unknown', advice: 'investigate', rule: 'no-reason' };
  if (Object.hasOwn(SYSTEM_REASONS, reason)) return SYSTEM_REASONS[reason] as Verdict;
  return { category: 'unknown', advice: 'investigate', rule: 'application-reason' };
}
