/**
 * `npm run archive -- list|show|save|send`
 *
 * Reads the archive without the office: what was removed, what a letter said, the encoded message and its body as files, and the
 * message sent to a queue once more, after the looks that a plan takes.
 */

import { randomBytes } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { ContainerClient } from '@azure/storage-blob';
import { type EncodedMessage, encodedMessage } from '../shared/brokers/broker.ts';
import { bodyParts, openEnvelope } from '../shared/brokers/serviceBus/envelope.ts';
import { createServiceBus } from '../shared/brokers/serviceBus/index.ts';
import { readLetter } from '../shared/brokers/serviceBus/readLetter.ts';
import { type Catalog, readCatalog } from '../shared/catalog.ts';
import { newPlanId } from '../shared/letter.ts';
import { ARCHIVE_CONTAINER, archiveFolder } from '../shared/store/archive.ts';
import { storageConnection } from '../shared/store/connection.ts';
import { Misused, runCommand } from './commandLine.ts';
import { textOf } from './drainQueue.ts';
import { loadSettings } from './settings.ts';
import {
  CHOICE_OPTIONS,
  CHOICE_USAGE,
  type Chosen,
  chosenBy,
  isBlocked,
  Judge,
  lookAtWayOut,
  tellWayOut,
  withLetter,
} from './wayOut.ts';

const USAGE = `usage: npm run archive -- list [<source> or <prefix>]
       npm run archive -- show <blob>
       npm run archive -- save <blob> <folder>
       npm run archive -- send <blob> --to <queue> [--yes | --dry-run] [--on-duplicate skip|new-id]
                                      [--message-id keep|new] [--time-to-live keep|drop|<duration>] [--over-limit]
  --to                                   the queue, in the namespace that the letter comes from
${CHOICE_USAGE}
  --catalog                              another catalog than catalog.json
  ends with 0 when it did what was asked, 1 when the letter was left, refused or may be doubled, 2 when it did not begin`;
const DONE = 0;
const FAILED = 1;
const NOT_RUN = 2;
const SEND_TIMEOUT_MS = 30_000;

type Say = (line: string) => void;
type Settings = Readonly<Record<string, string | undefined>>;

/** Runs the command; gives the exit code. `env` is the environment; local.settings.json in `root` is read under it. */
export async function main(
  args: readonly string[],
  env: Settings,
  say: Say,
  root: URL = new URL('../', import.meta.url),
): Promise<number> {
  try {
    return await runCommand(USAGE, args, (own) => run(own, env, say, root), { say, complain: say });
  } catch (error) {
    say(textOf(error));
    return NOT_RUN;
  }
}

async function run(args: string[], env: Settings, say: Say, root: URL): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { to: { type: 'string' }, catalog: { type: 'string' }, ...CHOICE_OPTIONS },
  });
  const settings = { ...env };
  await loadSettings(fileURLToPath(root), {}, settings);
  const file = values.catalog ?? settings.DLO_CATALOG;
  const catalog = () => readCatalog(file === undefined ? new URL('catalog.json', root) : pathToFileURL(file), settings);
  const [command, name, folder, ...more] = positionals;
  const isListing = command === 'list' && folder === undefined;
  const isReading = command === 'show' && name !== undefined && folder === undefined;
  const isSaving = command === 'save' && folder !== undefined && more.length === 0;
  const isSending = command === 'send' && name !== undefined && folder === undefined && values.to !== undefined;
  const { catalog: _, ...forSending } = values;
  if (!(isListing || isReading || isSaving || isSending) || (Object.keys(forSending).length > 0 && !isSending)) {
    throw new Misused('that is no call of this command');
  }
  const container = await openArchive(settings);
  if (isListing) return await list(container, prefixOf(catalog(), name), say);
  const message = await read(container, name as string);
  if (message === undefined) {
    say(`there is no "${name}" in the archive`);
    return FAILED;
  }
  if (isSaving) return await save(name as string, message, folder, say);
  if (isSending)
    return await send(name as string, message, values.to as string, chosenBy(values), catalog(), settings, say);
  for (const line of described(message)) say(line);
  return DONE;
}

async function openArchive(settings: Settings): Promise<ContainerClient> {
  const connection = storageConnection(settings, 'blob');
  return connection.kind === 'connection-string'
    ? new ContainerClient(connection.text, ARCHIVE_CONTAINER)
    : new ContainerClient(`${connection.url}/${ARCHIVE_CONTAINER}`, await connection.credential());
}

/** The folder of a source by its name; anything else is the beginning of a name in the archive. */
function prefixOf({ sources }: Catalog, text = ''): string {
  const source = sources.find(({ name }) => name === text);
  return source === undefined ? text : `${archiveFolder(source.key)}/`;
}

