/** SQLite of a ThreadObject that no other test has seen, for the time of one callback. */
import { env, runInDurableObject } from "cloudflare:test";

export function inFreshObject<T>(use: (storage: DurableObjectStorage) => T | Promise<T>): Promise<T> {
  const stub = env.THREADS.get(env.THREADS.idFromName(crypto.randomUUID()));
  return runInDurableObject(stub, (_instance, { storage }) => use(storage));
}
