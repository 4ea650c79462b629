/** The catalog's own rules: their schema, and how they speak. */
import { z } from 'zod';
import { ADVICES, CATEGORIES, type Evidence, type Verdict } from './evidence.ts';
import { type JsonPath, parseJsonPath, valueAt } from './jsonPath.ts';
import { compilePattern, fits, foldText, type Pattern } from './pattern.ts';
import type { Sight } from './sight.ts';

const pattern = z.string().min(1).max(500);
/** One pattern or several, of which any may fit. */
const patterns = z.union([pattern, z.array(pattern).min(1).max(20)]);

/** A value compared as text: exactly, or with a pattern. */
const value = {
  equals: z.string().max(4096).optional(),
  matches: patterns.optional(),
};
const exactlyOne = 'needs either `equals` or `matches`';
const hasOne = ({ equals, matches }: { equals?: unknown; matches?: unknown }) =>
  (equals === undefined) !== (matches === undefined);

const conditions = z
  .strictObject({
    /** The dead-letter reason. */
    reason: patterns.optional(),
    description: patterns.optional(),
    /** The exception's or its cause's type, with namespace. */
    exceptionType: patterns.optional(),
    /** The exception's or its cause's message. */
    exceptionMessage: patterns.optional(),
    messageType: patterns.optional(),
    /** An application property. */
    property: z
      .strictObject({ name: z.string().min(1).max(256), ...value })
      .refine(hasOne, exactlyOne)
      .optional(),
    /** A value in a JSON body. */
    bodyPath: z
      .strictObject({
        path: z
          .string()
          .max(1024)
          .refine((path) => parseJsonPath(path) !== undefined, 'must be a path such as `order.lines[0].sku`'),
        ...value,
      })
      .refine(hasOne, exactlyOne)
      .optional(),
  })
  .refine((when) => Object.values(when).some((one) => one !== undefined), 'needs at least one condition');

/** A rule in the catalog: all its conditions must hold. The first rule to fit speaks. */
export const ruleSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be lower-case letters, digits and hyphens, at most 63'),
  when: conditions,
  category: z.enum(CATEGORIES),
  advice: z.enum(ADVICES),
  label: z.string().min(1).max(200).optional(),
  runbook: z.url().max(1000).optional(),
});

/** Rules in their order; names are told apart within the list. */
export const rulesSchema = z
  .array(ruleSchema)
  .max(200)
  .superRefine((rules, context) => {
    const names = new Set<string>();
    for (const [index, { name }] of rules.entries()) {
      if (names.has(name)) context.addIssue({ code: 'custom', path: [index, 'name'], message: 'is used twice' });
      names.add(name);
    }
  })
  .default([]);

export type Rule = z.infer<typeof ruleSchema>;

/** Most patterns that one letter is compared with, the source's and those of all sources together. */
export const MAX_PATTERNS = 1000;

/** How many patterns some rules have. */
export function countPatterns(rules: readonly Rule[]): number {
  let count = 0;
  for (const { when } of rules) {
    for (const one of [when.reason, when.description, when.exceptionType, when.exceptionMessage, when.messageType]) {
      count += Array.isArray(one) ? one.length : one === undefined ? 0 : 1;
    }
    for (const one of [when.property, when.bodyPath])
      count += Array.isArray(one?.matches) ? one.matches.length : one ? 1 : 0;
  }
  return count;
}

interface CompiledValue {
  readonly equals: string | undefined;
  readonly matches: readonly Pattern[];
}

/** A rule, ready to be asked. */
export interface CompiledRule {
  readonly verdict: Verdict;
  readonly texts: readonly { readonly of: TextTrait; readonly patterns: readonly Pattern[] }[];
  readonly property: (CompiledValue & { readonly name: string }) | undefined;
  readonly bodyPath: (CompiledValue & { readonly path: JsonPath }) | undefined;
}

const TEXT_TRAITS = ['reason', 'description', 'exceptionType', 'exceptionMessage', 'messageType'] as const;
type TextTrait = (typeof TEXT_TRAITS)[number];

