/** For a schema that checks one value while the app starts: compiling code for it takes longer than it saves (11 ms of a start). */
export const READ_ONCE = { jitless: true } as const;
