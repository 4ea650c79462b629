// The office in one resource group, driven by catalog.json. README.md beside this file says how to deploy it.

import { queuesOf, subscriptionsOf, topicsOf } from 'modules/entities.bicep'
import { addressesType, placesType, textsType, zonesType } from 'modules/types.bicep'

targetScope = 'resourceGroup'

@description('Name of this deployment; it is in the tags, and in the names of resources as a hash.')
@minLength(1)
@maxLength(64)
param environmentName string = 'dead-letter-office'

@description('Where. Flex Consumption must be offered there.')
@metadata({ azd: { type: 'location' } })
param location string = resourceGroup().location

@description('Tags of every resource.')
param tags textsType = {}

@description('The namespaces of the catalog that are there already, by their label: {"main": {"name": "sb-orders", "resourceGroup": "rg-messaging"}}.')
param existingNamespaces placesType = {}

@description('Whether to make the namespaces of the catalog and their entities, for trying the office out. If not, every label of the catalog must be in existingNamespaces.')
param createServiceBus bool = empty(existingNamespaces)

@description('Tier of the namespaces that are made.')
param serviceBusSku 'Standard' | 'Premium' = 'Standard'

@description('Whether the office may send to the topics of the subscriptions of the catalog. It does so only for plans that accept the fan-out by name.')
param sendToTopics bool = true

@description('Version of Node.')
param nodeVersion '22' | '24' = '22'

@description('Memory of an instance, MB.')
param instanceMemoryMB 512 | 2048 | 4096 = 2048

@description('Most instances there may ever be; 0: one for each function of its own scale group, and four to spare.')
@minValue(0)
@maxValue(1000)
param maximumInstanceCount int = 0

@description('Whether instances are spread over zones.')
param zoneRedundant bool = false

@description('Redundancy of the storage account. It holds the audit.')
param storageSku 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GZRS' | 'Standard_GRS' = 'Standard_ZRS'

@description('How long archived letters are kept, days.')
@minValue(31)
param archiveDays int = 400

@description('How long signals and logs are kept, days.')
@minValue(30)
@maxValue(730)
param logDays int = 90

@description('Mail address of those who run the office; empty: the owner of the first source.')
param officeContact string = ''

@description('Action groups that every alert tells as well, resource ids; five at most with the owner\'s own.')
@maxLength(4)
param actionGroupIds string[] = []

@description('Dead letters of one entity, held ones included, from which on the platform\'s own count raises an alert.')
@minValue(1)
param backstopThreshold int = 10000

@description('Client id of the app registration with the roles in app-roles.json; empty: function keys only.')
param authClientId string = ''

@description('Network of the office. none: everything is reached over public addresses, and lets in by identity alone. new: a network is made. existing: subnets that are there. With a network the storage account takes private endpoints only.')
param network 'none' | 'new' | 'existing' = 'none'

@description('Addresses of the network that is made.')
param networkAddresses addressesType = {
  network: '10.90.0.0/24'
  app: '10.90.0.0/25'
  endpoints: '10.90.0.128/25'
}

@description('Resource id of the existing subnet that the app sends from. It must be delegated to Microsoft.App/environments, and be in the region of the app.')
param appSubnetId string = ''

@description('Resource id of the existing subnet for private endpoints.')
param endpointSubnetId string = ''

@description('Resource ids of existing private zones for an existing network: blob, queue, table, namespace. Where one is absent, somebody else makes the record, such as a policy.')
param privateZoneIds zonesType = {}

@description('Addresses that may call the office and deploy to it, in CIDR, such as 203.0.113.0/24; none: everybody, who then needs a key or a token.')
param allowedAddresses string[] = []

@description('Settings of the office, by name.')
param officeSettings textsType = {
  DLO_LEASE_SECONDS: '60'
  DLO_RETRY_SECONDS: '5'
  DLO_SEND_TIMEOUT_SECONDS: '15'
  DLO_COLLECT_WAIT_SECONDS: '3'
}

