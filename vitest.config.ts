import { configDefaults, defineConfig } from 'vitest/config';

/** Minutes of crashes and faults: `npm run test:long`, not part of `npm test`. */
const LONG = ['test/integration/soak.test.ts', 'test/integration/faults.test.ts'];

export default defineConfig({
  test: {
    include: process.env.LONG === '1' ? LONG : ['test/**/*.test.ts'],
    exclude: process.env.LONG === '1' ? configDefaults.exclude : [...configDefaults.exclude, ...LONG],
    globalSetup: ['test/harness/globalSetup.ts'],
    // Processes, not threads: tests start children, and a broken one must not take the others along.
    pool: 'forks',
    // Files share a worker and what it has loaded: half of a unit test's time is loading. No test may lean on module state.
    isolate: false,
    // One more than the two cores that CI has: much of the time a test waits for a lock, a lease or a child to start.
    maxWorkers: 3,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
