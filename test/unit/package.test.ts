/** What leaves this repository: the settings that are asked for, the sample's entities, the deployed package. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, matchesGlob, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../local/broker/index.ts';
import { parseCatalog } from '../../shared/catalog.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const settings = (JSON.parse(read('local.settings.sample.json')) as { Values: Record<string, string> }).Values;

describe('local.settings.sample.json', () => {
  test('has every setting of the office', () => {
    const asked = new Set(read('shared/open.ts').match(/DLO_\w+(?=:)/g));
    expect(Object.keys(settings).filter((name) => name.startsWith('DLO_'))).toEqual(expect.arrayContaining([...asked]));
  });
});

describe('catalog.json and local/Config.json', () => {
  const catalog = parseCatalog(JSON.parse(read('catalog.json')), settings);
  const config = parseConfig(JSON.parse(read('local/Config.json')));

  test('show a queue and a subscription that are held, and a queue that is only observed', () => {
    expect(catalog.sources.map(({ mode, of }) => `${mode} ${of.kind}`)).toEqual([
      'defer queue',
      'defer subscription',
      'observe queue',
    ]);
  });

  test('declare the same entities with the same properties', () => {
    const queues = new Map(config.queues.map(({ name, settings }) => [name, settings]));
    for (const { of, entity, replay } of catalog.sources) {
      const found =
        of.kind === 'queue'
          ? queues.get(of.queue)
          : config.topics
              .find(({ name }) => name === of.topic)
              ?.subscriptions.find(({ name }) => name === of.subscription)?.settings;
      expect(found).toMatchObject({
        lockDuration: entity.lockDuration,
        maxDeliveryCount: entity.maxDeliveryCount,
        deadLetteringOnMessageExpiration: entity.deadLettersOnExpiry,
      });
      if (replay.replayQueue !== undefined) expect(queues.has(replay.replayQueue)).toBe(true);
    }
    expect(config.unsupported).toEqual([]);
  });
});

describe('the deployed package', () => {
  test('holds only the built app, host.json, package.json and catalog.json', () => {
    const ignored = read('.funcignore').split('\n');
    const patterns = ignored.filter((line) => line !== '' && !line.startsWith('#'));
    const isLeftOut = (path: string) => patterns.some((pattern) => matchesGlob(path, pattern));
    const packed = readdirSync(root).filter((name) => !isLeftOut(name));
    // `dist` is there only after a build.
    expect(packed.filter((name) => name !== 'dist')).toEqual(['catalog.json', 'host.json', 'package.json']);
    const built = ['main.js', 'main.js.map', 'main.js.LEGAL.txt', 'package.json'].map((name) => `dist/${name}`);
    expect(built.filter((path) => !isLeftOut(path))).toEqual(['dist/main.js', 'dist/package.json']);
  });
});
