// A network of the office's own: a subnet that the app sends from, one for private endpoints, and the names by which they are found.

import { addressesType, textsType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Name of the network.')
param name string
@description('Its addresses.')
param addresses addressesType
@description('Private zones of names, by what is found in them.')
param zoneNames textsType

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: [addresses.network] }
    subnets: [
      {
        name: 'app'
        properties: {
          addressPrefix: addresses.app
          // What Flex Consumption asks for.
          delegations: [{ name: 'app', properties: { serviceName: 'Microsoft.App/environments' } }]
        }
      }
      {
        name: 'endpoints'
        properties: { addressPrefix: addresses.endpoints }
      }
    ]
  }
}

resource zones 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for zone in items(zoneNames): {
    name: zone.value
    location: 'global'
    tags: tags
  }
]

resource links 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (zone, i) in items(zoneNames): {
    parent: zones[i]
    name: name
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      virtualNetwork: { id: network.id }
    }
  }
]
