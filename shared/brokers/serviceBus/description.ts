/** What a namespace says of a queue or topic, in the words that both of its interfaces share, read into facts. */
import { z } from 'zod';
import { duration } from '../../duration.ts';
import type { TargetFacts } from '../broker.ts';

/** Facts but for where they come from. */
export type Described = Omit<TargetFacts, 'from'>;

/** How an entity is described; the two that every queue and topic has are what makes the answer one. */
const descriptionSchema = z.object({
  status: z.string().max(64),
  requiresDuplicateDetection: z.boolean(),
  duplicateDetectionHistoryTimeWindow: duration.nullish(),
  // A topic has none of these: its subscriptions have them.
  requiresSession: z.boolean().nullish(),
  deadLetteringOnMessageExpiration: z.boolean().nullish(),
  lockDuration: duration.nullish(),
  maxDeliveryCount: z.number().int().min(1).nullish(),
  defaultMessageTimeToLive: duration.nullish(),
  maxMessageSizeInKilobytes: z.number().int().min(0).max(1_048_576).nullish(),
  enablePartitioning: z.boolean().nullish(),
});

/** From here on a time to live means "never": days of the longest duration that .NET can tell. */
const NEVER_MS = 10_675_199 * 86_400_000;

const STATUS: ReadonlyMap<string, Described['status']> = new Map([
  ['active', 'active'],
  ['disabled', 'disabled'],
  ['senddisabled', 'send-disabled'],
  ['receivedisabled', 'receive-disabled'],
]);

/** Reads a description; throws an `Error` that names the fields that are not what they should be. */
export function readDescription(json: unknown): Described {
  const parsed = descriptionSchema.safeParse(json);
  if (!parsed.success) {
    const fields = parsed.error.issues.map(({ path }) => path.join('.') || 'it');
    throw new Error(`the answer describes no queue or topic: ${fields.join(', ')} cannot be read`);
  }
  const { data } = parsed;
  const window = data.duplicateDetectionHistoryTimeWindow;
  const kilobytes = data.maxMessageSizeInKilobytes;
  const timeToLive = data.defaultMessageTimeToLive;
  return present({
    // Creating, Deleting and the like pass by; what they mean for a send is for the broker to say.
    status: STATUS.get(data.status.toLowerCase()),
    // Detection without a known window is not known: assuming one could let messages be dropped.
    duplicateDetection: data.requiresDuplicateDetection ? window : false,
    requiresSession: data.requiresSession,
    deadLettersOnExpiry: data.deadLetteringOnMessageExpiration,
    defaultTimeToLive: timeToLive !== undefined && timeToLive !== null && timeToLive >= NEVER_MS ? null : timeToLive,
    maxMessageBytes: kilobytes ? kilobytes * 1024 : null,
    lockDuration: data.lockDuration,
    maxDeliveryCount: data.maxDeliveryCount,
    partitioned: data.enablePartitioning,
  });
}

type Nullable<T> = { [Key in keyof T]: T[Key] | null | undefined };

/** Leaves out what is not known. */
function present(facts: Nullable<Described>): Described {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined && value !== null));
}
