import type { Source } from '../catalog.ts';

/** Letters first seen at or before this (ms since 1970) are past their retention; `undefined`: nothing is ever removed. */
export function expiryCutoff(source: Pick<Source, 'retainFor'>, now: number): number | undefined {
  return source.retainFor === undefined ? undefined : now - source.retainFor;
}
