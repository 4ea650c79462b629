import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeEach, describe, expect, it, test } from 'vitest';
import { OfficeError } from '../../shared/errors.ts';
import { openOffice } from '../../shared/open.ts';
import { aCatalog, anEntry, CONNECTION } from '../harness/values.ts';

const folder = mkdtempSync(join(tmpdir(), 'office-'));
afterAll(() => rmSync(folder, { recursive: true }));
const root = pathToFileURL(`${folder}/`);
const SETTINGS = { ServiceBus: CONNECTION, AzureWebJobsStorage: 'UseDevelopmentStorage=true' };
const SAFE = { version: '2.0', extensions: { serviceBus: { autoCompleteMessages: false } } };
const write = (name: string, content: unknown) =>
  writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));

const open = (settings: Record<string, string | undefined> = SETTINGS) => openOffice({ root, settings, log: () => {} });

function refusal(settings?: Record<string, string | undefined>, code = 'DLO_SETTINGS_INVALID'): string {
  try {
    open(settings);
  } catch (error) {
    expect(error).toBeInstanceOf(OfficeError);
    expect((error as OfficeError).code).toBe(code);
    return (error as OfficeError).message;
  }
  throw new Error('the office opened');
}

beforeEach(() => {
  write('host.json', SAFE);
  write('catalog.json', aCatalog());
});

test('the office opens with a safe host.json, a catalog and its connections, and connects to nothing yet', () => {
  const office = open();
  expect(office.catalog.office).toBe('test');
  expect(office).toMatchObject({ leaseMs: 60_000, retryMs: 5000, collectWaitMs: 3000 });
});

test("the repository's own host.json and catalog open it", () => {
  const office = openOffice({
    root: new URL('../../', import.meta.url),
    settings: { ...SETTINGS, ServiceBusConnection: CONNECTION },
    log: () => {},
  });
  expect(office.catalog.sources.length).toBeGreaterThan(0);
});

describe('a host.json that would let the host delete letters keeps the office shut', () => {
  it.each<[string, unknown]>([
    ['auto-completion on', { extensions: { serviceBus: { autoCompleteMessages: true } } }],
    ['auto-completion not mentioned', { extensions: { serviceBus: {} } }],
    ['auto-completion off as a text', { extensions: { serviceBus: { autoCompleteMessages: 'false' } } }],
    ['no Service Bus settings', { extensions: {} }],
    ['no extensions', { version: '2.0' }],
    ['the name in another case', { extensions: { serviceBus: { AutoCompleteMessages: false } } }],
    [
      'the setting in another place',
      { extensions: { serviceBus: { messageHandlerOptions: { autoComplete: false } } } },
    ],
    ['a list', []],
    ['null', null],
  ])('%s', (_what, content) => {
    write('host.json', content);
    expect(refusal()).toContain('autoCompleteMessages');
  });

  it.each(['', '{', '// none\n{}'])('one that is no JSON (%j)', (content) => {
    write('host.json', content);
    expect(refusal()).toContain('host.json cannot be read');
  });

  it.each([
    [
      'beside it in another case',
      { extensions: { serviceBus: { autoCompleteMessages: false, AutoCompleteMessages: true } } },
    ],
    ['in a second section', { ...SAFE, Extensions: { serviceBus: { autoCompleteMessages: true } } }],
  ])('auto-completion on %s, of which the host takes the last', (_what, content) => {
    write('host.json', content);
    expect(refusal()).toContain('is there twice');
  });

  test('one that is not there', () => {
    rmSync(join(folder, 'host.json'));
    expect(refusal()).toContain('host.json cannot be read');
  });
});

describe('an app setting that would override host.json keeps the office shut', () => {
  it.each([
    ['AzureFunctionsJobHost__extensions__serviceBus__autoCompleteMessages', 'true'],
    ['AzureFunctionsJobHost:extensions:serviceBus:autoCompleteMessages', 'True'],
    ['AZUREFUNCTIONSJOBHOST__EXTENSIONS__SERVICEBUS__AUTOCOMPLETEMESSAGES', '1'],
  ])('%s=%s', (name, value) => {
    expect(refusal({ ...SETTINGS, [name]: value })).toContain(`"${name}" must be false`);
    expect(() => open({ ...SETTINGS, [name]: 'False' })).not.toThrow();
  });
});

