/**
 * The only function of an app that cannot work: it says why. (An app that throws at load shows no functions at all.) The package has it
 * in a file of its own, for where the others cannot be loaded: it needs nothing that they need, and runs on every Node.js that Azure has.
 */
import { app } from '@azure/functions';
import { errorText, OfficeError } from '../shared/errors.ts';
import { unhealthy } from '../shared/http/unhealthy.ts';

/** Registers `/health` alone, which tells `error`. */
export function registerUnhealthy(error: unknown, log: (line: string) => void): void {
  log(`the office cannot open: ${errorText(error)}`);
  app.http('health', {
    methods: ['GET'],
    route: 'health',
    authLevel: 'anonymous',
    handler: async (_request, context) => {
      const { status, body } = unhealthy(error, context.invocationId, log);
      return { status, jsonBody: body };
    },
  });
}

/** The same for a Node.js of version `found`, where the package needs the major version `oldest`. */
export function registerTooOld(found: string, oldest: number, log: (line: string) => void): void {
  const message = `this is Node.js ${found}; the office needs ${oldest} or newer, such as 22 or 24`;
  registerUnhealthy(new OfficeError('DLO_NODE_TOO_OLD', message), log);
}
