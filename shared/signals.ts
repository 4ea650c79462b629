/**
 * Names of what the office tells a monitoring system. Alerts and the workbook in `infra/` query by them, so they are never
 * renamed. No signal carries personal data: sources, categories, counts, ids of plans.
 */

/** Metrics. Each has the attribute `source` (the catalog name), the first also `category`. */
export const METRICS = {
  /** Open letters, by source and category. Gauge, told after each pass. */
  open: 'dlo.letters.open',
  /** Open letters more than 15 minutes ago. Gauge. */
  growth: 'dlo.letters.growth',
  /** Age of the oldest open letter, seconds. Gauge. */
  oldestAge: 'dlo.letters.oldest_age',
  /** That age as a share of `retainFor`; only for sources that have one. Gauge. */
  retentionUsed: 'dlo.letters.retention_used',
  /** Age of the newest snapshot, seconds: how long nobody has looked. Gauge. */
  snapshotAge: 'dlo.snapshot.age',
  /** Letters that came back from a replay. Counter. */
  returned: 'dlo.letters.returned',
  /** Letters that left, by the attribute `fate`: replayed, discarded, expired, gone. Counter. */
  removed: 'dlo.letters.removed',
  /** Letters that were recorded as having left and are in the dead-letter queue all the same. Counter. */
  reopened: 'dlo.letters.reopened',
  /** Runs that ended or stopped, by the attribute `outcome`: finished, halted, paused, cancelled, expired (not resumed). Counter. */
  runs: 'dlo.runs',
  /** Letters whose classification failed. Counter. */
  classifierErrors: 'dlo.classifier.errors',
  /** Cleanups that failed. Counter. */
  expiryFailures: 'dlo.expiry.failures',
} as const;

/** Custom events. */
export const EVENTS = {
  /** source, sequenceNumber, category, advice, rule, reason when it is the broker's own, fingerprint, replayCount. */
  classified: 'DeadLetterClassified',
  /** source, planId, action, outcome, planned, done, skipped, failed, left, returned, seconds. */
  runFinished: 'RunFinished',
  /** source, planId, why, done, returned. */
  runHalted: 'RunHalted',
  /** source, removed, left. */
  expired: 'LettersExpired',
} as const;
