/** Makes the entities of shapes through the administration client, and removes them. */
import type { AuthorizationRule, CreateQueueOptions, ServiceBusAdministrationClient } from '@azure/service-bus';
import { NotCheckable, show } from '../belief.ts';
import { inOrderOfMaking, type QueueShape, type RuleShape, type ShapeName, shapeOf } from '../shapes.ts';

/** Entities that were made, by shape. */
export interface Made {
  readonly names: ReadonlyMap<ShapeName, string>;
  /** Removes them all; says what could not be removed. */
  remove(): Promise<string[]>;
}

/** Longest name that is left for a prefix and a shape. */
export function entityName(prefix: string, shape: ShapeName): string {
  return `${prefix}-${shape.toLowerCase()}`;
}

/**
 * Makes the entities of these shapes and of those they forward to. Throws `NotCheckable` when the namespace refuses
 * one, after removing what was made. `rules` are keys for every queue.
 */
export async function make(
  administration: ServiceBusAdministrationClient,
  prefix: string,
  shapes: readonly ShapeName[],
  rules: AuthorizationRule[] = [],
): Promise<Made> {
  const names = new Map<ShapeName, string>();
  const remove = async () => {
    const left: string[] = [];
    for (const [shape, name] of [...names].reverse()) {
      const removing = 'queue' in shapeOf(shape) ? administration.deleteQueue(name) : administration.deleteTopic(name);
      await removing.catch((error: unknown) => left.push(`${name} (${show(error)})`));
    }
    return left;
  };
  for (const shape of inOrderOfMaking(shapes)) {
    const name = entityName(prefix, shape);
    try {
      await makeOne(administration, name, shape, names, rules);
    } catch (error) {
      await remove();
      throw new NotCheckable(`the entity "${shape}" could not be made: ${show(error)}`);
    }
  }
  return { names, remove };
}

async function makeOne(
  administration: ServiceBusAdministrationClient,
  name: string,
  shape: ShapeName,
  names: Map<ShapeName, string>,
  authorizationRules: AuthorizationRule[],
): Promise<void> {
  const form = shapeOf(shape);
  if ('queue' in form) {
    const more = authorizationRules.length > 0 ? { authorizationRules } : {};
    await administration.createQueue(name, { ...optionsOf(form.queue, names), ...more });
    names.set(shape, name);
    return;
  }
  await administration.createTopic(name);
  names.set(shape, name);
  for (const [subscription, queue] of Object.entries(form.topic.subscriptions)) {
    const { enablePartitioning: _, ...options } = optionsOf(queue, names);
    const [first, ...others] = queue.rules ?? [];
    const defaultRuleOptions = first && { name: first.name, filter: filterOf(first) };
    await administration.createSubscription(name, subscription, {
      ...options,
      ...(defaultRuleOptions ? { defaultRuleOptions } : {}),
    });
    for (const rule of others) await administration.createRule(name, subscription, rule.name, filterOf(rule));
  }
}

function optionsOf(shape: QueueShape, names: ReadonlyMap<ShapeName, string>): CreateQueueOptions {
  const { rules: _, forwardTo, forwardDeadLetteredMessagesTo, ...same } = shape;
  const queue = (target: ShapeName | undefined) => (target === undefined ? undefined : names.get(target));
  const [to, deadTo] = [queue(forwardTo), queue(forwardDeadLetteredMessagesTo)];
  return {
    ...same,
    ...(same.duplicateDetectionHistoryTimeWindow ? { requiresDuplicateDetection: true } : {}),
    ...(to === undefined ? {} : { forwardTo: to }),
    ...(deadTo === undefined ? {} : { forwardDeadLetteredMessagesTo: deadTo }),
  };
}

function filterOf(rule: RuleShape) {
  return 'sql' in rule ? { sqlExpression: rule.sql } : { subject: rule.subject };
}
