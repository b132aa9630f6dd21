/** Bounded waiting for the workers tests, where `deputy-server.ts` (Node) cannot be imported. */

/** Looks again and again until `holds`, at most `timeoutMs`; fails with what was last seen. */
export async function eventually<T>(
  look: () => T | Promise<T>,
  holds: (seen: T) => boolean,
  timeoutMs = 10_000,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms; last seen: ${JSON.stringify(seen)}`);
    await new Promise((next) => void setTimeout(next, 20));
  }
}
