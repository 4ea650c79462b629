import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

interface Import {
  readonly file: string;
  /** A file of the project, or the name of a package. */
  readonly of: string;
}

/** What the sources below a folder import, as text: a type that is imported ties two folders, too. */
function importsBelow(folder: string): Import[] {
  const files = execFileSync(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', `${folder}/**/*.ts`, `${folder}/*.ts`],
    {
      cwd: ROOT,
      encoding: 'utf8',
    },
  );
  return [...new Set(files.split('\n'))]
    .filter((file) => file !== '')
    .flatMap((file) => {
      const text = readFileSync(join(ROOT, file), 'utf8');
      const names = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'([^']+)'/g)].map(([, name = '']) => name);
      return names.map((name) => ({
        file,
        of: name.startsWith('.') ? posix.normalize(posix.join(dirname(file), name)) : name,
      }));
    });
}

/** The folder that a file of shared/ belongs to; each broker is one of its own. `undefined` for what lies in shared/ itself. */
function roomOf(file: string): string | undefined {
  const [top, room, kind, rest] = file.split('/');
  if (top !== 'shared' || kind === undefined) return undefined;
  return room === 'brokers' && rest !== undefined ? `brokers/${kind}` : room;
}

const SHARED = importsBelow('shared');

/** Folders that import each other, by whatever way round; each with the way. */
function cycles(): string[] {
  const ties = new Map<string, Set<string>>();
  for (const { file, of } of SHARED) {
    const [from, to] = [roomOf(file), roomOf(of)];
    if (from === undefined || to === undefined || from === to) continue;
    ties.set(from, (ties.get(from) ?? new Set()).add(to));
  }
  const found: string[] = [];
  const walk = (room: string, way: readonly string[]): void => {
    if (way.includes(room)) {
      if (room === way[0]) found.push([...way, room].join(' -> '));
      return;
    }
    for (const next of ties.get(room) ?? []) walk(next, [...way, room]);
  };
  for (const room of ties.keys()) walk(room, []);
  return found;
}

describe('the house', () => {
  test('has no two folders that import each other', () => {
    expect(SHARED.length).toBeGreaterThan(500);
    expect(cycles()).toEqual([]);
  });

  test('records and words import nothing that acts', () => {
    const above = SHARED.filter(({ file, of }) => {
      const room = roomOf(of);
      return roomOf(file) === 'records' && room !== undefined && !['records', 'classify'].includes(room);
    });
    expect(above).toEqual([]);
  });

  test('imports nothing that stands in for Azure, that is for people, or that tests', () => {
    const outside = [...SHARED, ...importsBelow('functions')].filter(({ of }) =>
      /^(local|test|cli|functions)\//.test(of),
    );
    expect(outside.filter(({ file }) => file.startsWith('shared/'))).toEqual([]);
    expect(outside.filter(({ of }) => !of.startsWith('functions/'))).toEqual([]);
    expect(importsBelow('cli').filter(({ of }) => /^(local|test|functions)\//.test(of))).toEqual([]);
  });

  test('knows the libraries of a broker only in the folder of that broker, those of storage only in the store', () => {
    const users = (names: RegExp) => [
      ...new Set(SHARED.filter(({ of }) => names.test(of)).map(({ file }) => roomOf(file) ?? file)),
    ];
    expect(users(/^(@azure\/(service-bus|core-amqp)|rhea|rhea-promise)(\/|$)/)).toEqual(['brokers/serviceBus']);
    expect(users(/^amqplib(\/|$)/)).toEqual(['brokers/rabbitmq']);
    expect(users(/^@azure\/(data-tables|storage-)/)).toEqual(['store']);
  });
});
