/**
 * Azure Service Bus on a laptop: queues, topics and dead-letter queues over AMQP 1.0, for the unmodified
 * `@azure/service-bus` and anything else that connects by connection string.
 *
 * @example
 * const broker = await startBroker({ config: readConfig(await readFile('Config.json', 'utf8')) });
 * const client = new ServiceBusClient(broker.connectionString);
 */
export { overHttp } from './admin/client.ts';
export { Chaos, type ChaosEntry, type ChaosOptions, type ChaosRates } from './chaos.ts';
export { type Clock, MovableClock } from './clock.ts';
export { type EmulatorConfig, parseConfig, readConfig } from './config.ts';
export type { FaultHandle, FaultRule, Faults } from './faults.ts';
export { parseKeys } from './keys.ts';
export type { Right, SasKey } from './sas.ts';
export { type BrokerOptions, type RunningBroker, type StoredView, startBroker } from './server.ts';
export type { EntityStatus } from './status.ts';
