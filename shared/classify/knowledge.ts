/** What the catalog teaches the classification about one source: its rules, its schemas, its consumer. */
import type { Evidence, Verdict, Violation } from './evidence.ts';
import { compilePayload, NOT_JSON, type PayloadCheck } from './payload.ts';
import { type CompiledRule, compileRule, firstVerdict, type Rule } from './rules.ts';
import type { Sight } from './sight.ts';

/** Made once a source. */
export interface Knowledge {
  readonly rules: readonly CompiledRule[];
  /** By message type. */
  readonly payloads: ReadonlyMap<string, PayloadCheck>;
  readonly consumedBy: string | undefined;
  /** Whether a verdict can depend on the body in more than what a record keeps of it. */
  readonly readsBodies: boolean;
  /** Names of the application properties that rules ask for. */
  readonly properties: readonly string[];
}

export const NO_KNOWLEDGE: Knowledge = {
  rules: [],
  payloads: new Map(),
  consumedBy: undefined,
  readsBodies: false,
  properties: [],
};

/** Makes a source's rules and schemas ready; a source's own rules come before those for all. Throws where they are not valid. */
export function compileKnowledge(
  source: {
    readonly rules: readonly Rule[];
    readonly payloads: Readonly<Record<string, Record<string, unknown>>>;
    readonly consumedBy?: string | undefined;
  },
  catalogRules: readonly Rule[],
): Knowledge {
  const rules = [
    ...source.rules.map((rule) => compileRule(rule, 'own')),
    ...catalogRules.map((rule) => compileRule(rule, 'catalog')),
  ];
  const payloads = new Map(Object.entries(source.payloads).map(([type, schema]) => [type, compilePayload(schema)]));
  return {
    rules,
    payloads,
    consumedBy: source.consumedBy,
    readsBodies: rules.some(({ bodyPath }) => bodyPath !== undefined),
    properties: rules.flatMap(({ property }) => (property === undefined ? [] : [property.name])),
  };
}

/** What the catalog's rules say, if they say anything. */
export function ownVerdict({ rules }: Knowledge, sight: Sight, evidence: Evidence): Verdict | undefined {
  return firstVerdict(rules, sight, evidence);
}

/**
 * Where the body does not fit the schema for its message type; empty without a schema, and for a body that cannot be looked into.
 * `payload` takes the envelope of a framework off.
 */
export function checkPayload(
  { payloads }: Knowledge,
  sight: Sight,
  messageType: string | undefined,
  payload: ((body: unknown) => unknown) | undefined,
): readonly Violation[] {
  const check = messageType === undefined ? undefined : payloads.get(messageType);
  if (check === undefined || !sight.body.isReadable) return [];
  const body = sight.body.json();
  if (body === undefined) return [NOT_JSON];
  return check(payload === undefined ? body : payload(body));
}
