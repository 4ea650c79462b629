/** What each door of the office lets through: by which right, in which form, and how much of it. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ROUTE_TABLE } from '../../functions/routeTable.ts';
import { LIST_TRAITS } from '../../shared/selection.ts';
import { storageConnection } from '../../shared/store/connection.ts';
import { Table } from '../../shared/store/table.ts';
import type { Answer } from '../harness/host.ts';
import { type Ingestion, openIngestion } from '../harness/ingestion.ts';
import { openTestOffice, type TestOffice, until } from '../harness/office.ts';

/** What stands in masked places: a property, headers of a framework, and the reason and description of one source. */
const SECRETS = ['zebra-7714', 'OkapiText', 'GiraffeType', 'QuaggaReason', 'QuaggaText'];

let ingestion: Ingestion;
let office: TestOffice;
beforeAll(async () => {
  ingestion = await openIngestion();
  office = await openTestOffice({
    settings: ingestion.settings,
    sources: [
      { name: 'removals' },
      { name: 'paged' },
      { name: 'bodies' },
      { name: 'masked', mask: ['customer', 'MT-Fault-Message', 'MT-Fault-MessageType'] },
      { name: 'silent', mask: ['reason', 'description'] },
    ],
  });
});
afterEach((context) => {
  if (context.task.result?.state === 'fail') console.log(office?.process.log().slice(-5000));
});
afterAll(async () => {
  await office?.close();
  await ingestion?.close();
});

const inDlq = (queue: string) => office.broker.messages(`${queue}/$DeadLetterQueue`).length;

test('a discard is started, resumed and cancelled by its own right only; whoever may stop can pause it', async () => {
  await office.deadLetters(30, 'removals');
  const plan = await office.plan({ action: 'discard' }, 'removals');
  const call = (right: 'replay' | 'discard', verb: string, body: unknown = {}) =>
    office.call(right, 'POST', `plans/${plan.id}/${verb}`, body);
  const start = { confirm: 30, rate: 0.1, ramp: false };
  expect((await call('replay', 'discard', start)).status).toBe(401);
  expect((await call('replay', 'run', start)).json).toMatchObject({ code: 'DLO_WRONG_ACTION' });
  expect((await call('discard', 'discard', start)).status).toBe(202);
  await until(() => inDlq('removals') < 30 || undefined, 'the first letter to be removed');
  await office.post('stop', {});
  await office.finished(plan.id, ['paused']);
  const left = inDlq('removals');
  expect(left).toBeGreaterThan(0);

  for (const verb of ['resume', 'cancel']) {
    expect((await call('replay', verb)).json).toMatchObject({ code: 'DLO_WRONG_ACTION', planAction: 'discard' });
    expect((await call('replay', `discard/${verb}`)).status).toBe(401);
  }
  expect(await office.getPlan(plan.id)).toMatchObject({ state: 'paused' });
  expect(inDlq('removals')).toBe(left);

  expect((await call('discard', 'discard/resume')).status).toBe(202);
  expect((await call('replay', 'pause')).status).toBeLessThan(300);
  await office.finished(plan.id, ['paused']);
  expect((await call('discard', 'discard/pause')).status).toBe(200);
  expect((await call('discard', 'discard/cancel')).json).toMatchObject({ state: 'cancelled' });

  const { id } = await office.plan({}, 'removals');
  const other = await office.call('discard', 'POST', `plans/${id}/discard/resume`, {});
  expect(other.json).toMatchObject({ code: 'DLO_WRONG_ACTION', planAction: 'replay' });
});

/** Every page of a list, however the tokens look. */
async function walk<Item>(path: string, name: string): Promise<Item[]> {
  const items: Item[] = [];
  let token: string | null = null;
  let pages = 0;
  do {
    const more: string = token === null ? '' : `&continuation=${encodeURIComponent(token)}`;
    const page: Record<string, unknown> = await office.get(`${path}${more}`);
    items.push(...(page[name] as Item[]));
    token = page.continuation as string | null;
  } while (token !== null && ++pages < 1000);
  return items;
}