@description('The catalog that the deployed package holds.')
#disable-next-line use-user-defined-types // its schema is shared/catalog.ts; a field that is false or a text has no type here
var catalog object = loadJsonContent('../catalog.json')
@description('Makes names unique.')
var token = uniqueString(resourceGroup().id, environmentName, location)
@description('Tags of every resource, with those that azd looks for.')
var allTags = union(tags, { 'azd-env-name': environmentName })
@description('The service in azure.yaml.')
var serviceName = 'office'
@description('Name of the workspace.')
var workspaceName = 'log-dlo-${token}'
@description('Name of the Application Insights resource.')
var insightsName = 'appi-dlo-${token}'
@description('Name of the storage account.')
var storageName = 'stdlo${token}'
@description('Where entities of Service Bus have their addresses, by cloud.')
var busDomains = {
  AzureCloud: 'servicebus.windows.net'
  AzureUSGovernment: 'servicebus.usgovcloudapi.net'
  AzureChinaCloud: 'servicebus.chinacloudapi.cn'
}
@description('That of this cloud.')
var busDomain = busDomains[environment().name]

@description('The namespaces of the catalog: label, connection, where they are, and what the office does there.')
var namespaces = map(items(catalog.namespaces), entry => {
  label: entry.key
  connection: entry.value.connection
  name: createServiceBus
    ? 'sb-${take(entry.key, 20)}-${uniqueString(resourceGroup().id, environmentName, entry.key)}'
    : existingNamespaces[entry.key].name
  resourceGroup: createServiceBus ? resourceGroup().name : existingNamespaces[entry.key].resourceGroup
  subscriptionId: createServiceBus
    ? subscription().subscriptionId
    : (existingNamespaces[entry.key].?subscriptionId ?? subscription().subscriptionId)
  hasEndpoint: createServiceBus || network == 'none' ? false : (existingNamespaces[entry.key].?privateEndpoint ?? false)
  // A source need not name its namespace where there is only one.
  sources: filter(catalog.sources, source => (source.?namespace ?? entry.key) == entry.key)
})

@description('Queues that are received from: those of sources, and those that letters go back to, to see whether anybody consumes them. In lower case, as case makes no difference to Service Bus.')
var receiveQueues = [
  for namespace in namespaces: union(
    [],
    map(
      flatten(map(
        namespace.sources,
        source =>
          filter([source.?queue, source.?replay.?forwardQueue, source.?replay.?replayQueue], name => name != null)
      )),
      name => toLower(name)
    )
  )
]

@description('Queues that are sent to: those, and sandboxes.')
var sendQueues = [
  for (namespace, i) in namespaces: union(
    receiveQueues[i],
    map(
      filter(map(namespace.sources, source => source.?replay.?sandboxQueue), name => name != null),
      name => toLower(name)
    )
  )
]

@description('Subscriptions that are received from.')
var receiveSubscriptions = [
  for namespace in namespaces: union(
    [],
    map(filter(namespace.sources, source => source.?topic != null), source => {
      topic: toLower(source.topic)
      name: toLower(source.subscription)
    })
  )
]

@description('Topics of those subscriptions.')
var topics = [for (namespace, i) in namespaces: union([], map(receiveSubscriptions[i], entry => entry.topic))]

@description('Sources with a trigger: held, wanted, and not partitioned, as functions/classify.ts has it.')
var triggered = filter(
  catalog.sources,
  source => source.mode == 'defer' && (source.?trigger ?? true) && !(source.?entity.?partitioned ?? false)
)

@description('Scale groups besides those of the triggers: HTTP, the timers collect, reconcile, expire and watch, the queue.')
var ownGroups = 6

@description('How the app gets to the namespaces.')
var connections = map(namespaces, namespace => {
  setting: namespace.connection
  host: '${namespace.name}.${busDomain}'
  resourceId: resourceId(
    namespace.subscriptionId,
    namespace.resourceGroup,
    'Microsoft.ServiceBus/namespaces',
    namespace.name
  )
})

@description('Whether there is a network.')
var hasNetwork = network != 'none'
@description('Name of the network that is made.')
var networkName = 'vnet-dlo-${token}'
@description('Subnet of the app; empty: none.')
var appSubnet = network == 'new'
  ? resourceId('Microsoft.Network/virtualNetworks/subnets', networkName, 'app')
  : network == 'existing' ? appSubnetId : ''
