/** ISO 8601, or `null` for no time. */
export function iso(ms: number | undefined): string | null {
  return ms === undefined || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15 ? null : new Date(ms).toISOString();
}
