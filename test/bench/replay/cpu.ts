/** CPU time of this process and of those it has started. Linux tells it in /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** A tick of the kernel's accounts: USER_HZ is 100 on every platform that Node runs on. */
const TICK_MS = 10;

/** ms, by what a process is. */
export interface CpuTimes {
  readonly self: number;
  readonly office: number;
  readonly broker: number;
  /** All others: the storage. */
  readonly storage: number;
}

/** What they have used until now. `office` and `broker` are their process ids. */
export function cpuTimes(office: number | undefined, broker: number | undefined): CpuTimes {
  const times = { self: 0, office: 0, broker: 0, storage: 0 };
  for (const entry of readdirSync('/proc')) {
    const pid = Number(entry);
    const stat = Number.isInteger(pid) ? statOf(pid) : undefined;
    if (stat === undefined || (pid !== process.pid && stat.parent !== process.pid)) continue;
    const who = pid === process.pid ? 'self' : pid === office ? 'office' : pid === broker ? 'broker' : 'storage';
    times[who] += stat.ms;
  }
  return times;
}

/** The time between two looks, each divided by `parts`. */
export function cpuBetween(before: CpuTimes, after: CpuTimes, parts: number): CpuTimes {
  const of = (who: keyof CpuTimes) => (after[who] - before[who]) / parts;
  return { self: of('self'), office: of('office'), broker: of('broker'), storage: of('storage') };
}

function statOf(pid: number): { parent: number; ms: number } | undefined {
  try {
    // The name, in parentheses, may hold anything; behind it come state, parent, and user and system time as 12th and 13th.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return { parent: Number(fields[1]), ms: (Number(fields[11]) + Number(fields[12])) * TICK_MS };
  } catch {
    return undefined; // it has just ended
  }
}