@description('Subnet of private endpoints.')
var endpointSubnet = network == 'new'
  ? resourceId('Microsoft.Network/virtualNetworks/subnets', networkName, 'endpoints')
  : endpointSubnetId
@description('Services of the storage account that have private endpoints.')
var storageServices = ['blob', 'queue', 'table']
@description('Name of the private zone of namespaces.')
var busZone = 'privatelink.${busDomain}'
@description('Names of the private zones, by service.')
var zoneNames = union(
  reduce(
    storageServices,
    {},
    (all, service) => union(all, { '${service}': 'privatelink.${service}.${environment().suffixes.storage}' })
  ),
  empty(filter(namespaces, namespace => namespace.hasEndpoint)) ? {} : { namespace: busZone }
)

@description('Owners of sources, each once.')
var owners = union([], map(catalog.sources, source => toLower(source.owner.contact)))

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-dlo-${token}'
  location: location
  tags: allTags
}

module monitoring 'modules/monitoring.bicep' = {
  params: {
    location: location
    tags: allTags
    workspaceName: workspaceName
    insightsName: insightsName
    logDays: logDays
  }
}

module storage 'modules/storage.bicep' = {
  params: {
    location: location
    tags: allTags
    name: storageName
    sku: storageSku
    packageContainer: 'app-package'
    archiveDays: archiveDays
    isPrivate: hasNetwork
    workspaceId: monitoring.outputs.workspaceId
  }
}

module ownRoles 'modules/ownRoles.bicep' = {
  params: {
    identityId: identity.id
    principalId: identity.properties.principalId
    storageName: storageName
    insightsName: insightsName
  }
  dependsOn: [monitoring, storage]
}

module ownNetwork 'modules/network.bicep' = if (network == 'new') {
  params: {
    location: location
    tags: allTags
    name: networkName
    addresses: networkAddresses
    zoneNames: zoneNames
  }
}

module storageEndpoints 'modules/privateEndpoint.bicep' = [
  for service in storageServices: if (hasNetwork) {
    params: {
      location: location
      tags: allTags
      name: 'pe-dlo-${service}-${token}'
      subnetId: endpointSubnet
      targetId: storage.outputs.accountId
      service: service
      zoneId: network == 'new'
        ? resourceId('Microsoft.Network/privateDnsZones', 'privatelink.${service}.${environment().suffixes.storage}')
        : (privateZoneIds[?service] ?? '')
    }
    dependsOn: [ownNetwork]
  }
]

module namespaceEndpoints 'modules/privateEndpoint.bicep' = [
  for namespace in namespaces: if (namespace.hasEndpoint) {
    params: {
      location: location
      tags: allTags
      name: 'pe-dlo-${namespace.label}-${token}'
      subnetId: endpointSubnet
      targetId: resourceId(
        namespace.subscriptionId,
        namespace.resourceGroup,
        'Microsoft.ServiceBus/namespaces',
        namespace.name
      )
      service: 'namespace'
      zoneId: network == 'new'
        ? resourceId('Microsoft.Network/privateDnsZones', busZone)
        : (privateZoneIds.?namespace ?? '')
    }
    dependsOn: [ownNetwork]
  }
]

module serviceBus 'modules/serviceBus.bicep' = [
  for namespace in namespaces: if (createServiceBus) {
    params: {
      location: location
      tags: allTags
      name: namespace.name
      sku: serviceBusSku
      queues: queuesOf(namespace.sources)
      topics: topicsOf(namespace.sources)
      subscriptions: subscriptionsOf(namespace.sources)
      workspaceId: monitoring.outputs.workspaceId
    }
  }
]

module serviceBusRoles 'modules/serviceBusRoles.bicep' = [
  for (namespace, i) in namespaces: {
    scope: resourceGroup(namespace.subscriptionId, namespace.resourceGroup)
    params: {
      namespaceName: namespace.name
      identityId: identity.id
      principalId: identity.properties.principalId
      rights: {
        receiveQueues: receiveQueues[i]
        receiveSubscriptions: receiveSubscriptions[i]
        sendQueues: sendQueues[i]
        sendTopics: sendToTopics ? topics[i] : []
      }
    }
    dependsOn: [serviceBus]
  }
]

