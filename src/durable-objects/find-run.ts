/** A run by its id, or the refusal that every route answers for an unknown one. */
import { err, ok } from "../domain/shared/result.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { ThreadContext } from "./thread-context.ts";

export function findRun(context: ThreadContext, runId: string): RpcResult<RunRecord> {
  const run = context.runs.find(runId);
  return run === undefined ? err({ code: "not_found", message: `no run '${runId}' on this thread` }) : ok(run);
}
