// Who is told. A contact that is no mail address gets a group without receivers: the alert is seen in the portal, and
// receivers can be added there.

import { textsType } from 'types.bicep'

@description('Tags of the group.')
param tags textsType
@description('Name of the group.')
param name string
@description('Mail address, or any other text.')
param contact string

@description('Whether mail can be sent there.')
var isAddress = contains(contact, '@') && !contains(contact, ' ') && !contains(contact, '/')

resource group 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: name
  location: 'global'
  tags: tags
  properties: {
    // At most 12 characters; they stand in the subject of the mail.
    groupShortName: 'dead-letters'
    enabled: true
    emailReceivers: isAddress ? [{ name: 'owner', emailAddress: contact, useCommonAlertSchema: true }] : []
  }
}

@description('Resource id of the group.')
output id string = group.id