async function list(container: ContainerClient, prefix: string, say: Say): Promise<number> {
  let count = 0;
  if (await container.exists()) {
    for await (const { name, properties, metadata } of container.listBlobsFlat({ prefix, includeMetadata: true })) {
      const { contentLength: bytes = 0, lastModified } = properties;
      say(`${name}  ${bytes} bytes, ${metadata?.fate ?? 'written'} ${lastModified.toISOString()}`);
      count++;
    }
  }
  say(`${count} letters`);
  return DONE;
}

async function read(container: ContainerClient, name: string): Promise<EncodedMessage | undefined> {
  const blob = container.getBlobClient(name);
  return (await blob.exists()) ? encodedMessage(await blob.downloadToBuffer()) : undefined;
}

/** What the message says of itself, and its body: as text when it is valid UTF-8, else as base64. */
function* described(message: Buffer): Generator<string> {
  const { properties, body, ...letter } = readLetter(message);
  yield `number          ${letter.sequenceNumber}`;
  yield `enqueued        ${new Date(letter.enqueuedAt).toISOString()}`;
  for (const field of [
    'messageId',
    'correlationId',
    'sessionId',
    'subject',
    'contentType',
    'reason',
    'description',
  ] as const) {
    if (letter[field] !== undefined) yield `${field.padEnd(15)} ${JSON.stringify(letter[field])}`;
  }
  for (const { name, type, value } of properties) yield `property        ${name} (${type}) = ${JSON.stringify(value)}`;
  yield `body            ${body.kind}, ${body.bytes} bytes`;
  for (const part of bodyParts(openEnvelope(message))) yield shown(part);
}

function shown(part: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(part);
  } catch {
    return part.toString('base64');
  }
}

async function save(name: string, message: Buffer, folder: string, say: Say): Promise<number> {
  await mkdir(folder, { recursive: true });
  const file = join(folder, basename(name));
  const body = Buffer.concat(bodyParts(openEnvelope(message)));
  // Only for who asked: it may be anything that a sender wrote.
  await writeFile(file, message, { mode: 0o600 });
  await writeFile(`${file}.body`, body, { mode: 0o600 });
  say(`${file}: the encoded message, ${message.length} bytes`);
  say(`${file}.body: its body, ${body.length} bytes`);
  return DONE;
}

/**
 * Tells what stands against sending the message, and when it is told to and nothing does, sends it as a replay would: what a replay
 * resets is reset, and it counts as one. The blob stays.
 */
async function send(
  name: string,
  message: EncodedMessage,
  to: string,
  chosen: Chosen,
  catalog: Catalog,
  settings: Settings,
  say: Say,
): Promise<number> {
  const source = catalog.sources.find(({ key }) => name.startsWith(`${archiveFolder(key)}/`));
  if (source === undefined) {
    say(`no source in the catalog has the letters of ${name.split('/')[0]}: put it back to send this one`);
    return NOT_RUN;
  }
  const clock = () => Date.now();
  const broker = createServiceBus({ settings, clock, log: say });
  try {
    const way = await lookAtWayOut(broker, catalog, source, to, chosen);
    const letter = readLetter(message);
    const planId = newPlanId(clock(), randomBytes(5));
    const verdict = new Judge(way, planId).verdict(letter, clock());
    const findings = withLetter(way.findings, way, letter, verdict);
    for (const line of tellWayOut(way, findings)) say(line);
    if (isBlocked(findings)) {
      say('Nothing was sent: what is told as "block" has to be seen to first.');
      return NOT_RUN;
    }
    if ('stays' in verdict) {
      say(`The letter is not sent: ${verdict.stays}.`);
      return FAILED;
    }
    if (!chosen.isTold) {
      say('Nothing was changed. With --yes the letter is sent.');
      return DONE;
    }
    const change = {
      replayCount: letter.replay.count + 1,
      replayedAt: clock(),
      planId,
      replayOf: letter.sequenceNumber,
      bypass: false,
      ...verdict.change,
    };
    const target = await broker.openTarget(source, to);
    const outcome = await target.send([broker.reset(message, change)], SEND_TIMEOUT_MS);
    await target.close();
    if (outcome.kind === 'accepted') {
      say(`sent to "${to}"; it carries x-replay-id ${planId}. The copy stays in the archive.`);
      return DONE;
    }
    const isUnknown = outcome.kind === 'unknown';
    const why = isUnknown ? outcome.description : `${outcome.code}: ${outcome.description}`;
    say(isUnknown ? `nobody knows whether "${to}" has it: ${why}` : `refused by "${to}": ${why}`);
    return FAILED;
  } finally {
    await broker.close();
  }
}

if (import.meta.main) {
  process.exitCode = await main(process.argv.slice(2), process.env, (line) => process.stdout.write(`${line}\n`));
}
