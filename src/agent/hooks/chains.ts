/**
 * The ordered hook chains of lead and child (contracts, "Delegation"). Order is behaviour: `wrap*` nest with the first
 * outermost, `after*` run in reverse, so the limit cuts calls before the ledger records them.
 */
import type { DelegationLimits } from "../../domain/delegation/delegation-limit.ts";
import { type RetrySettings, toRetryPolicy } from "../../domain/model-errors/retry-policy.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import type { ToolAuthorization } from "../tools/authorization.ts";
import { authorizationHook } from "./authorization.ts";
import { agentInstructions } from "./agent-instructions.ts";
import { delegationLedger } from "./delegation-ledger.ts";
import type { CircuitBreakers } from "../models/circuit-breakers.ts";
import type { AgentHook } from "./hook.ts";
import { modelErrors } from "./model-errors.ts";
import { requestRepair } from "./request-repair.ts";
import { subagentLimit } from "./subagent-limit.ts";
import { systemCoalescer } from "./system-coalescer.ts";
import type { ToolApproval } from "../tools/approval.ts";
import { toolApproval } from "./tool-approval.ts";
import { toolErrorsHook } from "./tool-errors.ts";

export interface ChainParts {
  readonly services: AgentServices;
  /** In [0, 1): the jitter of retries. */
  readonly random: () => number;
  readonly llmCall: RetrySettings;
  readonly circuits: CircuitBreakers;
  readonly authorization: ToolAuthorization;
  /** Tools that a person decides about, by name; absent for none. */
  readonly approvals?: Readonly<Record<string, ToolApproval>>;
}

export function childHooks(parts: ChainParts): readonly AgentHook[] {
  return [...commonHooks(parts, "child"), systemCoalescer()];
}

/** What a lead that may delegate is held to, and told of in its requests. */
export interface LeadDelegation {
  readonly limits: DelegationLimits;
  /** Its managed subagents, rendered as data; "" for none. */
  readonly catalogue: string;
}

/** Without delegation the lead's ledger still shows what earlier runs did. `instructions`: a custom agent's, from the API. */
export function leadHooks(
  parts: ChainParts,
  delegation: LeadDelegation | undefined,
  instructions: readonly string[] = [],
): readonly AgentHook[] {
  const { services } = parts;
  return [
    ...commonHooks(parts, "lead"),
    delegationLedger(services, delegation?.catalogue),
    // Behind the ledger's hook, so before its message in the request: it stays the same for the whole run.
    ...(instructions.length === 0 ? [] : [agentInstructions(instructions)]),
    systemCoalescer(),
    ...(delegation === undefined ? [] : [subagentLimit(delegation.limits, () => warnUntagged(services))]),
  ];
}

/** Then every delegation of the thread counts toward the cap, which a caller may not expect. */
function warnUntagged({ report = warnOnConsole }: AgentServices): void {
  report("a run without a run_id: all delegations of its thread count toward its cap", { hook: "subagent_limit" });
}

/** For graphs that nobody gave a log. */
function warnOnConsole(what: string, details: Readonly<Record<string, unknown>>): void {
  // oxlint-disable-next-line no-console -- a process without a composition root has no other log
  console.warn(what, details);
}

function commonHooks(parts: ChainParts, agent: "lead" | "child"): readonly AgentHook[] {
  const { services, random, circuits, llmCall, authorization, approvals = {} } = parts;
  const toolErrors = toolErrorsHook({
    newId: () => services.newId(),
    discard: (toolCallId) => services.workspace.discard(toolCallId),
  });
  const errors = modelErrors({
    policy: toRetryPolicy(llmCall),
    circuits,
    random,
    newId: () => services.newId(),
    tellsRetries: agent === "lead",
  });
  const newId = () => services.newId();
  // Within authorization: nobody is asked about what may not run.
  const approval = Object.keys(approvals).length === 0 ? [] : [toolApproval({ approvals, newId })];
  return [toolErrors, requestRepair(), errors, authorizationHook({ authorization, newId }), ...approval];
}
