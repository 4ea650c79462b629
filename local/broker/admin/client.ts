/** Lets the unmodified administration client of `@azure/service-bus` reach a server without TLS. */

import type { ServiceBusAdministrationClient } from '@azure/service-bus';

/**
 * Makes an administration client send its requests over plain HTTP, for a broker on the same machine only. The client is
 * hard-wired to `https`; the scheme is changed after signing, because the signature covers the URL and a policy for
 * bearer tokens refuses to hand one to `http`.
 *
 * @example
 * const client = overHttp(new ServiceBusAdministrationClient(broker.adminConnectionString));
 */
export function overHttp<T extends Pick<ServiceBusAdministrationClient, 'pipeline'>>(client: T): T {
  client.pipeline.addPolicy(
    {
      name: 'over-http',
      sendRequest(request, next) {
        request.url = request.url.replace(/^https:/, 'http:');
        request.allowInsecureConnection = true;
        return next(request);
      },
    },
    { afterPhase: 'Sign' },
  );
  return client;
}
