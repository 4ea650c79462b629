// What the office may do in one namespace: receive and send, on each entity that the catalog names, and nothing else. Both
// roles carry the Resource Manager reads that preflight needs.

import { rightsType } from 'types.bicep'

@description('Name of the namespace; it is in the resource group that this module is deployed to.')
param namespaceName string
@description('Resource id of the identity of the office.')
param identityId string
@description('Object id of that identity.')
param principalId string
@description('What the office may do.')
param rights rightsType

@description('Azure Service Bus Data Receiver.')
var receiver = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0')
@description('Azure Service Bus Data Sender.')
var sender = subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39')

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName
}

// A slash in the name of an entity is a tilde in its resource id.
resource receiveQueues 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' existing = [
  for queue in rights.receiveQueues: {
    parent: namespace
    name: replace(queue, '/', '~')
  }
]

resource receiveQueueRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (queue, i) in rights.receiveQueues: {
    scope: receiveQueues[i]
    name: guid(receiveQueues[i].id, identityId, receiver)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: receiver
    }
  }
]

resource receiveTopics 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' existing = [
  for subscription in rights.receiveSubscriptions: {
    parent: namespace
    name: replace(subscription.topic, '/', '~')
  }
]

resource receiveSubscriptions 'Microsoft.ServiceBus/namespaces/topics/subscriptions@2026-01-01' existing = [
  for (subscription, i) in rights.receiveSubscriptions: {
    parent: receiveTopics[i]
    name: subscription.name
  }
]

resource receiveSubscriptionRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (subscription, i) in rights.receiveSubscriptions: {
    scope: receiveSubscriptions[i]
    name: guid(receiveSubscriptions[i].id, identityId, receiver)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: receiver
    }
  }
]

resource sendQueues 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' existing = [
  for queue in rights.sendQueues: {
    parent: namespace
    name: replace(queue, '/', '~')
  }
]

resource sendQueueRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (queue, i) in rights.sendQueues: {
    scope: sendQueues[i]
    name: guid(sendQueues[i].id, identityId, sender)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: sender
    }
  }
]

resource sendTopics 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' existing = [
  for topic in rights.sendTopics: {
    parent: namespace
    name: replace(topic, '/', '~')
  }
]

resource sendTopicRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (topic, i) in rights.sendTopics: {
    scope: sendTopics[i]
    name: guid(sendTopics[i].id, identityId, sender)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: sender
    }
  }
]
