/** Shapes as the `Config.json` of Microsoft's emulator, which the local broker reads, too. */
import { inOrderOfMaking, type QueueShape, type RuleShape, type ShapeName, shapeOf } from './shapes.ts';

/** A configuration with the entities of these shapes, called as the shapes are. */
export function configOf(names: readonly ShapeName[]): unknown {
  const queues: unknown[] = [];
  const topics: unknown[] = [];
  for (const name of inOrderOfMaking(names)) {
    const shape = shapeOf(name);
    if ('queue' in shape) {
      queues.push({ Name: name, Properties: properties(shape.queue) });
      continue;
    }
    const subscriptions = Object.entries(shape.topic.subscriptions).map(([subscription, queue]) => ({
      Name: subscription,
      Properties: properties(queue),
      ...(queue.rules ? { Rules: queue.rules.map(rule) } : {}),
    }));
    topics.push({ Name: name, Properties: {}, Subscriptions: subscriptions });
  }
  return {
    UserConfig: {
      Namespaces: [{ Name: 'sbemulatorns', Queues: queues, Topics: topics }],
      Logging: { Type: 'Console' },
    },
  };
}

function properties(queue: QueueShape): Record<string, unknown> {
  const window = queue.duplicateDetectionHistoryTimeWindow;
  return {
    LockDuration: queue.lockDuration,
    MaxDeliveryCount: queue.maxDeliveryCount,
    DeadLetteringOnMessageExpiration: queue.deadLetteringOnMessageExpiration ?? false,
    RequiresSession: queue.requiresSession ?? false,
    ...(window ? { RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: window } : {}),
    ...(queue.enablePartitioning ? { EnablePartitioning: true } : {}),
    ...(queue.status ? { Status: queue.status } : {}),
    ...(queue.forwardTo ? { ForwardTo: queue.forwardTo } : {}),
    ...(queue.forwardDeadLetteredMessagesTo
      ? { ForwardDeadLetteredMessagesTo: queue.forwardDeadLetteredMessagesTo }
      : {}),
  };
}

function rule(shape: RuleShape): unknown {
  const filter =
    'sql' in shape
      ? { FilterType: 'Sql', SqlFilter: { SqlExpression: shape.sql } }
      : { FilterType: 'Correlation', CorrelationFilter: { Label: shape.subject } };
  return { Name: shape.name, Properties: filter };
}