test('every paged list takes back each continuation that it gives, also of chunks that were split until one letter was left', async () => {
  const letters = await office.deadLetters(60, 'paged');
  const numbers = letters.map(({ sequenceNumber }) => sequenceNumber);
  const plan = await office.plan({}, 'paged');
  const table = new Table(storageConnection({ AzureWebJobsStorage: office.storage }, 'table'), 'plans');
  const { rows } = await table.page(`PartitionKey eq '${plan.id}' and RowKey ge 'chunk:' and RowKey lt 'chunk;'`, {});
  expect(rows).toHaveLength(1);
  const [row] = rows;
  if (row === undefined) throw new Error('no chunk');
  // As a run leaves it that had to try its letters one by one: the front is split off, then that of the rest, and so on.
  const pairs = JSON.parse(String(row.letters)) as unknown[];
  const { etag: _etag, timestamp: _at, ...cells } = row as typeof row & { timestamp?: unknown };
  const split = pairs.map((pair, i) => ({
    ...cells,
    partitionKey: plan.id,
    rowKey: `chunk:~~${row.rowKey.slice('chunk:'.length)}${'.1'.repeat(i)}${i < pairs.length - 1 ? '.0' : ''}`,
    letters: JSON.stringify([pair]),
  }));
  await table.transact(split.map((one) => ({ kind: 'insert', row: one as never })));
  await table.remove(plan.id, row.rowKey);

  const told = await walk<{ sequenceNumber: string }>(`plans/${plan.id}/letters?top=1`, 'letters');
  expect(told.map(({ sequenceNumber }) => sequenceNumber).sort()).toEqual(numbers.toSorted());
  const listed = await walk<{ sequenceNumber: string }>('sources/paged/letters?top=7', 'letters');
  expect(listed.map(({ sequenceNumber }) => sequenceNumber)).toEqual(numbers);
  expect((await walk<unknown>('groups?top=1', 'groups')).length).toBeGreaterThan(0);
});

