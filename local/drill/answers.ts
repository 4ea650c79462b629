/** What the drill shows of the office's answers, and in which order. The rest of an answer is left out. */
import { z } from 'zod';

/** The summary by cause. */
const causes = z.object({
  counts: z.array(
    z.object({
      key: z.string(),
      count: z.number(),
      category: z.string(),
      advice: z.string(),
      sources: z.array(z.string()),
    }),
  ),
});

const counts = z.object({
  planned: z.number(),
  pending: z.number(),
  done: z.number(),
  skipped: z.number(),
  failed: z.number(),
});

/** A dry run. */
const plan = z.object({
  id: z.string(),
  state: z.string(),
  target: z.string(),
  counts,
  findings: z.array(z.object({ code: z.string(), level: z.string(), letters: z.number() })),
});

/** A run that has been started. */
const started = z.object({ state: z.string(), counts });

/** A run, looked at. */
const planNow = z.object({
  state: z.string(),
  stateReason: z.string().nullable(),
  counts,
  returned: z.number(),
});

/** Letters that came back. */
const returned = z.object({
  letters: z.array(z.object({ messageId: z.string(), replayCount: z.number(), advice: z.string() })),
});

const group = z.object({
  open: z.number(),
  triage: z.object({ state: z.string(), owner: z.string().nullable(), note: z.string().nullable() }),
});

const audit = z.object({
  entries: z.array(
    z.object({ operator: z.string(), operation: z.string(), letterCount: z.number(), outcome: z.string().nullable() }),
  ),
});

export const answers = { causes, plan, started, planNow, returned, group, audit };
