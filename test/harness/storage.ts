import { inject } from 'vitest';

/** The connection string of a storage account (blobs, queues, tables) that no other test has. It starts empty. */
export async function takeStorage(): Promise<string> {
  const answer = await fetch(inject('storageDesk'));
  const text = await answer.text();
  if (!answer.ok) throw new Error(text);
  return text;
}
