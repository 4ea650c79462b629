/** Requests under way at the same time on one link: enough to hide the round trip, few enough to stay a guest. */
const AT_ONCE = 16;

/** Runs `work` for every item, at most `atOnce` at the same time, and gives the results in the order of `items`. */
export async function inParallel<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
  atOnce: number = AT_ONCE,
): Promise<R[]> {
  const results = new Array<R>(items.length);
  const queue = items.entries();
  const worker = async () => {
    for (const [index, item] of queue) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  return results;
}
