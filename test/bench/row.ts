/** One measured figure. `met` is null where there is no goal. */
export interface Row {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly goal: number | null;
  readonly met: boolean | null;
}

/** A figure that should not be above `goal`. */
export function atMost(name: string, value: number, unit: string, goal: number): Row {
  return { name, value: round(value), unit, goal, met: value <= goal };
}

/** A figure that should not be below `goal`. */
export function atLeast(name: string, value: number, unit: string, goal: number): Row {
  return { name, value: round(value), unit, goal, met: value >= goal };
}

/** A figure that is only told. */
export function figure(name: string, value: number, unit: string): Row {
  return { name, value: round(value), unit, goal: null, met: null };
}

/** The middle one of an odd number of values. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
