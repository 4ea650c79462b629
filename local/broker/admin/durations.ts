/** ISO-8601 durations as administration writes them. */

/** What stands for "never", the longest duration .NET can tell. */
export const NEVER = 'P10675199DT2H48M5.4775807S';
const NEVER_MS = 922_337_203_685_477;

/** A duration of `ms` milliseconds. */
export function formatDuration(ms: number): string {
  if (ms >= NEVER_MS) return NEVER;
  const days = Math.floor(ms / 86_400_000);
  const hours = Math.floor(ms / 3_600_000) % 24;
  const minutes = Math.floor(ms / 60_000) % 60;
  const seconds = (ms % 60_000) / 1000;
  const time = `${hours ? `${hours}H` : ''}${minutes ? `${minutes}M` : ''}${seconds ? `${seconds}S` : ''}`;
  if (days === 0 && time === '') return 'PT0S';
  return `P${days ? `${days}D` : ''}${time ? `T${time}` : ''}`;
}
