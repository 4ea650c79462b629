/** The parts of host.json that the local host obeys, with the real host's defaults. */
import { join } from 'node:path';
import { z } from 'zod';
import { readJson } from '../../cli/jsonFile.ts';

/** .NET's TimeSpan text, `[d.]hh:mm:ss[.fff]`, as milliseconds. Undefined when the text is not one. */
export function parseTimeSpan(text: string): number | undefined {
  const match = /^(?:(\d+)\.)?(\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d{1,7})?$/.exec(text);
  if (!match) return undefined;
  const [days, hours, minutes, seconds] = match.slice(1, 5).map((part) => Number(part ?? 0)) as [
    number,
    number,
    number,
    number,
  ];
  if (hours > 23 || minutes > 59 || seconds > 59) return undefined;
  return Math.round((((days * 24 + hours) * 60 + minutes) * 60 + seconds + Number(match[5] ?? 0)) * 1000);
}

const timeSpan = z.string().transform((text, context) => {
  const milliseconds = parseTimeSpan(text);
  if (milliseconds === undefined) context.addIssue(`"${text}" is not a time span such as 00:05:00`);
  return milliseconds ?? z.NEVER;
});

const hostJsonSchema = z.object({
  version: z.literal('2.0'),
  extensions: z
    .object({
      http: z.object({ routePrefix: z.string().default('api') }).prefault({}),
      serviceBus: z
        .object({
          autoCompleteMessages: z.boolean().default(true),
          maxConcurrentCalls: z.int().min(1).default(16),
          maxAutoLockRenewalDuration: timeSpan.prefault('00:05:00'),
        })
        .prefault({}),
      queues: z
        .object({
          batchSize: z.int().min(1).max(32).default(16),
          newBatchThreshold: z.int().min(0).optional(),
          maxDequeueCount: z.int().min(1).default(5),
          maxPollingInterval: timeSpan.prefault('00:01:00'),
          visibilityTimeout: timeSpan.prefault('00:00:00'),
          messageEncoding: z.enum(['base64', 'none']).default('base64'),
        })
        .prefault({}),
    })
    .prefault({}),
});

/** host.json with defaults filled in; all durations in milliseconds. */
export type HostJson = z.output<typeof hostJsonSchema>;

/** Reads `host.json` in `root`. Throws, saying what is wrong, when it is missing or invalid, as the real host does. */
export async function readHostJson(root: string): Promise<HostJson> {
  const path = join(root, 'host.json');
  const result = hostJsonSchema.safeParse(await readJson(path));
  if (!result.success) throw new Error(`${path} is invalid: ${z.prettifyError(result.error)}`);
  return result.data;
}