test('what is masked is in no answer of any route, in no log line and in no signal, and cannot be guessed by a filter', async () => {
  const secret = 'zebra-7714';
  const mail = {
    messageId: secret,
    correlationId: secret,
    subject: `about ${secret}`,
    to: secret,
    replyTo: secret,
    contentType: `application/${secret}`,
    body: { order: 1 },
    applicationProperties: {
      customer: secret,
      note: `see ${secret}`,
      'MT-Fault-ExceptionType': 'System.InvalidOperationException',
      'MT-Fault-Message': 'OkapiText is not there',
      'MT-Fault-MessageType': 'urn:message:Zoo:GiraffeType',
    },
  };
  await office.send('masked', mail);
  await office.deadLetterAll('masked', `Refused ${secret}`, `customer ${secret} is unknown`);
  await office.send('silent', { messageId: 'plain', body: 1 });
  await office.deadLetterAll('silent', 'QuaggaReason', 'QuaggaText went wrong');
  const [first] = await office.held(1, 'masked');
  const [silent] = await office.held(1, 'silent');
  // Sent back, and dead again: it has a history, and its plan has something that came back.
  const gone = await office.run(await office.plan({ choices: { includeFixFirst: true } }, 'masked'));
  await office.deadLetterAll('masked', `Refused ${secret}`, `customer ${secret} is unknown`);
  const [letter] = await office.held(1, 'masked');
  const { groups } = await office.get<{ groups: { fingerprint: string }[] }>('groups?source=masked');
  const { id } = await office.plan({ choices: { includeFixFirst: true } }, 'masked');
  const removal = await office.plan({ action: 'discard' }, 'silent');

  const lists = [...LIST_TRAITS, 'source', 'day', 'cause'].filter(
    (by) => !['messageId', 'sequenceNumber'].includes(by),
  );
  const wait = { ramp: false, confirm: 1 };
  const sources = ['masked', 'silent'];
  const letters = [`masked/letters/${letter?.sequenceNumber}`, `silent/letters/${silent?.sequenceNumber}`];
  letters.push(`masked/letters/${first?.sequenceNumber}`);
  const calls: Record<string, readonly (string | readonly [path: string, body: unknown])[]> = {
    listSources: ['sources'],
    getSource: sources.map((name) => `sources/${name}`),
    listLetters: [
      ...sources.map((name) => `sources/${name}/letters`),
      'sources/masked/letters?messageType=GiraffeType',
    ],
    getLetter: letters.map((path) => `sources/${path}`),
    downloadLetters: sources.map((name) => `sources/${name}/download`),
    getBody: letters.slice(0, 2).map((path) => `sources/${path}/body`),
    summary: lists.flatMap((by) => [`summary?by=${by}`, `summary?by=${by}&format=text`]),
    listGroups: ['groups'],
    getGroup: groups.map(({ fingerprint }) => `groups/${fingerprint}`),
    triageGroup: [[`groups/${groups[0]?.fingerprint}/triage`, { owner: 'zoo' }]],
    collectNow: sources.map((name) => [`sources/${name}/collect`, {}]),
    reclassify: sources.map((name) => [`sources/${name}/reclassify`, { reread: true }]),
    previewExpiry: sources.map((name) => `sources/${name}/expiry`),
    createPlan: sources.map((name) => [`sources/${name}/plans`, {}]),
    listPlans: ['plans'],
    getPlan: [gone.id, id, removal.id].map((plan) => `plans/${plan}`),
    listPlanLetters: [gone.id, id].map((plan) => `plans/${plan}/letters`),
    getReport: [`plans/${gone.id}/report`, `plans/${gone.id}/report?format=text`],
    runPlan: [[`plans/${id}/run`, wait]],
    discardPlan: [[`plans/${removal.id}/discard`, wait]],
    pausePlan: [[`plans/${id}/pause`, {}]],
    resumePlan: [[`plans/${id}/resume`, {}]],
    cancelPlan: [[`plans/${id}/cancel`, {}]],
    pauseDiscard: [[`plans/${removal.id}/discard/pause`, {}]],
    resumeDiscard: [[`plans/${removal.id}/discard/resume`, {}]],
    cancelDiscard: [[`plans/${removal.id}/discard/cancel`, {}]],
    stop: [['stop', {}]],
    listAudit: ['audit?top=500'],
    health: ['health'],
    openapi: ['openapi.json'],
  };
  expect(ROUTE_TABLE.map(({ name }) => name).toSorted(), 'a new route has to be walked too').toEqual(
    Object.keys(calls).toSorted(),
  );
  const answers: [string, Answer][] = [];
  for (const { name, right, method } of ROUTE_TABLE) {
    for (const call of calls[name] ?? []) {
      const [path, body] = typeof call === 'string' ? [call, undefined] : call;
      answers.push([`${name}: ${path}`, await office.call(right, method, path, body)]);
    }
  }
  for (const [what, { text, status }] of answers) {
    for (const hidden of SECRETS) expect(text, what).not.toContain(hidden);
    expect(status, `${what}: ${text}`).toBeLessThan(500);
  }
  const told = Object.fromEntries(answers.map(([what, { json }]) => [what, json]));
  expect(told['listLetters: sources/masked/letters?messageType=GiraffeType']).toMatchObject({ letters: [] });
  expect(told[`getLetter: sources/${letters[0]}`]).toMatchObject({
    messageId: '***',
    subject: 'about ***',
    reason: 'Refused ***',
    messageType: '***',
    evidence: { exceptionMessage: '***', exceptionType: 'System.InvalidOperationException' },
    category: expect.stringMatching(/./),
    history: [{ reason: 'Refused ***', messageId: '***' }],
  });
  expect(told[`getReport: plans/${gone.id}/report`]).toMatchObject({ returned: { 'Refused ***': 1 } });

  for (const guess of [secret, 'wrong']) {
    const filters = [
      `masked/letters?property=customer:${guess}`,
      `silent/letters?reason=${guess}`,
      `silent/letters?notReason=${guess}`,
    ];
    for (const filter of filters) {
      expect((await office.call('read', 'GET', `sources/${filter}`)).json, filter).toMatchObject({
        code: 'DLO_FILTER_MASKED',
      });
    }
    const selection = { property: { name: 'customer', equals: guess } };
    const planned = await office.call('replay', 'POST', 'sources/masked/plans', { selection });
    expect(planned.json).toMatchObject({ code: 'DLO_FILTER_MASKED' });
  }
  await until(() => ingestion.events('RunFinished').length > 0 || undefined, 'signals');
  for (const hidden of SECRETS) {
    expect(office.process.log(), 'the log').not.toContain(hidden);
    expect(ingestion.bodies.join(), 'signals').not.toContain(hidden);
  }
});

