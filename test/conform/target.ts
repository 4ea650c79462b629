/** Where beliefs are tested: the local broker, Microsoft's emulator, or a namespace in Azure. */
import type { ServiceBusAdministrationClient } from '@azure/service-bus';
import type { Belief } from './belief.ts';
import type { ShapeName } from './shapes.ts';

/** The columns of the conformance page. */
export const COLUMNS = {
  local: 'Local broker',
  emulator: "Microsoft's emulator",
  standard: 'Azure Standard',
  premium: 'Azure Premium',
} as const;

/** One column of the page. */
export type Column = keyof typeof COLUMNS;

/** A broker under test. */
export interface Target {
  readonly column: Column;
  /** What is shown of it: `Azure Standard, westeurope`. */
  readonly name: string;
  /** How many beliefs may be tested at the same time. */
  readonly atOnce: number;
  /** Gives empty entities for a belief. Throws `NotCheckable` when it has none of a kind that is needed. */
  prepare(belief: Belief): Promise<Place>;
  close(): Promise<void>;
}

/** What one belief is tested on. */
export interface Place {
  readonly connectionString: string;
  /** What the queue or topic of this shape is called here. */
  nameOf(shape: ShapeName): string;
  /** Lets time pass: really, or by moving the broker's clock. Milliseconds. */
  pass(ms: number): Promise<void>;
  /** How long one waits before believing that nothing comes, milliseconds. */
  readonly patienceMs: number;
  /** How long something the broker does in its own time may take, milliseconds. */
  readonly slownessMs: number;
  /** Present where the administration client may be used. */
  readonly administration?: ServiceBusAdministrationClient;
  /** A connection string with a key that may only listen, where there is one. */
  readonly listenOnly?: string;
  /** Makes the broker refuse the next send to this entity as throttled, where that can be done. */
  throttle?(path: string): void;
  dispose(): Promise<void>;
}
