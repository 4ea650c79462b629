/** What leaves this repository: the settings that are asked for, the sample's entities, what is told of the office. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../local/broker/index.ts';
import { parseCatalog } from '../../shared/catalog.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const settings = (JSON.parse(read('local.settings.sample.json')) as { Values: Record<string, string> }).Values;

describe('local.settings.sample.json', () => {
  test('has every setting of the office', () => {
    const files = ['shared/opening.ts', 'shared/brokers/serviceBus/factSettings.ts', 'shared/telemetry/open.ts'];
    const asked = new Set(files.flatMap((file) => read(file).match(/DLO_\w+(?=:)|APPLICATIONINSIGHTS_\w+/g) ?? []));
    expect(asked.size).toBeGreaterThan(8);
    expect(Object.keys(settings)).toEqual(expect.arrayContaining([...asked]));
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

test('the host does not sample the events that alerts wait for', () => {
  const host = JSON.parse(read('host.json')) as {
    logging: { applicationInsights: { samplingSettings: { excludedTypes: string } } };
  };
  expect(host.logging.applicationInsights.samplingSettings.excludedTypes.split(';')).toContain('Event');
});