describe('the text of a catalog', () => {
  const refused = () => refusal(SETTINGS, 'DLO_CATALOG_INVALID');
  const text = JSON.stringify(aCatalog());

  test('may begin with a byte order mark', () => {
    write('catalog.json', `\ufeff${text}`);
    expect(open().catalog.office).toBe('test');
    write('host.json', `\ufeff${JSON.stringify(SAFE)}`);
    expect(() => open()).not.toThrow();
  });

  test('in another encoding is told as that', () => {
    for (const bytes of [Buffer.from(`\ufeff${text}`, 'utf16le'), Buffer.from(text, 'utf16le').swap16()]) {
      writeFileSync(join(folder, 'catalog.json'), bytes);
      expect(refused()).toContain('it is UTF-16; save it as UTF-8');
    }
    writeFileSync(join(folder, 'catalog.json'), Buffer.from(text.replace('"team":"', '"team":"Zürich '), 'latin1'));
    expect(refused()).toContain('it is not UTF-8');
  });

  it.each([
    [`${text.slice(0, -1)},"sources":[]}`, 'sources is there twice'],
    [text.replace('"mode":"defer"', '"mode":"observe","mo\\u0064e":"defer"'), 'sources.0.mode is there twice'],
    [
      text.replace('"mode":"defer"', '"mode":"defer","rules":[[{}],{"a":1, "a" : 2}]'),
      'sources.0.rules.1.a is there twice',
    ],
  ])('has no key twice: %#', (content, why) => {
    write('catalog.json', content);
    expect(refused()).toContain(why);
  });

  test('may have a key in many places, and its name in a text', () => {
    write('catalog.json', text.replace('"team":"', '"team":"\\"team\\": a, {\\"team\\": '));
    expect(() => open()).not.toThrow();
  });
});

describe('settings', () => {
  it.each([
    ['DLO_LEASE_SECONDS', '0'],
    ['DLO_LEASE_SECONDS', '601'],
    ['DLO_LEASE_SECONDS', 'a minute'],
    ['DLO_LEASE_SECONDS', 'NaN'],
    ['DLO_LEASE_SECONDS', 'Infinity'],
    ['DLO_RETRY_SECONDS', '-1'],
    ['DLO_RETRY_SECONDS', '301'],
    ['DLO_COLLECT_WAIT_SECONDS', '0'],
    ['DLO_COLLECT_WAIT_SECONDS', '61'],
    ['DLO_CATALOG', ''],
    ['DLO_AUTH', ''],
    ['DLO_AUTH', 'none'],
    ['DLO_AUTH', 'App-Service'],
  ])('%s=%j is refused by name', (name, value) => {
    expect(refusal({ ...SETTINGS, [name]: value })).toContain(`${name}: `);
  });

  test('are seconds', () => {
    const settings = { ...SETTINGS, DLO_LEASE_SECONDS: '2', DLO_RETRY_SECONDS: '0.5', DLO_COLLECT_WAIT_SECONDS: '0.2' };
    expect(open(settings)).toMatchObject({ leaseMs: 2000, retryMs: 500, collectWaitMs: 200 });
  });

  test('let callers in by keys alone, or behind App Service authentication', () => {
    expect(open().auth).toBe('keys');
    expect(open({ ...SETTINGS, DLO_AUTH: 'app-service' }).auth).toBe('app-service');
  });

  test('name another catalog', () => {
    write('other.json', aCatalog({ office: 'other' }));
    expect(open({ ...SETTINGS, DLO_CATALOG: join(folder, 'other.json') }).catalog.office).toBe('other');
    expect(refusal({ ...SETTINGS, DLO_CATALOG: join(folder, 'none.json') }, 'DLO_CATALOG_INVALID')).toContain(
      'catalog.json cannot be read',
    );
  });

  it.each([{}, { AzureWebJobsStorage: '' }, { AzureWebJobsStorage__clientId: 'x' }])(
    'without storage are refused: %j',
    (storage) => {
      expect(refusal({ ServiceBus: CONNECTION, ...storage })).toContain('AzureWebJobsStorage');
    },
  );

  it.each([
    { AzureWebJobsStorage__accountName: 'office' },
    {
      AzureWebJobsStorage__tableServiceUri: 'https://t.example',
      AzureWebJobsStorage__queueServiceUri: 'https://q.example',
    },
  ])('name the storage by identity: %j', (storage) => {
    expect(() => open({ ServiceBus: CONNECTION, ...storage })).not.toThrow();
  });
});

test('a source that is archived needs the address of the blobs, others do not', () => {
  const settings = {
    ServiceBus: CONNECTION,
    AzureWebJobsStorage__tableServiceUri: 'https://t.example',
    AzureWebJobsStorage__queueServiceUri: 'https://q.example',
  };
  write('catalog.json', aCatalog({ sources: [anEntry({ archive: true })] }));
  expect(refusal(settings)).toContain('AzureWebJobsStorage');
  expect(() => open({ ...settings, AzureWebJobsStorage__blobServiceUri: 'https://b.example' })).not.toThrow();
});

test('a bad catalog keeps the office shut', () => {
  write('catalog.json', aCatalog({ office: 'NO' }));
  expect(refusal(SETTINGS, 'DLO_CATALOG_INVALID')).toContain('office: ');
});
