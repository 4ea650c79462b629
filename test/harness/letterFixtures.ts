/** Reads `test/fixtures/letters`: dead letters with what is to be found in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { LetterBody } from '../../shared/classify/body.ts';
import { Sight } from '../../shared/classify/sight.ts';
import type { Letter, LetterProperty } from '../../shared/letter.ts';
import { aLetter } from './values.ts';

const FOLDER = join(import.meta.dirname, '../fixtures/letters');

const propertySchema = z.union([
  z.string().transform((value) => ({ type: 'string', value })),
  z.strictObject({ type: z.string(), value: z.union([z.string(), z.number(), z.boolean(), z.null()]) }),
  z
    .strictObject({ before: z.string(), repeat: z.string(), times: z.number(), after: z.string() })
    .transform(({ before, repeat, times, after }) => ({
      type: 'string',
      value: `${before}${repeat.repeat(times)}${after}`,
    })),
]);

const evidenceSchema = z
  .record(z.string(), z.union([z.string(), z.number()]))
  .transform(({ failedAt, ...evidence }) =>
    failedAt === undefined ? evidence : { ...evidence, failedAt: Date.parse(String(failedAt)) },
  );

const fixtureSchema = z.strictObject({
  kind: z.enum(['typical', 'minimal', 'odd', 'hostile']),
  title: z.string(),
  letter: z.strictObject({
    reason: z.string().optional(),
    description: z.string().optional(),
    subject: z.string().optional(),
    contentType: z.string().optional(),
    correlationId: z.string().optional(),
    replayCount: z.number().default(0),
  }),
  properties: z.record(z.string(), propertySchema),
  body: z.unknown().optional(),
  consumedBy: z.string().optional(),
  expect: z.strictObject({
    category: z.string(),
    advice: z.string(),
    rule: z.string(),
    dialects: z.array(z.string()),
    evidence: evidenceSchema,
    unread: z.array(z.string()).optional(),
  }),
});

export type LetterFixture = z.infer<typeof fixtureSchema> & { readonly dialect: string; readonly name: string };

/** All of them. Throws where a file is not as its README says. */
export function letterFixtures(): LetterFixture[] {
  const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return folders.flatMap(({ name: dialect }) =>
    readdirSync(join(FOLDER, dialect)).map((file) => ({
      ...fixtureSchema.parse(JSON.parse(readFileSync(join(FOLDER, dialect, file), 'utf8'))),
      dialect,
      name: file.replace(/\.json$/, ''),
    })),
  );
}

const rawBody = z.strictObject({ text: z.string() });

/** The body's bytes. */
export function bodyOf({ body }: LetterFixture): Buffer {
  if (body === undefined) return Buffer.alloc(0);
  const raw = rawBody.safeParse(body);
  return Buffer.from(raw.success ? raw.data.text : JSON.stringify(body));
}

/** The letter of a fixture. */
export function letterOf(fixture: LetterFixture): Letter {
  const { replayCount, ...fields } = fixture.letter;
  return aLetter({
    reason: undefined,
    description: undefined,
    contentType: undefined,
    ...fields,
    properties: Object.entries(fixture.properties).map(([name, property]): LetterProperty => ({ name, ...property })),
    body: { kind: 'data', bytes: bodyOf(fixture).length, hash: 'hash-1' },
    replay: { count: replayCount, planId: undefined, of: undefined, at: undefined },
  });
}

/** The fixture as a dialect sees it. */
export function sightOf(fixture: LetterFixture): Sight {
  const letter = letterOf(fixture);
  return new Sight(letter, new LetterBody(letter.body, () => [bodyOf(fixture)]), fixture.consumedBy);
}
