import { z } from 'zod';
import { OfficeError } from '../../shared/errors.ts';
import { route } from '../../shared/http/route.ts';
import { continuation, sourcePath } from '../../shared/http/schemas.ts';
import { parseSequenceNumber } from '../../shared/letter.ts';
import { sourceNamed } from '../../shared/office.ts';
import { reclassify as judgeAnew } from '../../shared/watch/reclassify.ts';

/** How long one call works, ms, unless it is asked to wait longer. */
const SLICE = 20_000;

export const reclassify = route({
  name: 'reclassify',
  method: 'POST',
  path: 'sources/{source}/reclassify',
  right: 'replay',
  summary:
    'Judges the recorded letters anew by the rules and schemas of the catalog. Works in slices: repeat with `continuation`.',
  needsOperator: true,
  params: sourcePath,
  query: z.strictObject({ continuation }),
  body: z.strictObject({ reread: z.boolean().default(false) }),
  handle: async (office, { params, query, body, operator, waitMs }) => {
    const source = sourceNamed(office, params.source);
    const from = query.continuation === undefined ? undefined : parseSequenceNumber(query.continuation);
    if (query.continuation !== undefined && from === undefined) {
      throw new OfficeError('DLO_BAD_REQUEST', 'query.continuation: is not one that this call has returned');
    }
    const deadline = office.clock() + (waitMs || SLICE);
    const { continuation: next, ...result } = await judgeAnew(
      office,
      source,
      { from, reread: body.reread, deadline },
      operator,
    );
    return { status: 200, body: { ...result, continuation: next ?? null } };
  },
});
