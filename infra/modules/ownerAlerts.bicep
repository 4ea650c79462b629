// What wakes an owner: growth, letters that near their end, a run that has stopped itself. Log queries on the signals of
// the office. Never "more than zero": a dead letter is an event, growth is a fault.

import { textsType, watchedType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Contact of the owner, as the catalog has it.')
param contact string
@description('Their sources.')
param sources watchedType[]
@description('Resource id of the workspace that is queried.')
param workspaceId string
@description('Groups that are told as well.')
param actionGroupIds string[]

@description('Short and stable for this owner.')
var key = uniqueString(resourceGroup().id, contact)
@description('Sources whose letters have a time by which they are removed.')
var retained = filter(sources, source => source.hasRetention)
@description('Names of all sources, for a query.')
var names = join(map(sources, source => '"${source.name}"'), ', ')
@description('Names of those with retention, for a query.')
var retainedNames = join(map(retained, source => '"${source.name}"'), ', ')
@description('Who is told.')
var told = { actionGroups: union([owner.outputs.id], actionGroupIds) }

module owner 'actionGroup.bicep' = {
  params: {
    tags: tags
    name: 'ag-dlo-${key}'
    contact: contact
  }
}

resource growth 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for source in sources: {
    name: 'dlo-growth-${source.name}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: 'Dead letters of ${source.name} grow'
      description: '${source.growth} more than 15 minutes ago. ${empty(source.runbook) ? 'GET /summary?by=reason says why.' : 'What to do: ${source.runbook}'}'
      severity: source.severity
      enabled: true
      scopes: [workspaceId]
      evaluationFrequency: 'PT5M'
      windowSize: 'PT15M'
      criteria: {
        allOf: [
          {
            query: replace(loadTextContent('../queries/growth.kql'), '{{sources}}', '"${source.name}"')
            metricMeasureColumn: 'growth'
            timeAggregation: 'Maximum'
            operator: 'GreaterThanOrEqual'
            threshold: source.growth
            dimensions: [{ name: 'source', operator: 'Include', values: ['*'] }]
          }
        ]
      }
      autoMitigate: true
      // The tables are there once the first signal has come.
      skipQueryValidation: true
      actions: told
    }
  }
]

resource retention 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = if (!empty(retained)) {
  name: 'dlo-retention-${key}'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'Dead letters near their end'
    description: 'The oldest letter of a source is older than half of retainFor: it will be removed unless somebody acts.'
    severity: 2
    enabled: true
    scopes: [workspaceId]
    evaluationFrequency: 'PT15M'
    windowSize: 'PT30M'
    criteria: {
      allOf: [
        {
          query: replace(loadTextContent('../queries/retention.kql'), '{{sources}}', retainedNames)
          metricMeasureColumn: 'percent'
          timeAggregation: 'Maximum'
          operator: 'GreaterThanOrEqual'
          threshold: 50
          dimensions: [{ name: 'source', operator: 'Include', values: ['*'] }]
        }
      ]
    }
    autoMitigate: true
    skipQueryValidation: true
    actions: told
  }
}

resource halted 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = {
  name: 'dlo-halted-${key}'
  location: location
  tags: tags
  kind: 'LogAlert'
  properties: {
    displayName: 'A replay has halted itself'
    description: 'Too much of what was sent back failed again. It goes on only when somebody resumes it: GET /plans/{id}/report.'
    severity: 2
    enabled: true
    scopes: [workspaceId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      allOf: [
        {
          query: replace(loadTextContent('../queries/halted.kql'), '{{sources}}', names)
          timeAggregation: 'Count'
          operator: 'GreaterThanOrEqual'
          threshold: 1
          dimensions: [
            { name: 'source', operator: 'Include', values: ['*'] }
            { name: 'planId', operator: 'Include', values: ['*'] }
          ]
        }
      ]
    }
    // One event a halt: that there is none any more does not mean that the run goes on.
    autoMitigate: false
    muteActionsDuration: 'PT15M'
    skipQueryValidation: true
    actions: told
  }
}
