import { none, route } from '../../shared/http/route.ts';
import { sourcePath } from '../../shared/http/schemas.ts';
import { letterLine } from '../../shared/http/views.ts';
import { shownRecord } from '../../shared/mask.ts';
import { sourceNamed } from '../../shared/office.ts';
import { previewExpiry as preview } from '../../shared/retention/expire.ts';
import { iso } from '../../shared/timeText.ts';

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
    const source = sourceNamed(office, params.source);
    const { cutoff, count, more, letters } = await preview(office, source, 100);
    const lines = letters.map((letter) => letterLine(shownRecord(source, letter)));
    return { status: 200, body: { seenUntil: iso(cutoff), count, more, letters: lines } };
  },
});
