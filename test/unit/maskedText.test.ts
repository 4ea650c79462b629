/** Texts that quote what is masked, in whatever form. */
import { expect, it, test } from 'vitest';
import { letterView } from '../../shared/http/views.ts';
import { shownLetter, shownOf } from '../../shared/mask.ts';
import { textMasker } from '../../shared/maskedText.ts';
import { fromRow, toRow } from '../../shared/store/letterRow.ts';
import { aLetter, aRecord, aSource, NOW } from '../harness/values.ts';

const property = (name: string, value: string | number) => ({ name, type: typeof value, value });

it.each([
  ['as it came', 'zebra-7714', 'no zebra-7714, see zebra-7714.', 'no ***, see ***.'],
  ['in another case', 'Zebra-7714', 'no such customer ZEBRA-7714', 'no such customer ***'],
  ['as JSON', 'O"Neil\nStr 5', '{"name":"O\\"Neil\\nStr 5","x":1}', '{"name":"***","x":1}'],
  ['as JSON in ASCII', 'Müller, Zoë', '{"name":"M\\u00fcller, Zo\\u00EB","x":1}', '{"name":"***","x":1}'],
  ['a path as JSON', 'C:\\new\\tab', 'at "C:\\\\new\\\\tab" of', 'at "***" of'],
  ['as a URL', 'zoë doe/x@y.org', 'GET /c?x=zo%C3%AB%20doe%2Fx%40y.org&z=1', 'GET /c?x=***&z=1'],
  ['as HTML', 'Zebra & O’Neil', '<b>Zebra &amp; O&#8217;Neil</b>', '<b>***</b>'],
  ['with other blanks', 'Zebra 7714\nnorth', 'no Zebra  7714\r\n north here', 'no *** here'],
  ['short', '42', 'customer 42 of 421 and 142 or x42', 'customer *** of 421 and 142 or x42'],
  ['one letter of it', 'M', 'a Moving M', 'a Moving M'],
  ['cut by the end', 'zebra-of-the-north-7714', 'no such: zebra-of-the-no', 'no such: ***'],
  ['beside another that overlaps', 'zebra-7714', 'zebra-7714-okapi-1', '***'],
])('%s', (_how, value, text, told) => {
  const hide = textMasker([
    { text: value, isCut: false },
    { text: '7714-okapi-1', isCut: false },
  ]);
  expect(hide(text)).toBe(told);
});

test('what follows a value that was cut is hidden with it, and what is quoted of JSON', () => {
  const mask = ['exceptionMessage', 'customer'];
  const message = 'm'.repeat(1000);
  const letter = aLetter({ properties: [property('customer', '{"name":"Zebra","ids":[77144]}')] });
  const evidence = { exceptionMessage: message, description: `X: ${message} Okapi`, reason: 'Zebra (77144) unknown' };
  const { classification } = shownOf(aSource({ mask }), letter, { ...aRecord().classification, evidence });
  expect(classification.evidence).toEqual({
    exceptionMessage: '***',
    description: 'X: ***',
    reason: '*** (***) unknown',
  });
});

test('a property that quotes one for which a record has no room is not shown', () => {
  const source = aSource({ mask: ['customer'] });
  const filler = Array.from({ length: 900 }, (_, i) => property(`${i}`, 'x'));
  const letter = aLetter({
    properties: [property('note', 'see zebra-7714'), ...filler, property('customer', 'zebra-7714')],
  });
  const found = aRecord().classification;
  const row = toRow(source.key, 'office', letter, found, NOW, shownOf(source, letter, found));
  const record = fromRow({ ...row, etag: '' });
  expect(record.letter.properties.map(({ name }) => name)).not.toContain('customer');
  expect(JSON.stringify(letterView(source, record))).not.toContain('zebra');
});

// Each pair looked at in turn takes minutes.
test('a letter with many secrets, or long ones that nearly repeat, is masked in one pass', () => {
  const many = Array.from({ length: 5000 }, (_, i) => [
    property(`token-${i}`, `secret-${i}-of-many`),
    property(`note-${i}`, `not secret ${i}`),
  ]);
  const long = Array.from({ length: 5 }, (_, i) => [
    property(`token-a${i}`, 'a'.repeat(30_000) + i),
    property(`note-a${i}`, `${'a'.repeat(30_000)}c`),
  ]);
  const { properties } = shownLetter({ mask: [] }, aLetter({ properties: [...many, ...long].flat() }));
  expect(properties.filter(({ value }) => value === '***')).toHaveLength(5005);
});
