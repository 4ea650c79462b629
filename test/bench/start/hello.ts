/** The smallest function app: what a start costs where there is nothing to start. */
import { app } from '@azure/functions';

app.http('hello', { methods: ['GET'], authLevel: 'anonymous', handler: async () => ({ body: 'hello' }) });
