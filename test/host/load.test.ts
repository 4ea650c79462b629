import { describe, expect, it } from 'vitest';
import { startOfficeProcess } from '../harness/host.ts';

const broken = (entry: string, settings: Record<string, string> = {}) =>
  startOfficeProcess({ root: 'test/host/fixtures/broken', entry, settings });

describe('an app does not start', () => {
  it.each([
    ['empty.ts', 'registered no functions'],
    ['throws.ts', 'failed to load: no catalog found'],
    ['missing.ts', 'failed to load: Cannot find module'],
    ['setting.ts', 'Function "reader": queueName is "%NO_SUCH_SETTING%", but there is no setting "NO_SUCH_SETTING"'],
    ['connection.ts', 'Function "reader": Connection "NoSuchConnection": neither the setting NoSuchConnection'],
    ['connection.ts', 'Function "letters": Connection "NoSuchBus": neither the setting NoSuchBus nor'],
    ['schedule.ts', 'Function "oddTimer": The schedule "99 * * * * *" is not an NCRONTAB expression'],
    ['twice.ts', 'A function named "Twin" has already been registered'],
    ['route.ts', 'Function "odd": Route "api/items/{id:shape}": the constraint "shape" is not known'],
    ['trigger.ts', 'Function "blobs": the trigger "blobTrigger" is unknown'],
  ])('%s: %s', async (entry, reason) => {
    await expect(broken(entry)).rejects.toThrow(reason);
  });

  it('without host.json', async () => {
    const start = startOfficeProcess({ root: 'test/host/fixtures', entry: 'http/index.ts' });
    await expect(start).rejects.toThrow('host.json cannot be read');
  });

  it('unless the function whose binding is wrong is switched off', async () => {
    const settings = { 'AzureWebJobs.letters.Disabled': '1', 'AzureWebJobs.reader.Disabled': 'true' };
    const host = await broken('connection.ts', settings);
    expect(host.functions).toMatchObject([
      { name: 'reader', disabled: true },
      { name: 'letters', disabled: true },
    ]);
    await host.stop();
  });
});

describe('an app starts', () => {
  it('from a CommonJS bundle', async () => {
    const host = await startOfficeProcess({ root: 'test/host/fixtures/cjs', entry: 'main.js' });
    expect((await host.call('GET', '/api/hello')).text).toBe('hello from @azure/functions');
    expect(await host.stop()).toBe(0);
  });

  it('and ends when the process that started it is gone', async () => {
    const host = await startOfficeProcess({ root: 'test/host/fixtures/cjs', entry: 'main.js' });
    const ended = new Promise((done) => host.process.once('exit', done));
    host.process.stdin?.destroy(); // what a killed parent leaves behind
    expect(await ended).toBe(0);
  });
});
