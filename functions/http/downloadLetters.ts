import { download } from '../../shared/desk/download.ts';
import { route } from '../../shared/http/route.ts';
import { continuation, queryNumber, selectionOf, selectionQuery, sourcePath } from '../../shared/http/schemas.ts';
import { downloadLines } from '../../shared/http/views.ts';
import { sourceNamed } from '../../shared/office.ts';

export const downloadLetters = route({
  name: 'downloadLetters',
  method: 'GET',
  path: 'sources/{source}/download',
  right: 'body',
  summary:
    'Open letters that fit the selection with headers and bodies, a line of JSON each; the last line has the `continuation`. Audited.',
  needsOperator: true,
  params: sourcePath,
  query: selectionQuery.extend({
    top: queryNumber(1, 100).default(50),
    max: queryNumber(1, 1_048_576).default(262_144),
    continuation,
  }),
  handle: async (office, { params, query, operator }) => {
    const { top, max, continuation, ...conditions } = query;
    const source = sourceNamed(office, params.source);
    const selection = selectionOf(conditions);
    const page = await download(office, source, { selection, top, max, continuation }, operator);
    return { status: 200, headers: { 'content-type': 'application/x-ndjson' }, text: downloadLines(source, page) };
  },
});
