/**
 * Names thread objects. Invariant (P7): the name carries the owner, so an id of another owner leads to another, empty
 * object, and `%2F` in an owner cannot imitate the separator.
 */
import type { ThreadRpc } from "../protocol/thread-rpc.ts";

/** A thread object from outside: RPC for values, `fetch` for streams and long waits. */
export type ThreadStub = ThreadRpc & { fetch(request: Request): Promise<Response> };

export function threadObjectName(owner: string, threadId: string): string {
  return `${encodeURIComponent(owner)}/${threadId}`;
}

export class DurableThreadDirectory {
  readonly #namespace: DurableObjectNamespace;

  constructor(namespace: DurableObjectNamespace) {
    this.#namespace = namespace;
  }

  /** Opens no connection: the object wakes at the first call. A stub that saw its object reset must be asked for anew. */
  stub(owner: string, threadId: string): ThreadStub {
    const id = this.#namespace.idFromName(threadObjectName(owner, threadId));
    return this.#namespace.get(id) as unknown as ThreadStub;
  }
}
