/**
 * Routes that exist only while `TEST_ROUTES=1` is set: what test suites of LangGraph's clients call between their cases.
 * They clear the caller's own things (P7) and are not in `OPERATIONS`: a deployment has no such route.
 */
import { z } from "zod";
import { STATELESS_MARK } from "../../protocol/threads.ts";
import { json } from "../answers.ts";
import { JSON_BODY_BYTES_MAX } from "../bounds.ts";
import { operation } from "../operation.ts";
import { deleteThreadsOf } from "../thread-deletion.ts";
import { refuseOption } from "../unsupported.ts";

const flag = z.boolean().default(false);
const truncateBodySchema = z.strictObject({
  runs: flag,
  threads: flag,
  assistants: flag,
  checkpointer: flag,
  /** Nothing is stored there. */
  store: flag,
});

const truncate = operation({
  method: "post",
  path: "/internal/truncate",
  id: "truncate",
  tag: "system",
  summary: "Clears the caller's own things of the kinds that are named. While TEST_ROUTES=1 only.",
  body: { schema: truncateBodySchema, bytesMax: JSON_BODY_BYTES_MAX },
  responses: { 200: { description: "Cleared.", schema: z.object({ ok: z.literal(true) }) } },
  errors: ["unsupported_option", "overloaded"],
  handle: async ({ body, principal, deps }) => {
    // They go with their thread, not without it.
    for (const part of ["runs", "checkpointer"] as const) {
      if (body[part] && !body.threads) return refuseOption(part, "true without threads");
    }
    if (body.threads) {
      for (const metadata of [{}, { [STATELESS_MARK]: true }]) {
        const deleted = await deleteThreadsOf(deps, principal, metadata);
        if (!deleted.ok) return deleted;
      }
    }
    if (body.assistants) {
      const own = await deps.assistants.list(principal.owner);
      for (const { assistantId } of own) await deps.assistants.delete(principal.owner, assistantId);
    }
    return json({ ok: true });
  },
});

export const testOperations = [truncate] as const;
