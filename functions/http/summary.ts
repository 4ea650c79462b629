import { z } from 'zod';
import type { Source } from '../../shared/catalog.ts';
import { summariseCauses } from '../../shared/desk/causes.ts';
import { SUMMARY_KEYS, summarise } from '../../shared/desk/letters.ts';
import { causeLine } from '../../shared/http/groupViews.ts';
import type { Answer } from '../../shared/http/problem.ts';
import { none, route } from '../../shared/http/route.ts';
import { type Office, sourceNamed } from '../../shared/office.ts';
import { iso } from '../../shared/timeText.ts';
import { asOf, isStale, passText } from '../../shared/watch/freshness.ts';

export const summary = route({
  name: 'summary',
  method: 'GET',
  path: 'summary',
  right: 'read',
  summary:
    'Open letters counted by reason, category, advice, exception type, message type, fingerprint, source or day; by `cause` with a head line. `format=text` for pasting.',
  needsOperator: false,
  params: none,
  query: z.strictObject({
    by: z.enum([...SUMMARY_KEYS, 'cause']),
    source: z.string().min(1).max(200).optional(),
    format: z.enum(['json', 'text']).default('json'),
  }),
  handle: async (office, { query: { by, source, format } }) => {
    const sources = source === undefined ? office.catalog.sources : [sourceNamed(office, source)];
    // Read first: what is counted is at least as new.
    const at = await asOf(office, sources);
    const age = ageLine(source, at, office.clock());
    if (by === 'cause') return byCause(office, sources, format, at, age);
    const lines = await summarise(office, sources, by);
    const total = lines.reduce((sum, { count }) => sum + count, 0);
    if (format === 'text') {
      return { status: 200, text: [`${total} open letters`, ...lines.map(textLine), ...age, ''].join('\n') };
    }
    const counts = lines.map(({ key, count, firstSeen, lastSeen }) => ({
      key,
      count,
      firstSeen: iso(firstSeen),
      lastSeen: iso(lastSeen),
    }));
    return { status: 200, body: { by, total, asOf: iso(at), counts } };
  },
});

/** Whoever pastes it into an incident must not take old counts for new ones. */
function ageLine(source: string | undefined, at: number | undefined, now: number): string[] {
  if (!isStale(at, now)) return [];
  if (source === undefined && at === undefined) return ['Not every source was looked at yet.'];
  const text = passText(source ?? 'all sources', at, now);
  return [`${text.charAt(0).toUpperCase()}${text.slice(1)}.`];
}

function textLine({ key, count }: { key: string | null; count: number }): string {
  // A sender's text: it must not look like a line of ours.
  return `  ${count} ${key?.replace(/\p{C}+/gu, ' ') ?? '(none)'}`;
}

async function byCause(
  office: Office,
  sources: readonly Source[],
  format: 'json' | 'text',
  at: number | undefined,
  age: readonly string[],
): Promise<Answer> {
  const { causes, headLine, unreadable } = await summariseCauses(office, sources);
  if (format === 'text') return { status: 200, text: [headLine, ...age, ''].join('\n') };
  const total = causes.reduce((sum, { count }) => sum + count, 0);
  const body = { by: 'cause', total, asOf: iso(at), headLine, counts: causes.map(causeLine), unreadable };
  return { status: 200, body };
}
