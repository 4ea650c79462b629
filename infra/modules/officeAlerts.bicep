// What wakes those who run the office: it is blind, it cannot read letters, it cannot remove them.

import { textsType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Who runs the office: a mail address.')
param contact string
@description('Names of all sources.')
param sources string[]
@description('Resource id of the workspace that is queried.')
param workspaceId string
@description('Groups that are told as well.')
param actionGroupIds string[]

@description('One rule: its query, and when it fires.')
type ruleType = {
  @description('Part of its name.')
  name: string
  @description('Title.')
  title: string
  @description('What it means, and what to do.')
  description: string
  @description('0 (critical) to 4 (verbose).')
  severity: 0 | 1 | 2 | 3 | 4
  @description('What is asked.')
  query: string
  @description('What is counted; absent: rows.')
  column: string?
  @description('From which number on it fires.')
  threshold: int
  @description('What it looks back over, ISO 8601.')
  window: string
}

@description('The rules.')
var rules ruleType[] = [
  {
    name: 'silence'
    title: 'The office does not look'
    description: 'For 15 minutes nobody has looked at at least one dead-letter queue, or nothing was heard of it: GET /health.'
    severity: 1
    query: replace(
      loadTextContent('../queries/silence.kql'),
      '{{sources}}',
      join(map(sources, source => '"${source}"'), ', ')
    )
    threshold: 1
    window: 'PT30M'
  }
  {
    name: 'classifier'
    title: 'Letters cannot be classified'
    description: 'A dialect failed. No letter is lost: they are recorded as unknown, with the error.'
    severity: 2
    query: loadTextContent('../queries/classifier.kql')
    column: 'errors'
    threshold: 1
    window: 'PT15M'
  }
  {
    name: 'expiry'
    title: 'The retention cleanup fails'
    description: 'It has failed at least twice within an hour: letters stay longer than promised.'
    severity: 2
    query: loadTextContent('../queries/expiry.kql')
    column: 'failures'
    threshold: 2
    window: 'PT1H'
  }
]

module operators 'actionGroup.bicep' = {
  params: {
    tags: tags
    name: 'ag-dlo-office'
    contact: contact
  }
}

resource alerts 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in rules: {
    name: 'dlo-${rule.name}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: rule.title
      description: rule.description
      severity: rule.severity
      enabled: true
      scopes: [workspaceId]
      evaluationFrequency: 'PT5M'
      windowSize: rule.window
      criteria: {
        allOf: [
          {
            query: rule.query
            metricMeasureColumn: rule.?column
            timeAggregation: rule.?column == null ? 'Count' : 'Total'
            operator: 'GreaterThanOrEqual'
            threshold: rule.threshold
          }
        ]
      }
      autoMitigate: true
      skipQueryValidation: true
      actions: { actionGroups: union([operators.outputs.id], actionGroupIds) }
    }
  }
]

@description('Resource id of the group of those who run the office.')
output actionGroupId string = operators.outputs.id
