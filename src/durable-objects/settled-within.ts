/** Waits for work of the object, but not for ever. */

/** Resolves when `done` has settled or the time is over. `done` must not reject. */
export async function settledWithin(done: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([done, timeout]);
  clearTimeout(timer);
}
