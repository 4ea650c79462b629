/** What the story shows of the office's answers, and in which order. The rest of an answer is left out. */
import { z } from 'zod';

export const sourcesAnswer = z.object({
  sources: z.array(z.object({ name: z.string(), entity: z.string(), mode: z.string(), open: z.number().nullable() })),
});

export const summaryAnswer = z.object({
  total: z.number(),
  counts: z.array(z.object({ key: z.string().nullable(), count: z.number() })),
});

/** Letters with the office's view of their deaths. */
export const lettersAnswer = z.object({
  letters: z.array(
    z.object({
      sequenceNumber: z.string(),
      messageId: z.string(),
      reason: z.string(),
      advice: z.string(),
    }),
  ),
});

/** The same letters, with the link to the plan that sent them. */
export const returnedAnswer = z.object({
  letters: z.array(
    z.object({ messageId: z.string(), replayCount: z.number(), replayId: z.string().nullable(), sequenceNumber: z.string() }),
  ),
});

const counts = z.object({ planned: z.number(), pending: z.number(), done: z.number(), skipped: z.number() });

/** A dry run. */
export const planAnswer = z.object({
  id: z.string(),
  state: z.string(),
  target: z.string(),
  counts,
  findings: z.array(z.object({ code: z.string(), level: z.string(), letters: z.number() })),
});

/** A run. */
export const runAnswer = z.object({ state: z.string(), counts: counts.extend({ maybeDuplicate: z.number() }) });

/** A run that has been watched. */
export const planNowAnswer = z.object({ state: z.string(), counts, returned: z.number() });

/** One letter that came back. */
export const letterAnswer = z.object({
  messageId: z.string(),
  deliveryCount: z.number(),
  replay: z.object({ count: z.number(), planId: z.string(), of: z.string() }),
  history: z.array(
    z.object({ sequenceNumber: z.string(), fate: z.object({ fate: z.string(), planId: z.string() }) }),
  ),
});

/** A problem. */
export const problemAnswer = z.object({ code: z.string(), detail: z.string(), action: z.string() });

export const expiryAnswer = z.object({
  count: z.number(),
  letters: z.array(z.object({ messageId: z.string(), sequenceNumber: z.string(), firstSeen: z.string() })),
});

export const fateAnswer = z.object({
  messageId: z.string(),
  fate: z.object({ fate: z.string(), at: z.string() }).nullable(),
});

export const auditAnswer = z.object({
  entries: z.array(
    z.object({ operator: z.string(), operation: z.string(), letterCount: z.number(), outcome: z.string().nullable() }),
  ),
});
