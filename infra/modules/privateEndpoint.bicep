// A private address in a subnet for one service of a resource, and the record by which it is found.

import { textsType } from 'types.bicep'

@description('Where.')
param location string
@description('Tags of every resource.')
param tags textsType
@description('Name of the endpoint.')
param name string
@description('Resource id of the subnet.')
param subnetId string
@description('Resource id of what it leads to.')
param targetId string
@description('The service of it: blob, queue, table or namespace.')
param service string
@description('Resource id of the private zone for its name; empty: somebody else makes the record, such as a policy.')
param zoneId string

resource endpoint 'Microsoft.Network/privateEndpoints@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: { id: subnetId }
    privateLinkServiceConnections: [
      {
        name: service
        properties: {
          privateLinkServiceId: targetId
          groupIds: [service]
        }
      }
    ]
  }
}

resource record 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = if (!empty(zoneId)) {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [{ name: service, properties: { privateDnsZoneId: zoneId } }]
  }
}
