import type { LocalOffice } from '../office.ts';

/** What is told when the office stays open: its address, its keys, and four calls that work as they stand in a shell. */
export function farewell({ url, rights, masterKey, broker }: LocalOffice): string[] {
  const { read, body, replay, discard } = rights;
  const keys = { read, body, replay, discard, master: masterKey };
  const plan = JSON.stringify({ selection: { category: ['consumer-fault'] }, choices: { includeFixFirst: true } });
  return [
    '',
    `The office stays open: ${url}. Ctrl-C closes it and leaves nothing behind.`,
    '',
    'Keys by right, of this run only:',
    ...Object.entries(keys).map(([right, key]) => `  ${right.padEnd(8)} ${key}`),
    '',
    'Its broker, for a consumer of your own or `npm run drain` in another terminal:',
    ...exportLines('ServiceBusConnection', broker),
    '',
    'Four calls to try: the sources, the letters of one, a dry run for what crashed its consumer, and',
    'who did what.',
    '',
    ...curl(read, [`'${url}/sources'`]),
    ...curl(read, [`'${url}/sources/billing-order-placed/letters'`]),
    ...curl(replay, [`-H 'x-operator: me' -d '${plan}'`, `'${url}/sources/billing-order-placed/plans'`]),
    ...curl(read, [`'${url}/audit?top=5'`]),
  ];
}

/** A call over several lines, so that none is wider than a page. */
function curl(key: string, rest: readonly string[]): string[] {
  return [[`curl -H 'x-functions-key: ${key}'`, ...rest.map((line) => `  ${line}`)].join(' \\\n'), ''];
}

/** A connection string as a shell variable, one part a line: strings that touch are one. */
function exportLines(name: string, connectionString: string): string[] {
  const parts = connectionString.split(';').filter((part) => part !== '');
  return `export ${name}=${parts.map((part) => `'${part};'`).join('\\\n')}`.split('\n');
}
