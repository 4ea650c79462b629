// The office's own account: its package, tables, continuation queue and archive. No keys, nothing public.

import { textsType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Name of the account.')
@minLength(3)
@maxLength(24)
param name string
@description('Redundancy.')
param sku string
@description('Name of the container that holds the deployed package.')
param packageContainer string
@description('How long archived letters are kept, days.')
param archiveDays int
@description('Whether it can be reached over private endpoints only.')
param isPrivate bool
@description('Resource id of the workspace for the logs.')
param workspaceId string

@description('Container for copies of removed letters; its name is known to the office.')
var archiveContainer = 'dead-letter-archive'
@description('The tables of the office. It makes them itself when one is missing.')
var tables = ['letters', 'plans', 'sends', 'groups', 'snapshots', 'sources', 'audit']
@description('The continuation queue, and where the host puts what it could not handle.')
var queues = ['runs', 'runs-poison']
@description('How long what was deleted by accident can be got back, days. It delays every removal by as much.')
var undeleteDays = 7

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: sku }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: isPrivate ? 'Deny' : 'Allow'
    }
  }
}

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    deleteRetentionPolicy: { enabled: true, days: undeleteDays }
    containerDeleteRetentionPolicy: { enabled: true, days: undeleteDays }
  }
}

resource containers 'Microsoft.Storage/storageAccounts/blobServices/containers@2025-06-01' = [
  for container in [packageContainer, archiveContainer]: {
    parent: blobService
    name: container
    properties: { publicAccess: 'None' }
  }
]

resource queueService 'Microsoft.Storage/storageAccounts/queueServices@2025-06-01' = {
  parent: account
  name: 'default'
}

resource storageQueues 'Microsoft.Storage/storageAccounts/queueServices/queues@2025-06-01' = [
  for queue in queues: {
    parent: queueService
    name: queue
  }
]

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2025-06-01' = {
  parent: account
  name: 'default'
}

resource storageTables 'Microsoft.Storage/storageAccounts/tableServices/tables@2025-06-01' = [
  for table in tables: {
    parent: tableService
    name: table
  }
]

resource lifecycle 'Microsoft.Storage/storageAccounts/managementPolicies@2025-06-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: [
        {
          name: 'archive-ends'
          type: 'Lifecycle'
          enabled: true
          definition: {
            filters: {
              blobTypes: ['blockBlob']
              prefixMatch: ['${archiveContainer}/']
            }
            actions: {
              baseBlob: {
                tierToCool: { daysAfterModificationGreaterThan: 30 }
                delete: { daysAfterModificationGreaterThan: archiveDays }
              }
            }
          }
        }
      ]
    }
  }
  dependsOn: [blobService]
}

// Who read or removed an archived letter is worth knowing. Reads of tables and queues are the office's own, every few
// seconds; of those only removals are logged.
#disable-next-line use-recent-api-versions // the stable version is of 2016 and knows no categories of these services
resource blobLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: blobService
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [
      { category: 'StorageRead', enabled: true }
      { category: 'StorageWrite', enabled: true }
      { category: 'StorageDelete', enabled: true }
    ]
    metrics: [{ category: 'Transaction', enabled: true }]
  }
}

#disable-next-line use-recent-api-versions // as above
resource queueLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: queueService
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [{ category: 'StorageDelete', enabled: true }]
    metrics: [{ category: 'Transaction', enabled: true }]
  }
}

#disable-next-line use-recent-api-versions // as above
resource tableLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: tableService
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [{ category: 'StorageDelete', enabled: true }]
    metrics: [{ category: 'Transaction', enabled: true }]
  }
}

@description('Resource id of the account.')
output accountId string = account.id
@description('Address of the container that holds the deployed package.')
output packageUrl string = '${account.properties.primaryEndpoints.blob}${packageContainer}'
