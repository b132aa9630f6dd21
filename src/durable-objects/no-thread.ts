/** The refusal of a thread that does not exist, the same by RPC and by `fetch`. */
import type { ApiRefusal } from "../protocol/errors.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";

export function noThread(address: ThreadAddress): ApiRefusal {
  return { code: "not_found", message: `no thread '${address.thread_id}'` };
}
