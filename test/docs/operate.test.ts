import { expect, test } from 'vitest';
import { ADVICES, CATEGORIES } from '../../shared/classify/evidence.ts';
import { ERRORS } from '../../shared/errors.ts';
import { FINDING_CODES, PLAN_STATES, SKIP_REASONS } from '../../shared/records/plan.ts';
import { rowsUnder } from './pages.ts';

const PAGE = 'docs/operate.md';

/** Codes in the first column of the tables under a heading, sorted. Each row must say something in its last cell. */
function explained(heading: string): string[] {
  return rowsUnder(PAGE, heading)
    .filter((cells) => (cells.at(-1) ?? '').length > 3)
    .map(([first = '']) => first.replaceAll('`', ''))
    .sort();
}

const sorted = (codes: readonly string[]) => [...codes].sort();

test('every error code is explained, with its status, and no other', () => {
  expect(explained('Error codes')).toEqual(sorted(Object.keys(ERRORS)));
  const statuses = rowsUnder(PAGE, 'Error codes').map(([code = '', status]) => [code.replaceAll('`', ''), status]);
  expect(Object.fromEntries(statuses)).toEqual(
    Object.fromEntries(Object.entries(ERRORS).map(([code, { status }]) => [code, String(status)])),
  );
});

test('every finding is explained, and no other', () => {
  expect(explained('Findings of a plan')).toEqual(sorted(FINDING_CODES));
});

test('every reason for skipping a letter is explained: as a finding, or with the fates', () => {
  const withFates = rowsUnder(PAGE, 'What became of a letter').map(([, reason = '']) => reason.replaceAll('`', ''));
  const known = [...explained('Findings of a plan'), ...withFates];
  expect(SKIP_REASONS.filter((reason) => !known.includes(reason))).toEqual([]);
});

test('every category and every advice is explained, and no other', () => {
  expect(explained('Categories')).toEqual(sorted([...CATEGORIES, ...ADVICES]));
});

test('every state of a plan is explained', () => {
  const known = rowsUnder(PAGE, 'When a run stops').map(([state = '']) => state.replaceAll('`', ''));
  expect(PLAN_STATES.filter((state) => !known.includes(state))).toEqual([]);
});

test('what Service Bus writes as a reason is explained', () => {
  const documented = [
    'MaxDeliveryCountExceeded',
    'TTLExpiredException',
    'HeaderSizeExceeded',
    'Session ID is null',
    'MaxTransferHopCountExceeded',
  ];
  expect(documented.filter((reason) => !explained('Reason codes').includes(reason))).toEqual([]);
});
