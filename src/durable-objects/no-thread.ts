/** The refusals of a thread that does not exist, the same by RPC and by `fetch`, or not yet again. */
import type { ApiRefusal } from "../protocol/errors.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";

export function noThread(address: ThreadAddress): ApiRefusal {
  return { code: "not_found", message: `no thread '${address.thread_id}'` };
}

/** Its deletion was tried again just now and is not finished: D1 is out of reach. */
export function beingDeleted(address: ThreadAddress): ApiRefusal {
  return { code: "overloaded", message: `thread '${address.thread_id}' is still being deleted; ask again` };
}
