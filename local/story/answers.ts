/** What the story shows of the office's answers, and in which order. The rest of an answer is left out. */
import { z } from 'zod';

const summary = z.object({
  total: z.number(),
  counts: z.array(z.object({ key: z.string().nullable(), count: z.number() })),
});

/** Letters with the office's view of their deaths. */
const letters = z.object({
  letters: z.array(
    z.object({
      messageId: z.string(),
      reason: z.string(),
      advice: z.string(),
    }),
  ),
});

/** The same letters, with the link to the plan that sent them. */
const returned = z.object({
  letters: z.array(z.object({ messageId: z.string(), replayCount: z.number(), replayId: z.string().nullable() })),
});

const counts = z.object({ planned: z.number(), pending: z.number(), done: z.number(), skipped: z.number() });

/** A dry run. */
const plan = z.object({
  id: z.string(),
  state: z.string(),
  target: z.string(),
  counts,
  findings: z.array(z.object({ code: z.string(), level: z.string(), letters: z.number() })),
});

/** Their numbers, for a look at one of them. */
const numbers = z.object({ letters: z.array(z.object({ sequenceNumber: z.string() })) });

/** A dry run that is like the one before. */
const planInShort = plan.pick({ id: true, state: true, counts: true });

/** A run. */
const run = z.object({ state: z.string(), counts: counts.extend({ maybeDuplicate: z.number() }) });

/** A run that has been watched. */
const planNow = z.object({ state: z.string(), counts, returned: z.number() });

/** One letter that came back. */
const letter = z.object({
  messageId: z.string(),
  deliveryCount: z.number(),
  replay: z.object({ count: z.number(), planId: z.string(), of: z.string() }),
  history: z.array(z.object({ sequenceNumber: z.string(), fate: z.object({ fate: z.string(), planId: z.string() }) })),
});

/** Letters and what killed them. */
const causes = z.object({
  letters: z.array(z.object({ messageId: z.string(), rule: z.string(), advice: z.string() })),
});

/** What a framework wrote on its letter. */
const evidence = z.object({
  messageId: z.string(),
  dialects: z.array(z.string()),
  evidence: z.object({
    exceptionType: z.string(),
    exceptionMessage: z.string(),
    frame: z.string(),
    consumer: z.string(),
    attempts: z.number(),
  }),
});

/** A problem. */
const problem = z.object({ code: z.string(), detail: z.string(), action: z.string() });

const expiry = z.object({
  count: z.number(),
  letters: z.array(z.object({ messageId: z.string(), sequenceNumber: z.string(), firstSeen: z.string() })),
});

/** How a letter left. */
const fate = z.object({
  messageId: z.string(),
  fate: z.object({ fate: z.string(), at: z.string() }).nullable(),
});

const audit = z.object({
  entries: z.array(
    z.object({ operator: z.string(), operation: z.string(), letterCount: z.number(), outcome: z.string().nullable() }),
  ),
});

export const answers = {
  letters,
  summary,
  returned,
  numbers,
  plan,
  planInShort,
  run,
  planNow,
  letter,
  causes,
  evidence,
  problem,
  expiry,
  fate,
  audit,
};
