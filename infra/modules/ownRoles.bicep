// What the office may do with its own resources. The account holds nothing but the office's, and the host makes containers
// and tables in it as it needs them, so the account is the narrowest scope that works.

@description('Resource id of the identity of the office.')
param identityId string
@description('Object id of that identity.')
param principalId string
@description('Name of the storage account.')
param storageName string
@description('Name of the Application Insights resource.')
param insightsName string

@description('Storage Blob Data Owner: the host leases blobs, and the package is read from one.')
var blobDataOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
@description('Storage Queue Data Contributor.')
var queueDataContributor = '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
@description('Storage Table Data Contributor.')
var tableDataContributor = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
@description('Monitoring Metrics Publisher: what sends to an Application Insights resource without local auth needs.')
var metricsPublisher = '3913510d-42f4-4e42-8a64-420c390055eb'

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' existing = {
  name: storageName
}

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}

resource storageRoles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in [blobDataOwner, queueDataContributor, tableDataContributor]: {
    scope: account
    name: guid(account.id, identityId, role)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

resource publisher 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: insights
  name: guid(insights.id, identityId, metricsPublisher)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', metricsPublisher)
  }
}
