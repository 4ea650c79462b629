// A namespace with the entities of the catalog, for trying the office out. Nobody has a key to it.

import { queueType, subscriptionType, textsType, topicType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Name of the namespace.')
@minLength(6)
@maxLength(50)
param name string
@description('Tier.')
param sku 'Standard' | 'Premium'
@description('Queues, each once.')
param queues queueType[]
@description('Topics, each once.')
param topics topicType[]
@description('Subscriptions, each once.')
param subscriptions subscriptionType[]
@description('Resource id of the workspace for the logs.')
param workspaceId string

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' = {
  name: name
  location: location
  tags: tags
  sku: { name: sku, tier: sku }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: 'Enabled'
  }
}

resource busQueues 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' = [
  for queue in queues: {
    parent: namespace
    name: replace(queue.name, '/', '~')
    properties: {
      lockDuration: queue.?lockDuration
      maxDeliveryCount: queue.?maxDeliveryCount
      requiresDuplicateDetection: queue.?duplicateWindow != null
      duplicateDetectionHistoryTimeWindow: queue.?duplicateWindow
      requiresSession: queue.requiresSession
      deadLetteringOnMessageExpiration: queue.deadLettersOnExpiry
      enablePartitioning: queue.partitioned && sku == 'Standard'
    }
  }
]

resource busTopics 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' = [
  for topic in topics: {
    parent: namespace
    name: replace(topic.name, '/', '~')
    properties: {
      requiresDuplicateDetection: topic.?duplicateWindow != null
      duplicateDetectionHistoryTimeWindow: topic.?duplicateWindow
      enablePartitioning: topic.partitioned && sku == 'Standard'
    }
  }
]

resource topicOf 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' existing = [
  for subscription in subscriptions: {
    parent: namespace
    name: replace(subscription.topic, '/', '~')
  }
]

resource busSubscriptions 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2026-01-01' = [
  for (subscription, i) in subscriptions: {
    parent: topicOf[i]
    name: subscription.name
    properties: {
      forwardTo: subscription.?forwardTo
      lockDuration: subscription.?lockDuration
      maxDeliveryCount: subscription.?maxDeliveryCount
      // What is forwarded is read from the queue: sessions are its affair then, and Service Bus refuses both together.
      requiresSession: subscription.requiresSession && subscription.?forwardTo == null
      deadLetteringOnMessageExpiration: subscription.deadLettersOnExpiry
    }
    dependsOn: [busTopics, busQueues]
  }
]

#disable-next-line use-recent-api-versions // the stable version is of 2016 and knows no groups of categories
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: namespace
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [{ categoryGroup: 'allLogs', enabled: true }]
    metrics: [{ category: 'AllMetrics', enabled: true }]
  }
}