test('a body that is no text is shown as bytes, and says so; a property with a colon in its name can be asked for', async () => {
  const bytes = Buffer.from([0x08, 0x16, 0x12, 0x03, 0x61, 0x62, 0x63, 0x00]);
  await office.send(
    'bodies',
    { messageId: 'binary', body: bytes, applicationProperties: { 'http://host/path': 'yes' } },
    { messageId: 'latin', body: Buffer.from([0xe9, 0x74, 0xe9]) },
    { messageId: 'text', body: Buffer.from('\u00fcber\tzwei\r\nZeilen') },
  );
  await office.deadLetterAll('bodies');
  const letters = await office.held(3, 'bodies');
  const bodyOf = async (id: string, query = '') => {
    const number = letters.find(({ messageId }) => messageId === id)?.sequenceNumber;
    return (await office.call('body', 'GET', `sources/bodies/letters/${number}/body${query}`)).json;
  };
  expect(await bodyOf('binary')).toMatchObject({
    sections: [{ base64: bytes.toString('base64'), binary: 'control-characters' }],
  });
  expect(await bodyOf('latin')).toMatchObject({ sections: [{ base64: '6XTp', binary: 'not-utf-8' }] });
  expect(await bodyOf('text')).toMatchObject({ sections: [{ text: '\u00fcber\tzwei\r\nZeilen' }], cut: false });
  // Cut in the middle of its first character.
  expect(await bodyOf('text', '?max=1')).toMatchObject({ sections: [{ text: '' }], cut: true });

  const query = encodeURIComponent('http\\://host/path:yes');
  expect((await office.letters('bodies', `&property=${query}`)).map(({ messageId }) => messageId)).toEqual(['binary']);

  const path = 'sources/bodies/download';
  expect((await office.call('read', 'GET', path)).status).toBe(401);
  const lines: Record<string, unknown>[] = [];
  let token: unknown = '';
  while (token !== null) {
    const more = token === '' ? '' : `&continuation=${token}`;
    const page = await office.call('body', 'GET', `${path}?top=2${more}`);
    expect(page.headers.get('content-type')).toContain('application/x-ndjson');
    const told = page.text
      .trimEnd()
      .split('\n')
      .map((line): Record<string, unknown> => JSON.parse(line));
    lines.push(...told.slice(0, -1));
    token = told.at(-1)?.continuation;
  }
  expect(lines.map(({ messageId }) => messageId)).toEqual(letters.map(({ messageId }) => messageId));
  expect(lines.find(({ messageId }) => messageId === 'text')).toMatchObject({
    reason: 'UnsupportedCurrency',
    body: { kind: 'data', sections: [{ text: '\u00fcber\tzwei\r\nZeilen' }], cut: false },
  });
  const { entries } = await office.get<{ entries: object[] }>('audit?source=bodies&top=500');
  const numbers = letters.map(({ sequenceNumber }) => sequenceNumber);
  expect(entries).toContainEqual(
    expect.objectContaining({ operation: 'body.read', letters: numbers.slice(0, 2), outcome: '2 shown, 0 not there' }),
  );
});
