/** The `$management` operations on the rules of a subscription. */
import { encode, encodeList } from '../../../shared/brokers/serviceBus/amqp.ts';
import { encodeStringMap } from '../encoding.ts';
import { BrokerError } from '../errors.ts';
import { type Arguments, malformed } from '../request.ts';
import type { RuleSet } from './rule-set.ts';
import { encodeRule, readRuleDescription } from './wire.ts';

/** A successful answer; `body` is an encoded value. */
interface Answer {
  readonly status: 200 | 204;
  readonly body: Buffer;
}

type RuleOperation = (rules: RuleSet, args: Arguments, now: number) => Answer;

/** Operations by name. */
export const RULE_OPERATIONS: Readonly<Record<string, RuleOperation>> = {
  'com.microsoft:add-rule': addRule,
  'com.microsoft:remove-rule': removeRule,
  'com.microsoft:enumerate-rules': enumerateRules,
};

/** Carries out an operation on rules. Throws {@link BrokerError}, also when the entity can have none. */
export function manageRules(
  operation: RuleOperation,
  rules: RuleSet | undefined,
  args: Arguments,
  now: number,
): Answer {
  if (rules) return operation(rules, args, now);
  throw new BrokerError('amqp:not-allowed', 'Only a subscription has rules.');
}

function addRule(rules: RuleSet, args: Arguments, now: number): Answer {
  const description = args.raw('rule-description');
  if (!description) throw malformed("'rule-description' must be a map.");
  rules.add({ name: ruleName(args), ...readRuleDescription(description), createdAt: now });
  return { status: 200, body: encodeStringMap({}) };
}

function removeRule(rules: RuleSet, args: Arguments): Answer {
  rules.remove(ruleName(args));
  return { status: 200, body: encodeStringMap({}) };
}

function enumerateRules(rules: RuleSet, args: Arguments): Answer {
  const [skip, top] = [args.integer('skip', 'int'), args.integer('top', 'int')];
  if (skip < 0n || top < 1n) throw malformed("'skip' must not be negative and 'top' must be positive.");
  const page = rules.list().slice(toIndex(skip), toIndex(skip + top));
  if (page.length === 0) return { status: 204, body: encode.null() };
  const items = page.map((rule) => encodeStringMap({ 'rule-description': encodeRule(rule) }));
  return { status: 200, body: encodeStringMap({ rules: encodeList(items) }) };
}

function toIndex(value: bigint): number {
  return value > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : Number(value);
}

function ruleName(args: Arguments): string {
  const name = args.text('rule-name');
  if (name === undefined) throw malformed("'rule-name' must be a string.");
  return name;
}
