/** Schemas of requests that several routes share. */
import { z } from 'zod';
import { ADVICES, CATEGORIES } from '../classify/evidence.ts';
import { type PlanId, parsePlanId } from '../letter.ts';
import { fingerprintSchema, type Selection, selectionSchema, sequenceNumberSchema } from '../selection.ts';

/** Path of one source. Which sources there are is the catalog's word, so any text is taken to the look-up. */
export const sourcePath = z.strictObject({ source: z.string().min(1).max(200) });

export const letterPath = z.strictObject({
  source: z.string().min(1).max(200),
  sequenceNumber: sequenceNumberSchema,
});

export const planPath = z.strictObject({
  id: z.string().transform((text, context): PlanId => {
    const id = parsePlanId(text);
    if (id !== undefined) return id;
    context.addIssue({ code: 'custom', message: 'must be a plan id such as 20261130t104512-k3f5q2xa' });
    return z.NEVER;
  }),
});

export const groupPath = z.strictObject({ fingerprint: fingerprintSchema });

/** A whole number in a query string. */
export function queryNumber(min: number, max: number) {
  return z
    .string()
    .regex(/^\d{1,15}$/, 'must be a whole number')
    .transform(Number)
    .pipe(z.number().min(min).max(max));
}

/** Page size. */
export const top = queryNumber(1, 500).default(50);

/** Where the next page begins; opaque to the caller. As long as the longest key of a row (Azure Tables: 1 KiB of UTF-16), and a letter before it. */
export const continuation = z.string().min(1).max(513).optional();

const list = <Item extends z.ZodType>(item: Item) =>
  z.preprocess((value) => (typeof value === 'string' ? [value] : value), z.array(item).min(1).max(100)).optional();
const text = z.string().min(1).max(4096);

const lists = {
  reason: list(text),
  category: list(z.enum(CATEGORIES)),
  advice: list(z.enum(ADVICES)),
  exceptionType: list(text),
  causeType: list(text),
  rule: list(text),
  messageType: list(text),
  messageId: list(text),
  sequenceNumber: list(sequenceNumberSchema),
  fingerprint: list(fingerprintSchema),
};

/** `name:value`. A colon in the name is written `\:` and a backslash before one `\\`; any other backslash is itself. */
const propertyQuery = z
  .string()
  .max(4096 + 512)
  .describe('name:value, compared as text. A colon in the name is written \\:, as in http\\://host/path:value')
  .transform((pair, context) => {
    let name = '';
    for (let i = 0; i < pair.length; i++) {
      const isEscaped = pair[i] === '\\' && (pair[i + 1] === ':' || pair[i + 1] === '\\');
      if (pair[i] === ':') {
        const equals = pair.slice(i + 1);
        if (name !== '' && name.length <= 256 && equals.length <= 4096) return { name, equals };
        break;
      }
      if (isEscaped) i++;
      name += pair[i];
    }
    context.addIssue({ code: 'custom', message: 'must be name:value, a colon in the name written as \\:' });
    return z.NEVER;
  });

/** The selection as query parameters: lists by repeating a name, `notReason` and so on to leave out, `property=name:value`. */
export const selectionQuery = z.strictObject({
  ...lists,
  notReason: lists.reason,
  notCategory: lists.category,
  notAdvice: lists.advice,
  notExceptionType: lists.exceptionType,
  notCauseType: lists.causeType,
  notRule: lists.rule,
  notMessageType: lists.messageType,
  notMessageId: lists.messageId,
  notSequenceNumber: lists.sequenceNumber,
  notFingerprint: lists.fingerprint,
  seenFrom: selectionSchema.shape.seenFrom,
  seenTo: selectionSchema.shape.seenTo,
  enqueuedFrom: selectionSchema.shape.enqueuedFrom,
  enqueuedTo: selectionSchema.shape.enqueuedTo,
  property: propertyQuery.optional(),
  minReplayCount: queryNumber(0, 1_000_000).optional(),
  maxReplayCount: queryNumber(0, 1_000_000).optional(),
});

/** The selection of a parsed query. */
export function selectionOf(query: z.infer<typeof selectionQuery>): Selection {
  const {
    notReason: reason,
    notCategory: category,
    notAdvice: advice,
    notExceptionType: exceptionType,
    notCauseType: causeType,
    notRule: rule,
    notMessageType: messageType,
    notMessageId: messageId,
    notSequenceNumber: sequenceNumber,
    notFingerprint: fingerprint,
    ...selection
  } = query;
  return {
    ...selection,
    not: {
      reason,
      category,
      advice,
      exceptionType,
      causeType,
      rule,
      messageType,
      messageId,
      sequenceNumber,
      fingerprint,
    },
  };
}
