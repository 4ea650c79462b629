import { reviveSource, type Source } from '../catalog.ts';
import type { SourceKey } from '../letter.ts';
import type { Office } from '../office.ts';

/**
 * Sources with a retention to keep: those of the catalog, and those that left it while letters were still there. Personal
 * data does not stay because somebody deleted a line in a file.
 */
export async function sourcesToClean(office: Office): Promise<Source[]> {
  const sources = [...office.catalog.sources];
  const known = new Set<SourceKey>(sources.map(({ key }) => key));
  const unreadable = (key: string) => office.log(`expire: the row of source ${key} cannot be read and is passed over`);
  for (const row of await office.store.sources.all(unreadable)) {
    if (known.has(row.key)) continue;
    if (!row.retired) await office.store.sources.retire(row.key);
    const source = reviveSource(office.catalog, row.entry);
    if (source === undefined)
      office.log(`expire ${row.name}: left the catalog together with its namespace; not reachable`);
    else sources.push(source);
  }
  return sources;
}
