/** The only part of the large client library that is used; imported when it is asked for. */
export { ServiceBusAdministrationClient } from '@azure/service-bus';
