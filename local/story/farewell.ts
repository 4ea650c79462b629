import type { LocalOffice } from '../office.ts';

/** What is told when the office stays open: its address, its keys, and four calls that work as they stand. */
export function farewell({ url, rights, masterKey }: LocalOffice): string[] {
  const keys = {
    read: rights.read,
    body: rights.body,
    replay: rights.replay,
    discard: rights.discard,
    master: masterKey,
  };
  const call = (key: string, rest: string[]) => [
    `curl -H 'x-functions-key: ${key}' \\`,
    ...rest.map((line, i) => `  ${line}${i < rest.length - 1 ? ' \\' : ''}`),
    '',
  ];
  const plan = JSON.stringify({ selection: { category: ['consumer-fault'] }, choices: { includeFixFirst: true } });
  return [
    '',
    `The office stays open: ${url}. Ctrl-C closes it and leaves nothing behind.`,
    '',
    'Keys by right, of this run only:',
    ...Object.entries(keys).map(([right, key]) => `  ${right.padEnd(8)} ${key}`),
    '',
    'Four calls to try: the sources, the letters of one, a dry run for what crashed its consumer,',
    'and who did what.',
    '',
    ...call(rights.read, [`'${url}/sources'`]),
    ...call(rights.read, [`'${url}/sources/billing-order-placed/letters'`]),
    ...call(rights.replay, [`-H 'x-operator: me' -d '${plan}'`, `'${url}/sources/billing-order-placed/plans'`]),
    ...call(rights.read, [`'${url}/audit?top=5'`]),
  ];
}
