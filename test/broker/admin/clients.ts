/** What the tests of administration share. */
import { ServiceBusAdministrationClient } from '@azure/service-bus';
import { overHttp } from '../../../local/broker/index.ts';

/** The unmodified administration client over plain HTTP, without retries. */
export function adminWith(connectionString: string): ServiceBusAdministrationClient {
  return overHttp(new ServiceBusAdministrationClient(connectionString, { retryOptions: { maxRetries: 0 } }));
}

/** Everything a list gives. */
export async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of list) found.push(item);
  return found;
}
