/** The office's store: Azure Tables, one queue, one blob container. Only this folder imports the storage SDKs. */
import { Archive } from './archive.ts';
import { AuditStore } from './audit.ts';
import { storageConnection } from './connection.ts';
import { GroupStore } from './groups.ts';
import { LetterStore } from './letters.ts';
import { PlanStore } from './plans.ts';
import { RunQueue } from './runs.ts';
import { SendStore } from './sends.ts';
import { SnapshotStore } from './snapshots.ts';
import { SourceStore } from './sources.ts';
import { TriageStore } from './triage.ts';

export interface Store {
  readonly letters: LetterStore;
  readonly plans: PlanStore;
  readonly sends: SendStore;
  readonly sources: SourceStore;
  readonly snapshots: SnapshotStore;
  readonly groups: GroupStore;
  readonly triage: TriageStore;
  readonly audit: AuditStore;
  readonly runs: RunQueue;
  readonly archive: Archive;
}

/**
 * Opens the store that the app settings name (`AzureWebJobsStorage`). Connects on first use. `newId` gives a fresh
 * unique text, fit for keys. Throws `DLO_SETTINGS_INVALID` when the settings name none.
 */
export function openStore(
  settings: Readonly<Record<string, string | undefined>>,
  office: string,
  newId: () => string,
): Store {
  const tables = storageConnection(settings, 'table');
  return {
    letters: new LetterStore(tables, office),
    plans: new PlanStore(tables),
    sends: new SendStore(tables),
    sources: new SourceStore(tables, newId),
    snapshots: new SnapshotStore(tables),
    groups: new GroupStore(tables, newId),
    triage: new TriageStore(tables),
    audit: new AuditStore(tables, newId),
    runs: new RunQueue(storageConnection(settings, 'queue')),
    archive: new Archive(() => storageConnection(settings, 'blob'), office),
  };
}
