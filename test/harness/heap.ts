/** The processes that `start` starts get a heap of that many megabytes, and end when they need more. */
export async function withHeap<Result>(heap: number, start: () => Promise<Result>): Promise<Result> {
  const before = process.env.NODE_OPTIONS;
  process.env.NODE_OPTIONS = `${before ?? ''} --max-old-space-size=${heap}`;
  try {
    return await start();
  } finally {
    if (before === undefined) delete process.env.NODE_OPTIONS;
    else process.env.NODE_OPTIONS = before;
  }
}
