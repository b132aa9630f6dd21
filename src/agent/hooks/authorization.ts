/**
 * Asks the tool policy again before each call and answers a denied one (R123). Outside of the ledger and of the tool, so
 * that a denied call has no effect: no slot, no file, no child. A denied `task` is a delegation that failed, and the
 * ledger learns of it in the same commit.
 */
import { ToolMessage } from "@langchain/core/messages";
import { toDelegationKwargs } from "../../domain/delegation/delegation-result.ts";
import { STRUCTURED_OUTPUT_TOOL_NAME } from "../subagents/structured-output.ts";
import type { ToolAuthorization } from "../tools/authorization.ts";
import { withLedgerEntry } from "./delegation-ledger.ts";
import type { AgentHook, ToolCallRequest, ToolCallResult } from "./hook.ts";

export interface AuthorizationHookParts {
  readonly authorization: ToolAuthorization;
  readonly newId: () => string;
}

export function authorizationHook({ authorization, newId }: AuthorizationHookParts): AgentHook {
  return {
    name: "authorization",
    async wrapToolCall(request, next, { config }) {
      // How a child reports its answer is no capability: no list names it, and a child without it could not end.
      if (request.call.name === STRUCTURED_OUTPUT_TOOL_NAME) return next(request);
      const decision = await authorization.decide(request.call.name);
      // The run may have ended while the policy was asked: then this is no denial.
      config.signal?.throwIfAborted();
      return decision.kind === "allow" ? next(request) : deniedResult(request, decision.reason, newId());
    },
  };
}

function deniedResult({ call, state }: ToolCallRequest, reason: string, id: string): ToolCallResult {
  const error = `you may not use the tool '${call.name}': ${reason}`;
  const isDelegation = call.name === "task";
  const message = new ToolMessage({
    id,
    name: call.name,
    tool_call_id: call.id,
    status: "error",
    content: `Error: ${error}\nGo on with the tools you have, or say what could not be done.`,
    additional_kwargs: isDelegation ? toDelegationKwargs({ status: "failed", error }) : {},
  });
  return isDelegation ? withLedgerEntry({ message }, state()) : { message };
}
