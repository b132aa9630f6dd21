/**
 * Copies a thread from its object to a new one's, page by page: objects do not know of each other. Owns that all pages are
 * of one moment of the source: a source that changed is copied from the beginning, a bounded number of times.
 */
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal, RpcResult } from "../protocol/errors.ts";
import type { CopyCursor, CopyReceipt } from "../protocol/thread-copy.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";
import type { Thread } from "../protocol/threads.ts";
import { refuse } from "./errors.ts";
import type { GatewayDeps } from "./ports.ts";

/** A thread edited through this many copies of it is in use. */
export const COPY_TRIES_MAX = 4;

/** Each is a request to both objects, and a Worker may make 1,000; the object's bound on bytes is met long before. */
export const COPY_PAGES_MAX = 100;

export async function copyThread(
  { threads, newId }: Pick<GatewayDeps, "threads" | "newId">,
  source: ThreadAddress,
  target: ThreadAddress,
): Promise<Result<Thread, ApiRefusal>> {
  const from = threads.stub(source.owner, source.thread_id);
  const to = threads.stub(target.owner, target.thread_id);
  for (let tries = 0; tries < COPY_TRIES_MAX; tries += 1) {
    const receipt = await copyOnce({ copyId: newId(), source, target, from, to });
    if (!receipt.ok) return receipt;
    if (receipt.value.kind === "stored" && receipt.value.thread !== undefined) return ok(receipt.value.thread);
  }
  return refuse("thread_busy", "the thread was changed while it was copied; try again");
}

interface Copying {
  readonly copyId: string;
  readonly source: ThreadAddress;
  readonly target: ThreadAddress;
  readonly from: ReturnType<GatewayDeps["threads"]["stub"]>;
  readonly to: ReturnType<GatewayDeps["threads"]["stub"]>;
}

async function copyOnce({ copyId, source, target, from, to }: Copying): Promise<RpcResult<CopyReceipt>> {
  let cursor: CopyCursor | undefined;
  let stamp: string | undefined;
  for (let index = 0; index < COPY_PAGES_MAX; index += 1) {
    const page = await from.copyPage(source, { ...(cursor && { cursor }), ...(stamp && { stamp }) });
    if (!page.ok) return page;
    if (page.value.kind === "changed") return ok({ kind: "changed" });
    const received = await to.receiveCopy(target, { copy_id: copyId, index, page: page.value });
    if (!received.ok || received.value.kind === "changed" || page.value.next === undefined) return received;
    cursor = page.value.next;
    stamp = page.value.stamp;
  }
  return refuse("too_large", `a thread of at most ${COPY_PAGES_MAX} pages can be copied`, { limit: COPY_PAGES_MAX });
}