/** Makes a rule ready. `from` tells whose it is in the verdict's `rule`: `own:<name>` or `catalog:<name>`. */
export function compileRule(rule: Rule, from: 'own' | 'catalog'): CompiledRule {
  const { when, name, category, advice, label, runbook } = rule;
  const { property, bodyPath } = when;
  return {
    verdict: {
      category,
      advice,
      rule: `${from}:${name}`,
      ...(label !== undefined && { label }),
      ...(runbook !== undefined && { runbook }),
    },
    texts: TEXT_TRAITS.flatMap((of) => {
      const given = when[of];
      return given === undefined ? [] : [{ of, patterns: compileAll(given) }];
    }),
    property: property && { name: property.name, ...compileValue(property) },
    // The schema has checked the path.
    bodyPath: bodyPath && { path: parseJsonPath(bodyPath.path) ?? [], ...compileValue(bodyPath) },
  };
}

function compileValue({ equals, matches }: { equals?: string | undefined; matches?: string | string[] | undefined }) {
  return { equals, matches: matches === undefined ? [] : compileAll(matches) };
}

function compileAll(given: string | readonly string[]): Pattern[] {
  return (typeof given === 'string' ? [given] : given).map(compilePattern);
}

/** The verdict of the first rule that fits, or `undefined`. Bodies are asked for last, and only by rules that fit otherwise. */
export function firstVerdict(rules: readonly CompiledRule[], sight: Sight, evidence: Evidence): Verdict | undefined {
  const texts = new Texts(evidence);
  for (const { verdict, texts: wanted, property, bodyPath } of rules) {
    if (!texts.fit(wanted)) continue;
    if (property !== undefined && !fitsValue(property, sight.property(property.name)?.value)) continue;
    if (bodyPath !== undefined && !fitsValue(bodyPath, valueAt(sight.body.json(), bodyPath.path))) continue;
    return verdict;
  }
  return undefined;
}

/** Whether only the body is missing for a rule to fit. */
export function couldAskBody(rules: readonly CompiledRule[], sight: Sight, evidence: Evidence): boolean {
  const texts = new Texts(evidence);
  return rules.some(
    ({ texts: wanted, property, bodyPath }) =>
      bodyPath !== undefined &&
      texts.fit(wanted) &&
      (property === undefined || fitsValue(property, sight.property(property.name)?.value)),
  );
}

/** The texts that rules compare, each made ready when the first rule asks for it. */
class Texts {
  readonly #evidence: Evidence;
  readonly #ready: Partial<Record<TextTrait, readonly string[]>> = {};

  constructor(evidence: Evidence) {
    this.#evidence = evidence;
  }

  /** Whether for each trait any of its texts fits any of its patterns. */
  fit(wanted: CompiledRule['texts']): boolean {
    for (const { of, patterns } of wanted) if (!this.#fits(of, patterns)) return false;
    return true;
  }

  #fits(of: TextTrait, patterns: readonly Pattern[]): boolean {
    this.#ready[of] ??= this.#read(of).flatMap((text) => (text === undefined ? [] : [foldText(text)]));
    for (const text of this.#ready[of]) for (const pattern of patterns) if (fits(pattern, text)) return true;
    return false;
  }

  #read(of: TextTrait): (string | undefined)[] {
    const { exceptionType, causeType, exceptionMessage, causeMessage } = this.#evidence;
    if (of === 'exceptionType') return [exceptionType, causeType];
    if (of === 'exceptionMessage') return [exceptionMessage, causeMessage];
    return [this.#evidence[of]];
  }
}

/** Numbers and truth values are compared as JSON writes them; objects, lists and null fit nothing. */
function fitsValue({ equals, matches }: CompiledValue, found: unknown): boolean {
  if (typeof found !== 'string' && typeof found !== 'number' && typeof found !== 'boolean') return false;
  const text = String(found);
  if (equals !== undefined) return text === equals;
  const lower = foldText(text);
  return matches.some((one) => fits(one, lower));
}
