// The function app on a Flex Consumption plan. It proves who it is by its identity everywhere; no setting holds a secret.

import { alwaysReadyType, connectionType, textsType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Name of the app. The first 32 characters name the host, so it has no more.')
@minLength(2)
@maxLength(32)
param name string
@description('Name of the plan.')
param planName string
@description('Name of the service in azure.yaml.')
param serviceName string
@description('Version of Node.')
param nodeVersion string
@description('Memory of an instance, MB.')
param instanceMemoryMB int
@description('Most instances there may ever be.')
param maximumInstanceCount int
@description('Whether instances are spread over zones.')
param zoneRedundant bool
@description('Scale groups that keep instances.')
param alwaysReady alwaysReadyType[]
@description('Resource id of the identity of the office.')
param identityId string
@description('Client id of that identity.')
param clientId string
@description('Name of the Application Insights resource.')
param insightsName string
@description('Address of the container that holds the deployed package.')
param packageUrl string
@description('Name of the storage account.')
param storageName string
@description('The namespaces.')
param connections connectionType[]
@description('Settings beside those that this module makes.')
param settings textsType
@description('Client id of the app registration that callers get tokens for; empty: App Service authentication is off.')
param authClientId string
@description('Resource id of the subnet that the app sends from; empty: none.')
param subnetId string
@description('Addresses that may call the app and deploy to it, in CIDR; none: everybody, who then needs a key or a token.')
param allowedAddresses string[]
@description('Resource id of the workspace for the logs.')
param workspaceId string

@description('Whether App Service authentication is on.')
var hasAuth = !empty(authClientId)

@description('Settings that lead to the namespaces. The host reads the sections, but for the resource ids: the office does.')
var busSettings = reduce(
  connections,
  {},
  (all, connection) =>
    union(all, {
      '${connection.setting}__fullyQualifiedNamespace': connection.host
      '${connection.setting}__credential': 'managedidentity'
      '${connection.setting}__clientId': clientId
      '${connection.setting}__namespaceResourceId': connection.resourceId
    })
)

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: {
    reserved: true
    zoneRedundant: zoneRedundant
  }
}

resource site 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': serviceName })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: packageUrl
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      runtime: { name: 'node', version: nodeVersion }
      scaleAndConcurrency: {
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstanceCount
        alwaysReady: alwaysReady
      }
    }
    siteConfig: {
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
      ftpsState: 'Disabled'
      http20Enabled: true
      // Where none are named nothing is said, so that what other hands have set stays.
      ipSecurityRestrictionsDefaultAction: empty(allowedAddresses) ? null : 'Deny'
      ipSecurityRestrictions: empty(allowedAddresses)
        ? null
        : map(allowedAddresses, (address, i) => {
            name: 'allowed-${i}'
            action: 'Allow'
            priority: 100 + i
            ipAddress: address
          })
      scmIpSecurityRestrictionsUseMain: empty(allowedAddresses) ? null : true
    }
  }
}

// All settings in one resource: what is not named here is removed when it is deployed.
resource appSettings 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: site
  name: 'appsettings'
  properties: union(settings, busSettings, {
    // By address, not by the name of the account: the host would look for that in the public cloud.
    AzureWebJobsStorage__blobServiceUri: 'https://${storageName}.blob.${environment().suffixes.storage}'
    AzureWebJobsStorage__queueServiceUri: 'https://${storageName}.queue.${environment().suffixes.storage}'
    AzureWebJobsStorage__tableServiceUri: 'https://${storageName}.table.${environment().suffixes.storage}'
    AzureWebJobsStorage__credential: 'managedidentity'
    AzureWebJobsStorage__clientId: clientId
    APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${clientId};Authorization=AAD'
    DLO_AUTH: hasAuth ? 'app-service' : 'keys'
  })
}

// Nobody publishes by user name and password.
resource publishing 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: site
  name: 'scm'
  properties: { allow: false }
}

resource ftpPublishing 'Microsoft.Web/sites/basicPublishingCredentialsPolicies@2025-03-01' = {
  parent: site
  name: 'ftp'
  properties: { allow: false }
}

resource auth 'Microsoft.Web/sites/config@2025-03-01' = if (hasAuth) {
  parent: site
  name: 'authsettingsV2'
  properties: {
    platform: { enabled: true, runtimeVersion: '~1' }
    globalValidation: {
      requireAuthentication: true
      unauthenticatedClientAction: 'Return401'
      // Probes and tools; both tell no names.
      excludedPaths: ['/api/health', '/api/openapi.json']
    }
    httpSettings: { requireHttps: true }
    identityProviders: {
      azureActiveDirectory: {
        enabled: true
        registration: {
          clientId: authClientId
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'
        }
        validation: { allowedAudiences: ['api://${authClientId}', authClientId] }
      }
    }
    // Callers bring tokens: nobody signs in here, so nothing is kept.
    login: { tokenStore: { enabled: false } }
  }
}

#disable-next-line use-recent-api-versions // the stable version is of 2016 and knows no such categories
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: site
  name: 'to-workspace'
  properties: {
    workspaceId: workspaceId
    logs: [{ category: 'FunctionAppLogs', enabled: true }]
    metrics: [{ category: 'AllMetrics', enabled: true }]
  }
}

@description('Name of the app.')
output name string = site.name
@description('Where the office answers.')
output uri string = 'https://${site.properties.defaultHostName}/api'
