import { expect, test } from 'vitest';
import { filesOf, read, rowsUnder } from './pages.ts';

test('the page tells of every table, queue and container in which something is kept, and of no other', () => {
  const source = filesOf('shared/store/*.ts').map(read).join('\n');
  const tables = [...source.matchAll(/(?:new Table\(connection, |_TABLE = )'(\w+)'/g)].map(
    (match) => `table ${match[1]}`,
  );
  const [, queue] = /RUNS_QUEUE = '(\w+)'/.exec(source) ?? [];
  const [, container] = /ARCHIVE_CONTAINER = '([\w-]+)'/.exec(source) ?? [];
  const told = rowsUnder('docs/security.md', 'What is kept, where, how long')
    .map(([, where = '']) => where.replaceAll('`', ''))
    .filter((where) => /^(?:table|queue|container) /.test(where));
  expect([...new Set(told)].sort()).toEqual(
    [...new Set([...tables, `queue ${queue}`, `container ${container}`])].sort(),
  );
});
