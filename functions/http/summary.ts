import { z } from 'zod';
import { SUMMARY_KEYS, summarise } from '../../shared/desk/letters.ts';
import { none, route } from '../../shared/http/route.ts';
import { iso } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';

export const summary = route({
  name: 'summary',
  method: 'GET',
  path: 'summary',
  right: 'read',
  summary: 'Open letters counted by reason, category, advice, exception type, message type, source or day.',
  needsOperator: false,
  params: none,
  query: z.strictObject({ by: z.enum(SUMMARY_KEYS), source: z.string().min(1).max(200).optional() }),
  handle: async (office, { query }) => {
    const sources = query.source === undefined ? office.catalog.sources : [sourceNamed(office, query.source)];
    const lines = await summarise(office, sources, query.by);
    const counts = lines.map(({ key, count, firstSeen, lastSeen }) => ({
      key,
      count,
      firstSeen: iso(firstSeen),
      lastSeen: iso(lastSeen),
    }));
    const total = lines.reduce((sum, { count }) => sum + count, 0);
    return { status: 200, body: { by: query.by, total, asOf: iso(office.clock()), counts } };
  },
});
