// Shapes that the modules share. The catalog itself has none here: its schema is shared/catalog.ts.

@export()
@description('A namespace that is there already.')
type placeType = {
  @description('Its name, without domain.')
  name: string
  @description('Its resource group.')
  resourceGroup: string
  @description('Its subscription; absent: that of the deployment.')
  subscriptionId: string?
  @description('Whether the office makes a private endpoint to it in its own network. Only Premium has them.')
  privateEndpoint: bool?
}

@export()
@description('Namespaces that are there already, by their label in the catalog.')
type placesType = {
  @description('One of them.')
  *: placeType
}

@export()
@description('Texts by name: tags, or app settings.')
type textsType = {
  @description('One of them.')
  *: string
}

@export()
@description('Addresses of a network that is made, in CIDR.')
type addressesType = {
  @description('All of it.')
  network: string
  @description('The subnet of the app, /27 at least.')
  app: string
  @description('The subnet of the private endpoints.')
  endpoints: string
}

@export()
@description('Private zones of names that are there already: resource ids.')
type zonesType = {
  @description('That of blobs.')
  blob: string?
  @description('That of storage queues.')
  queue: string?
  @description('That of tables.')
  table: string?
  @description('That of Service Bus namespaces.')
  namespace: string?
}

@export()
@description('A queue to be made.')
type queueType = {
  @description('Its name, with slashes.')
  name: string
  @description('How long a message is locked, ISO 8601; absent: as Service Bus has it.')
  lockDuration: string?
  @description('Deliveries before a message is dead-lettered; absent: as Service Bus has it.')
  maxDeliveryCount: int?
  @description('Window of duplicate detection, ISO 8601; absent: none.')
  duplicateWindow: string?
  @description('Whether it needs sessions.')
  requiresSession: bool
  @description('Whether what expires is dead-lettered.')
  deadLettersOnExpiry: bool
  @description('Whether it is partitioned.')
  partitioned: bool
}

@export()
@description('A topic to be made.')
type topicType = {
  @description('Its name, with slashes.')
  name: string
  @description('Window of duplicate detection, ISO 8601; absent: none.')
  duplicateWindow: string?
  @description('Whether it is partitioned.')
  partitioned: bool
}

@export()
@description('A subscription to be made.')
type subscriptionType = {
  @description('Its topic.')
  topic: string
  @description('Its name.')
  name: string
  @description('Queue that it forwards to; absent: none.')
  forwardTo: string?
  @description('How long a message is locked, ISO 8601; absent: as Service Bus has it.')
  lockDuration: string?
  @description('Deliveries before a message is dead-lettered; absent: as Service Bus has it.')
  maxDeliveryCount: int?
  @description('Whether it needs sessions.')
  requiresSession: bool
  @description('Whether what expires is dead-lettered.')
  deadLettersOnExpiry: bool
}

@export()
@description('A subscription of a topic.')
type subscriptionRefType = {
  @description('The topic.')
  topic: string
  @description('The subscription.')
  name: string
}

@export()
@description('What the office may do in a namespace: each entity once.')
type rightsType = {
  @description('Queues it receives from and peeks.')
  receiveQueues: string[]
  @description('Subscriptions it receives from and peeks.')
  receiveSubscriptions: subscriptionRefType[]
  @description('Queues it sends to.')
  sendQueues: string[]
  @description('Topics it sends to.')
  sendTopics: string[]
}

@export()
@description('How the app gets to a namespace.')
type connectionType = {
  @description('Name of the section of settings.')
  setting: string
  @description('Host of the namespace.')
  host: string
  @description('Resource id of the namespace.')
  resourceId: string
}

@export()
@description('A scale group that keeps instances.')
type alwaysReadyType = {
  @description('function:<name of the function>.')
  name: string
  @description('How many instances.')
  instanceCount: int
}

@export()
@description('A source, as its alerts need it.')
type watchedType = {
  @description('Its name in the catalog.')
  name: string
  @description('Letters more than 15 minutes ago that wake the owner.')
  growth: int
  @description('0 (critical) to 4 (verbose).')
  severity: int
  @description('Whether letters have a time by which they are removed.')
  hasRetention: bool
  @description('What to do; empty: nobody has written it down.')
  runbook: string
}
