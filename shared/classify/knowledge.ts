/** What the catalog teaches the classification about one source: its rules, its schemas, its consumer. */
import type { Classification, Evidence, Verdict, Violation } from './evidence.ts';
import { compilePayload, NOT_JSON, type PayloadCheck } from './payload.ts';
import { type CompiledRule, compileRule, couldAskBody, firstVerdict, type Rule } from './rules.ts';
import type { Sight } from './sight.ts';

/** Made once a source. */
export interface Knowledge {
  readonly rules: readonly CompiledRule[];
  /** By message type. */
  readonly payloads: ReadonlyMap<string, PayloadCheck>;
  readonly consumedBy: string | undefined;
  /** Names of the application properties that rules ask for. */
  readonly properties: readonly string[];
}

export const NO_KNOWLEDGE: Knowledge = {
  rules: [],
  payloads: new Map(),
  consumedBy: undefined,
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
    properties: rules.flatMap(({ property }) => (property === undefined ? [] : [property.name])),
  };
}

/**
 * Whether a record that keeps `kept` of a letter is not enough to judge it again: a rule or a schema has to see the body, a
 * property that a rule asks for was cut, or what was found by an older version is less than rules can ask for.
 */
export function needsMessage(
  { rules, payloads, properties }: Knowledge,
  sight: Sight,
  kept: { readonly found: Classification; readonly cut: readonly string[] },
): boolean {
  const { found, cut } = kept;
  const isOld = found.layers.length === 0 && found.dialects.length > 0;
  if (found.error !== undefined || isOld) return true;
  if (payloads.has(found.evidence.messageType ?? '')) return true;
  if (rules.length > 0 && cut.some((name) => name.startsWith('evidence'))) return true;
  const isCut = (name: string) =>
    cut.includes(`properties.${name}`) || (cut.includes('properties') && !sight.property(name));
  return properties.some(isCut) || couldAskBody(rules, sight, found.evidence);
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
