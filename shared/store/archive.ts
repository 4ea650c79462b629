/**
 * The archive: a copy of each letter that was removed from a source with `archive`, in a blob container. One blob a letter: so one
 * can be found by its number, given back, or erased without the others. The blob is the encoded message and nothing else.
 */
import type { ReadLetter } from '../brokers/broker.ts';
import { errorText, isMistake } from '../errors.ts';
import type { Letter, SourceKey } from '../letter.ts';
import { inParallel } from '../parallel.ts';
import type { BlobContainer } from './blobClient.ts';
import type { StorageConnection } from './connection.ts';
import { numberKey } from './rows.ts';

/** Name of the container; the templates in infra/ make it, with the rule by which its blobs end. */
export const ARCHIVE_CONTAINER = 'dead-letter-archive';

/** Copies written at the same time. So many failures, and the others are not tried: the store is out. */
const AT_ONCE = 16;

/** What becomes of the letter once its copy is kept. */
export type ArchivedFate = 'expired' | 'discarded';

/** What became of an attempt to archive letters. */
export interface Archived {
  /** For each letter, in order, whether its copy is in the archive now. */
  readonly kept: readonly boolean[];
  /** Why the first of the others is not, for people; `undefined` when all are kept. */
  readonly why: string | undefined;
}

/** Folder of a source: its key. `~` occurs in no name of an entity, and a path in one piece can hold no `..`. */
export function archiveFolder(source: SourceKey): string {
  return source.replaceAll('|', '~');
}

/**
 * Name of a letter's blob: `<namespace>~<entity>/<day>/<number>-<time>.amqp`, day and time (UTC) when it was enqueued. The same
 * for every attempt, so that a second one writes the same blob; and another one for a message of a recreated entity, whose numbers
 * begin again. Nothing in it is a sender's word.
 */
export function archiveName(
  source: SourceKey,
  { sequenceNumber, enqueuedAt }: Pick<Letter, 'sequenceNumber' | 'enqueuedAt'>,
): string {
  const date = new Date(enqueuedAt);
  // A time that no calendar has must not keep the letter from being archived.
  const [day, time] = Number.isNaN(date.getTime()) ? ['undated', `${enqueuedAt}`] : date.toISOString().split('T');
  return `${archiveFolder(source)}/${day}/${numberKey(sequenceNumber)}-${time?.replace(/\D/g, '')}.amqp`;
}

/** The archive's container; made when it is first written to and missing. */
export class Archive {
  readonly #open: () => Promise<BlobContainer>;
  readonly #office: string;
  #container: Promise<BlobContainer> | undefined;

  /** `connection` is asked for when it is first needed: an office without an archive need not have one. */
  constructor(connection: () => StorageConnection, office: string) {
    this.#office = office;
    this.#open = async () => (await import('./blobClient.ts')).openContainer(connection(), ARCHIVE_CONTAINER);
  }

  /**
   * Writes a copy of each letter, exactly as it is encoded. Never throws: a letter whose copy is not kept must not be removed,
   * and the others may.
   */
  async keep(
    source: { readonly key: SourceKey; readonly name: string },
    fate: ArchivedFate,
    letters: readonly ReadLetter[],
  ): Promise<Archived> {
    let why: string | undefined;
    let failures = 0;
    const metadata = { office: this.#office, source: source.name, fate };
    const kept = await inParallel(
      letters,
      async ({ letter, message }) => {
        if (failures >= AT_ONCE) return false;
        try {
          await this.#write(archiveName(source.key, letter), message, metadata);
          return true;
        } catch (error) {
          if (isMistake(error)) throw error;
          failures++;
          why ??= `the container "${ARCHIVE_CONTAINER}" failed: ${errorText(error, 300)}`;
          return false;
        }
      },
      AT_ONCE,
    );
    return { kept, why };
  }

  async #write(name: string, message: Buffer, metadata: Readonly<Record<string, string>>): Promise<void> {
    const container = await this.#ready();
    try {
      await container.put(name, message, metadata);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ContainerNotFound')) throw error;
      await container.create();
      await container.put(name, message, metadata);
    }
  }

  #ready(): Promise<BlobContainer> {
    this.#container ??= this.#open().catch((error: unknown) => {
      this.#container = undefined; // the next caller tries again
      throw error;
    });
    return this.#container;
  }
}
