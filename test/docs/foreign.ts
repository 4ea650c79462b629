/** Names that the pages put in code style and that are not the project's: whose they are. */
export const FOREIGN: ReadonlyMap<string, string> = new Map([
  ['node_modules/.bin/node', 'installed by npm'],
  ['dist/', 'made by the build'],
  ['dist/package.json', 'made by the build'],
  ['EBADENGINE', 'a warning of npm'],
  ['mcr.microsoft.com/azure-messaging/servicebus-emulator', 'an image of Microsoft'],
  ['/ServiceBus_Emulator/ConfigFiles/Config.json', 'a path in that image'],
  ['StartMessageMoveTask', 'a call of AWS'],
  ['@azure/functions-extensions-servicebus', 'a package that is not used, and why'],
  ['az', 'the Azure CLI'],
  ['kafka_dlt-original-offset', 'a header of Spring Kafka, in an example of what could be added'],
]);
