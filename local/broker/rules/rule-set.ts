/**
 * The rules of one subscription. A message gets in when any of them lets it in: once for all that have no action, and once more
 * for each that has one, as its action makes it (documentation, "Topic filters and actions").
 */
import { BrokerError } from '../errors.ts';
import type { StoredMessage } from '../message.ts';
import { type Action, changed } from './action.ts';
import type { Filter, Judge } from './filter.ts';

export interface Rule {
  readonly name: string;
  readonly filter: Filter;
  readonly action?: Action | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

/** The rule a subscription has when it is created without any: everything. */
export const DEFAULT_RULE = '$Default';

const NAME = /^[A-Za-z0-9$](?:[A-Za-z0-9._\-$]*[A-Za-z0-9])?$/;
/** Longest rule name, characters (Service Bus documentation, quotas). */
const MAX_NAME = 50;
/** Rules of one subscription; the service has limits of its own, this one keeps a client from filling the memory. */
const MAX_RULES = 2000;

export class RuleSet {
  /** By name in lower case. */
  readonly #rules = new Map<string, Rule>();

  constructor(rules: readonly Rule[]) {
    for (const rule of rules) this.add(rule);
  }

  /** Throws a {@link BrokerError} when the name is taken or is none. */
  add(rule: Rule): void {
    if (!NAME.test(rule.name) || rule.name.length > MAX_NAME) {
      throw new BrokerError(
        'com.microsoft:argument-error',
        `'${rule.name.slice(0, 100)}' is not a valid name of a rule.`,
      );
    }
    if (this.#rules.has(rule.name.toLowerCase())) {
      throw new BrokerError(
        'com.microsoft:entity-already-exists',
        `The rule '${rule.name}' exists already on this subscription.`,
      );
    }
    if (this.#rules.size >= MAX_RULES) {
      throw new BrokerError('amqp:resource-limit-exceeded', `A subscription has at most ${MAX_RULES} rules.`);
    }
    this.#rules.set(rule.name.toLowerCase(), rule);
  }

  /** Puts a rule in the place of the one of its name. Throws amqp:not-found when there is none. */
  replace(rule: Rule): void {
    const { createdAt } = this.get(rule.name);
    this.#rules.set(rule.name.toLowerCase(), { ...rule, createdAt });
  }

  /** Throws amqp:not-found when there is no such rule. */
  remove(name: string): void {
    this.get(name);
    this.#rules.delete(name.toLowerCase());
  }

  /** Throws amqp:not-found when there is no such rule. */
  get(name: string): Rule {
    const rule = this.#rules.get(name.toLowerCase());
    if (rule) return rule;
    throw new BrokerError('amqp:not-found', `The messaging entity rule '${name.slice(0, 100)}' could not be found.`);
  }

  has(name: string): boolean {
    return this.#rules.has(name.toLowerCase());
  }

  /** All rules, by name. */
  list(): Rule[] {
    return [...this.#rules.keys()].sort().map((key) => this.#rules.get(key) as Rule);
  }

  /** What of a message gets in: no copy, or several. A rule whose action fails lets nothing in. */
  copies(message: StoredMessage, judge: Judge): StoredMessage[] {
    const matching = [...this.#rules.values()].filter(({ filter }) => judge.accepts(filter));
    const plain = matching.some(({ action }) => action === undefined) ? [message] : [];
    const made = matching.flatMap(({ name, action }) => (action && changed(message, action, name)) ?? []);
    return [...plain, ...made];
  }
}
