import { none, route } from '../../shared/http/route.ts';
import { sourcePath } from '../../shared/http/schemas.ts';
import { iso, letterLine } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';
import { previewExpiry as preview } from '../../shared/retention/expire.ts';

export const previewExpiry = route({
  name: 'previewExpiry',
  method: 'GET',
  path: 'sources/{source}/expiry',
  right: 'read',
  summary: 'Dry run of the retention cleanup: what the next one would remove. Removes nothing.',
  needsOperator: false,
  params: sourcePath,
  query: none,
  handle: async (office, { params }) => {
    const { cutoff, count, more, letters } = await preview(office, sourceNamed(office, params.source), 100);
    return { status: 200, body: { seenUntil: iso(cutoff), count, more, letters: letters.map(letterLine) } };
  },
});
