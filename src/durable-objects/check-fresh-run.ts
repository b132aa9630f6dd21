/**
 * Whether a create could start on a thread of its own, asked before any of a batch of creates starts. Reads and stores
 * nothing: a fresh thread has no state.
 */
import { err, ok } from "../domain/shared/result.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import { NO_WEBHOOKS } from "../platform/webhook/webhook-sender.ts";
import type { RunCommand } from "../protocol/thread-rpc.ts";
import { refuseSize } from "./run-acceptance.ts";
import { prepareLeadInput } from "./run-input.ts";
import { checkpointOf } from "./run-start.ts";
import { refuseBreakpoints } from "./run-start-breakpoints.ts";
import { refuseCheckpointForm } from "./run-start-prepare.ts";
import type { ThreadObjectDeps } from "./thread-context.ts";

export async function checkFreshRun(
  deps: ThreadObjectDeps,
  threadId: string,
  command: RunCommand,
): Promise<RpcResult<null>> {
  const { catalog, newId, webhooks = NO_WEBHOOKS } = deps;
  const { input, webhook } = command.body;
  if (!catalog.has(command.graph_id)) return err({ code: "not_found", message: `no graph '${command.graph_id}'` });
  const deliverable = webhook === null || webhook === undefined ? ok(null) : webhooks.check(webhook);
  if (!deliverable.ok) return deliverable;
  const form = refuseCheckpointForm(threadId, command.body);
  if (form !== undefined) return err(form);
  const at = checkpointOf(command.body);
  if (at !== undefined) return err({ code: "not_found", message: `no checkpoint '${at}' on a new thread` });
  const nodes = await refuseBreakpoints(catalog, command);
  if (nodes !== undefined) return err(nodes);
  if (command.body.command !== null && command.body.command !== undefined) {
    const message = "command: a new thread has no state to apply it to";
    return err({ code: "invalid_request", message, details: { path: ["command"] } });
  }
  if (input === null || input === undefined) {
    const message = "input: required on a thread without state";
    return err({ code: "invalid_request", message, details: { path: ["input"] } });
  }
  const tooLarge = refuseSize(command);
  if (tooLarge !== undefined) return err(tooLarge);
  if (command.graph_id !== LEAD_GRAPH_ID) return ok(null);
  const prepared = prepareLeadInput([], input, () => newId());
  return prepared.ok ? ok(null) : prepared;
}
