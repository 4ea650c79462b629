// The platform's own count, should every signal of the office fail. It counts held letters too and lags behind, so its
// threshold is high. Deployed to the resource group of the office; it watches a namespace of the same subscription.

import { textsType } from 'types.bicep'

@description('Tags of the rule.')
param tags textsType
@description('Label of the namespace in the catalog.')
param label string
@description('Resource id of the namespace.')
param namespaceId string
@description('Names of the queues and topics of the catalog.')
param entities string[]
@description('Dead letters of one entity that are too many by any measure.')
param threshold int
@description('Who is told.')
param actionGroupId string

resource alert 'Microsoft.Insights/metricAlerts@2026-01-01' = {
  name: 'dlo-backstop-${label}'
  location: 'global'
  tags: tags
  properties: {
    description: 'An entity of namespace ${label} has more than ${threshold} dead letters, held ones included. If the office told nothing, look at the office.'
    severity: 3
    enabled: true
    scopes: [namespaceId]
    evaluationFrequency: 'PT15M'
    windowSize: 'PT1H'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          name: 'dead-letters'
          criterionType: 'StaticThresholdCriterion'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'DeadletteredMessages'
          timeAggregation: 'Average'
          operator: 'GreaterThan'
          threshold: threshold
          // Whether the platform writes names as they were given or in lower case is nowhere said.
          dimensions: [
            { name: 'EntityName', operator: 'Include', values: union(entities, map(entities, name => toLower(name))) }
          ]
        }
      ]
    }
    autoMitigate: true
    actions: [{ actionGroupId: actionGroupId }]
  }
}
