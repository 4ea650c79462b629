import { z } from 'zod';
import { readBody } from '../../shared/desk/body.ts';
import { route } from '../../shared/http/route.ts';
import { letterPath, queryNumber } from '../../shared/http/schemas.ts';
import { sourceNamed } from '../../shared/office.ts';

export const getBody = route({
  name: 'getBody',
  method: 'GET',
  path: 'sources/{source}/letters/{sequenceNumber}/body',
  right: 'body',
  summary: 'The body of a letter, peeked from the broker now. Audited.',
  needsOperator: true,
  params: letterPath,
  query: z.strictObject({ max: queryNumber(1, 1_048_576).default(262_144) }),
  handle: async (office, { params, query, operator }) => {
    const source = sourceNamed(office, params.source);
    return { status: 200, body: await readBody(office, source, params.sequenceNumber, query.max, operator) };
  },
});
