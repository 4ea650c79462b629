/** The administration client for a connection string, over plain HTTP where a development emulator answers. */
import { ServiceBusAdministrationClient } from '@azure/service-bus';
import { overHttp } from '../../../local/broker/index.ts';

/** Port of the administration interface of Microsoft's emulator. */
const EMULATOR_PORT = 5300;

/** Whether a connection string is for an emulator on this machine. */
export function isEmulator(connectionString: string): boolean {
  return /(^|;)UseDevelopmentEmulator=true(;|$)/.test(connectionString);
}

/** The client; nothing is asked yet. `port` is for emulators only, which answer there without TLS. */
export function administrationOf(connectionString: string, port: number = EMULATOR_PORT) {
  if (!isEmulator(connectionString)) return new ServiceBusAdministrationClient(connectionString);
  const there = connectionString.replace(/(Endpoint=sb:\/\/[^:;/]+)(:\d+)?/, `$1:${port}`);
  return overHttp(new ServiceBusAdministrationClient(there, { retryOptions: { maxRetries: 0 } }));
}
