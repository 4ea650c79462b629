// The workbook: what died, why, what was done about it. A row for each source of the catalog, whether it was heard of or not.

import { textsType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of the workbook.')
param tags textsType
@description('Title.')
param title string
@description('The rows of the sources, JSON.')
param rows string
@description('Resource id of the workspace that is queried.')
param workspaceId string

@description('The rows as they stand inside a text of JSON: as one, without its brackets and quotes. A backtick would end the text in the query.')
var list = string([replace(rows, '`', '')])
@description('The workbook, filled in.')
var content = replace(
  replace(loadTextContent('../workbook.json'), '{{workspace}}', workspaceId),
  '{{sources}}',
  substring(list, 2, max(0, length(list) - 4))
)

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(resourceGroup().id, 'dead-letters')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: title
    category: 'workbook'
    sourceId: workspaceId
    version: 'Notebook/1.0'
    serializedData: content
  }
}
