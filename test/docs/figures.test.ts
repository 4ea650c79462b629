/** Every limit that a page tells in words is that of the code, or is somebody else's and listed as that. */
import { expect, test } from 'vitest';
import { constant } from './constants.ts';
import { pages, read } from './pages.ts';

/** What a page says, with the figure in brackets, and what it has to be in the unit of the page. */
type Held = readonly [page: string, sentence: RegExp, value: number];

const chunk = constant('MAX_CHUNK', 'shared/plan/prepare.ts');
const reach = constant('REACH', 'shared/plan/preflight.ts');
const body = constant('MAX_BODY', 'shared/classify/body.ts') / 1024;
const collected = constant('BATCH', 'shared/watch/collect.ts') * constant('BATCHES_AT_ONCE', 'shared/watch/collect.ts');
const planDays = constant('PAUSED_LIFETIME', 'shared/plan/run.ts') / 86_400_000;
const planHours = constant('PLAN_LIFETIME', 'shared/plan/prepare.ts') / 3_600_000;
const cleanup = Number(/schedule: '0 \*\/(\d+) /.exec(read('functions/expire.ts'))?.[1]);
const EXPIRE = 'shared/retention/expire.ts';
const removed = constant('MAX_PER_RUN', EXPIRE);
const forgotten = constant('MAX_ROWS', 'shared/retention/forget.ts');

const HELD: readonly Held[] = [
  ['README.md', /at most one chunk \(up to (\S+) letters\)/, chunk],
  ['README.md', /receives up to (\S+) letters from the front/, reach],
  ['docs/architecture.md', /up to (\S+) letters of a plan/, chunk],
  ['docs/architecture.md', /a body above (\S+) KiB is left alone/, body],
  ['docs/architecture.md', /(\d+) hours: expired; paused/, planHours],
  ['docs/architecture.md', /paused and halted plans: after (\d+) days/, planDays],
  ['docs/architecture.md', /at most (\S+) groups, the largest/, constant('MAX_GROUPS', 'shared/store/groups.ts')],
  ['docs/decisions/01-deferral.md', /receives up to (\S+) letters from the front/, reach],
  ['docs/decisions/03-tables.md', /A chunk has at most (\S+) letters/, chunk],
  ['docs/decisions/04-plans.md', /after (\d+) hours, a paused/, planHours],
  ['docs/decisions/04-plans.md', /halted one after (\d+) days/, planDays],
  ['docs/decisions/05-no-transactions.md', /At most one chunk, up to (\S+) letters/, chunk],
  ['docs/dialects/README.md', /Bodies above (\S+) KiB/, body],
  ['docs/dialects/adding.md', /the parsed body, up to (\S+) KiB/, body],
  ['docs/dialects/babelqueue.md', /an envelope above (\S+) KiB/, body],
  ['docs/operate.md', /it can be resumed for (\d+) days/, planDays],
  ['docs/operate.md', /can be run for (\d+) hours/, planHours],
  ['docs/operate.md', /not run within (\d+) hours/, planHours],
  ['docs/operate.md', /not resumed within (\d+) days/, planDays],
  ['docs/operate.md', /these lie behind more than (\S+) others/, reach],
  [
    'docs/operate.md',
    /had it locked for more than (\d+) minutes/,
    Math.floor(constant('BUSY_LIMIT', 'shared/plan/work.ts') / 60_000),
  ],
  [
    'docs/operate.md',
    /After (\d+) minutes letters that are still locked/,
    Math.floor(constant('BUSY_LIMIT', 'shared/plan/work.ts') / 60_000),
  ],
  ['docs/operate.md', /more than (\d+) KiB /, constant('MAX_BODY', 'shared/http/route.ts') / 1024],
  ['docs/operate.md', /a property of more than (\S+) characters/, constant('MAX_PROPERTY', 'shared/plan/preflight.ts')],
  ['docs/operate.md', /older than (\d+) hours/, planHours],
  ['docs/operate.md', /They are over after (\d+) days/, planDays],
  ['docs/promises.md', /locks at most (\S+) letters of a chunk/, chunk],
  ['docs/promises.md', /up to (\S+) from the front of an `observe` source/, reach],
  ['docs/promises.md', /collecting locks up to (\S+) at a time/, collected],
  ['docs/promises.md', /one crash marks at most (\S+) letters/, chunk],
  ['docs/rules.md', /the first (\S+) characters count/, constant('MAX_COMPARED', 'shared/classify/pattern.ts')],
  ['docs/rules.md', /One above (\S+) KiB/, body],
  ['docs/rules.md', /works for up to (\S+) seconds/, constant('SLICE', 'functions/http/reclassify.ts') / 1000],
  ['docs/security.md', /cleanup runs every (\d+) minutes/, cleanup],
  ['docs/scaling.md', /After (\d+) minutes a source has/, constant('LATE_AFTER', EXPIRE) / 60_000],
  ['docs/scaling.md', /minutes a source has (\S+) at most/, constant('MAX_WHEN_LATE', EXPIRE)],
  ['docs/scaling.md', /after (\d+) the others have their turn/, constant('OVER_AFTER', EXPIRE) / 60_000],
  ['docs/security.md', /at most (\S+) letters and /, removed],
  ['docs/security.md', /letters and (\S+) old records a source/, forgotten],
  [
    'docs/signals.md',
    /at most (\S+) links: the traces/,
    Math.min(constant('MAX_LINKS', 'shared/telemetry/links.ts'), chunk),
  ],
];

/** Limits of others, of the templates, or arithmetic that test/docs/scaling.test.ts holds. */
const NOT_OURS: readonly (readonly [page: string, sentence: RegExp])[] = [
  ['docs/scaling.md', /at most 800 resources/], // Azure Resource Manager
  ['infra/README.md', /at most 800 resources/],
  ['infra/README.md', /more than about 250 sources/], // what that leaves for them
  ['docs/scaling.md', /up to 3 s \(`DLO_COLLECT_WAIT_SECONDS`\)/], // a setting, in test/unit/open.test.ts
];

/** Pages that show what was printed, and what is told of other tools. */
const NOT_READ = /^(?:docs\/(?:comparison|conformance|drill)\.md|local\/|test\/)/;
const LIMIT =
  /\b(?:at most|up to|more than|longer than|older than|above|below|the first|for|within|after)\s(?:about )?\d[\d,.]*\s(?!minutes ago)(?:\w+ )?(?:letters|others|old records|groups|links|sources|resources|characters|KiB|MB|s|seconds|hours|days)\b/gi;

const PROSE = pages()
  .filter(({ name }) => !NOT_READ.test(name))
  .map(({ name, prose }) => ({ name, text: prose.join(' ').replace(/\s+/g, ' ') }));
const textOf = (page: string) => PROSE.find(({ name }) => name === page)?.text ?? '';

test.each(HELD)('%s: %s', (page, sentence, value) => {
  const [, figure] = sentence.exec(textOf(page)) ?? [];
  expect(figure).toBe(value.toLocaleString('en-US'));
});

test.each(NOT_OURS)('%s still tells of %s', (page, sentence) => {
  expect(textOf(page)).toMatch(sentence);
});

test('no page tells a limit that nothing holds', () => {
  const spans = [...HELD, ...NOT_OURS].flatMap(([page, sentence]) => {
    const all = textOf(page).matchAll(new RegExp(sentence.source, 'g'));
    return [...all].map(({ index, 0: text }) => ({ page, from: index, to: index + text.length }));
  });
  const loose = PROSE.flatMap(({ name, text }) =>
    [...text.matchAll(LIMIT)]
      .filter(({ index, 0: found }) => {
        const end = index + found.length;
        return !spans.some(({ page, from, to }) => page === name && from < end && to > index);
      })
      .map(({ 0: found }) => `${name}: ${found}`),
  );
  expect(loose).toEqual([]);
});
