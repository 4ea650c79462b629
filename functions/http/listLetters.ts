import { listLetters as list } from '../../shared/desk/letters.ts';
import { route } from '../../shared/http/route.ts';
import { continuation, selectionOf, selectionQuery, sourcePath, top } from '../../shared/http/schemas.ts';
import { letterLine } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';
import { iso } from '../../shared/timeText.ts';
import { asOf } from '../../shared/watch/freshness.ts';

export const listLetters = route({
  name: 'listLetters',
  method: 'GET',
  path: 'sources/{source}/letters',
  right: 'read',
  summary: 'Open letters of a source that fit the selection, oldest first.',
  needsOperator: false,
  params: sourcePath,
  query: selectionQuery.extend({ top, continuation }),
  handle: async (office, { params, query }) => {
    const { top, continuation, ...conditions } = query;
    const source = sourceNamed(office, params.source);
    // Read first: what is listed is at least as new.
    const at = await asOf(office, [source]);
    const page = await list(office, source, selectionOf(conditions), top, continuation);
    return {
      status: 200,
      body: {
        asOf: iso(at),
        letters: page.records.map(letterLine),
        unreadable: page.unreadable,
        continuation: page.continuation ?? null,
      },
    };
  },
});
