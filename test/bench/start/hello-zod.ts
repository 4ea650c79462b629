/** The smallest function app that checks something with zod: below this no app comes that reads a catalog with it. */
import { app } from '@azure/functions';
import { z } from 'zod';

const name = z.string().parse('hello');
app.http(name, { methods: ['GET'], authLevel: 'anonymous', handler: async () => ({ body: name }) });
