import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
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