module functionApp 'modules/functionApp.bicep' = {
  params: {
    location: location
    tags: allTags
    name: 'func-dlo-${token}'
    planName: 'plan-dlo-${token}'
    serviceName: serviceName
    nodeVersion: nodeVersion
    instanceMemoryMB: instanceMemoryMB
    maximumInstanceCount: maximumInstanceCount > 0 ? maximumInstanceCount : min(1000, ownGroups + length(triggered) + 4)
    zoneRedundant: zoneRedundant
    alwaysReady: map(filter(triggered, source => source.?alwaysReady ?? false), source => {
      name: 'function:classify-${source.name}'
      instanceCount: 1
    })
    identityId: identity.id
    clientId: identity.properties.clientId
    insightsName: insightsName
    packageUrl: storage.outputs.packageUrl
    storageName: storageName
    connections: connections
    settings: union(officeSettings, { DLO_RESOURCE_MANAGER_URL: environment().resourceManager })
    authClientId: authClientId
    subnetId: appSubnet
    allowedAddresses: allowedAddresses
    workspaceId: monitoring.outputs.workspaceId
  }
  // Without its way to the storage the app could not even be deployed to.
  dependsOn: [ownRoles, serviceBusRoles, ownNetwork, storageEndpoints, namespaceEndpoints]
}

module officeAlerts 'modules/officeAlerts.bicep' = {
  params: {
    location: location
    tags: allTags
    contact: empty(officeContact) ? first(owners) ?? '' : officeContact
    sources: map(catalog.sources, source => source.name)
    workspaceId: monitoring.outputs.workspaceId
    actionGroupIds: actionGroupIds
  }
}

module ownerAlerts 'modules/ownerAlerts.bicep' = [
  for owner in owners: {
    params: {
      location: location
      tags: allTags
      contact: owner
      sources: map(filter(catalog.sources, source => toLower(source.owner.contact) == owner), source => {
        name: source.name
        growth: source.?alert.?growthIn15Minutes ?? 50
        severity: source.?alert.?severity ?? 2
        hasRetention: source.?retainFor != null
        runbook: source.?runbook ?? ''
      })
      workspaceId: monitoring.outputs.workspaceId
      actionGroupIds: actionGroupIds
    }
  }
]

// An alert on a metric must be in the subscription of what it watches.
module backstop 'modules/backstop.bicep' = [
  for namespace in namespaces: if (namespace.subscriptionId == subscription().subscriptionId && !empty(namespace.sources)) {
    params: {
      tags: allTags
      label: namespace.label
      namespaceId: resourceId(
        namespace.subscriptionId,
        namespace.resourceGroup,
        'Microsoft.ServiceBus/namespaces',
        namespace.name
      )
      entities: union([], map(namespace.sources, source => source.?queue ?? source.?topic))
      threshold: backstopThreshold
      actionGroupId: officeAlerts.outputs.actionGroupId
    }
    dependsOn: [serviceBus]
  }
]

module workbook 'modules/workbook.bicep' = {
  params: {
    location: location
    tags: allTags
    title: 'Dead letters of ${catalog.office}'
    rows: string(map(catalog.sources, source => {
      source: source.name
      team: source.owner.team
      runbook: source.?runbook ?? ''
      wakesAt: source.?alert.?growthIn15Minutes ?? 50
    }))
    workspaceId: monitoring.outputs.workspaceId
  }
}

@description('Where it was deployed.')
output AZURE_LOCATION string = location
@description('Name of the function app.')
output AZURE_FUNCTION_NAME string = functionApp.outputs.name
@description('Where the office answers.')
output SERVICE_OFFICE_URI string = functionApp.outputs.uri
@description('Name of the identity of the office.')
output IDENTITY_NAME string = identity.name
@description('Names of the namespaces, by the order of their labels.')
output SERVICE_BUS_NAMESPACES string[] = map(namespaces, namespace => namespace.name)
