import { z } from 'zod';
import { lockToken, type TriggerSight } from '../broker.ts';

/**
 * What the host tells a Node function about its message: keys with a lower-case first letter, texts that look like JSON
 * parsed (a message id "123" arrives as the number 123), the sequence number as a JavaScript number.
 */
const metadataSchema = z.object({
  sequenceNumber: z.number().int().min(0),
  messageId: z.union([z.string(), z.number(), z.boolean(), z.null()]).optional(),
  lockToken: z.guid().transform(lockToken),
});

/** The message that the trigger holds, or `undefined` when its metadata is not what the host gives. */
export function triggerSight(metadata: unknown): TriggerSight | undefined {
  const parsed = metadataSchema.safeParse(metadata);
  if (!parsed.success) return undefined;
  const { sequenceNumber, lockToken, messageId } = parsed.data;
  return { sequenceNumber, lockToken, messageId: messageId === undefined ? undefined : String(messageId) };
}
