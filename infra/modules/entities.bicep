// The entities of a catalog, for a namespace that is made for trying the office out. What is named more than once is
// made once, with the facts of all; where they contradict, those of its own source count.

#disable-diagnostics use-user-defined-types // sources have their schema in shared/catalog.ts; a field that is false or a text has no type here

import { queueType, subscriptionType, topicType } from 'types.bicep'

@description('A queue as the facts of a source describe it.')
func queueOf(name string, entity object) queueType => {
  name: name
  lockDuration: entity.?lockDuration
  maxDeliveryCount: entity.?maxDeliveryCount
  duplicateWindow: windowOf(entity)
  requiresSession: entity.?requiresSession ?? false
  deadLettersOnExpiry: entity.?deadLettersOnExpiry ?? true
  partitioned: entity.?partitioned ?? false
}

@description('The window of duplicate detection; null: none. The catalog has false, or the window.')
func windowOf(entity object) string? =>
  string(entity.?duplicateDetection ?? false) == string(false) ? null : entity.duplicateDetection

@description('A queue that takes copies.')
func sandboxOf(name string) queueType => {
  name: name
  requiresSession: false
  deadLettersOnExpiry: true
  partitioned: false
}

@description('The queue that letters of a subscription go back to; null: there is none.')
func targetOf(source object) string? => source.?replay.?forwardQueue ?? source.?replay.?replayQueue

@export()
@description('The queues of sources. What is said last counts, so they come last.')
func queuesOf(sources object[]) queueType[] =>
  map(
    items(reduce(
      flatten([
        map(
          filter(sources, source => source.?replay.?sandboxQueue != null),
          source => sandboxOf(source.replay.sandboxQueue)
        )
        flatten(map(
          sources,
          source =>
            map(
              filter([source.?replay.?replayQueue, source.?replay.?forwardQueue], name => name != null),
              name => queueOf(name, union(source.?entity ?? {}, { partitioned: false }))
            )
        ))
        map(filter(sources, source => source.?queue != null), source => queueOf(source.queue, source.?entity ?? {}))
      ]),
      {},
      (all, queue) => union(all, { '${toLower(queue.name)}': queue })
    )),
    entry => entry.value
  )

@export()
@description('The topics of sources. They detect duplicates where letters go back to them and not to a queue.')
func topicsOf(sources object[]) topicType[] =>
  map(
    items(reduce(
      map(filter(sources, source => source.?topic != null), source => {
        name: source.topic
        duplicateWindow: targetOf(source) == null ? windowOf(source.?entity ?? {}) : null
        partitioned: source.?entity.?partitioned ?? false
      }),
      {},
      (all, topic) => union(all, { '${toLower(topic.name)}': topic })
    )),
    entry => entry.value
  )

@export()
@description('The subscriptions of sources.')
func subscriptionsOf(sources object[]) subscriptionType[] =>
  map(filter(sources, source => source.?topic != null), source => {
    topic: source.topic
    name: source.subscription
    forwardTo: source.?replay.?forwardQueue
    lockDuration: source.?entity.?lockDuration
    maxDeliveryCount: source.?entity.?maxDeliveryCount
    requiresSession: source.?entity.?requiresSession ?? false
    deadLettersOnExpiry: source.?entity.?deadLettersOnExpiry ?? true
  })
