/**
 * Asks a person before a named tool runs. Owns the question and what its answers mean, in the words of LangChain's
 * human-in-the-loop middleware, one question a call. Asked in the tools node and before the tool: what was approved is
 * what runs, and a run that goes on after a crash does not ask again.
 *
 * Invariant: without a readable decision that is allowed for the tool it does not run.
 */
import { ToolMessage } from "@langchain/core/messages";
import { interrupt } from "@langchain/langgraph";
import { toDelegationKwargs } from "../../domain/delegation/delegation-result.ts";
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import type { ApprovalDecision, ToolApproval } from "../tools/approval.ts";
import { withLedgerEntry } from "./delegation-ledger.ts";
import type { AgentHook, ToolCallRequest, ToolCallResult } from "./hook.ts";

/** A person's reason, shown to the model. */
export const REJECTION_CHARS_MAX = 4_000;
/** Edited arguments, shown to the model with the call's result. */
export const EDITED_ARGUMENTS_CHARS_MAX = 4_000;
/** Questions a call, when answers cannot be read; after them it counts as rejected. */
export const APPROVAL_QUESTIONS_MAX = 5;

export interface ToolApprovalParts {
  readonly approvals: Readonly<Record<string, ToolApproval>>;
  readonly newId: () => string;
}

type Decided =
  | { readonly kind: "approve" }
  | { readonly kind: "edit"; readonly args: Record<string, unknown> }
  | { readonly kind: "reject"; readonly message?: string }
  | { readonly kind: "unreadable"; readonly why: string };

export function toolApproval({ approvals, newId }: ToolApprovalParts): AgentHook {
  return {
    name: "tool_approval",
    async wrapToolCall(request, next) {
      const { call } = request;
      const approval = Object.hasOwn(approvals, call.name) ? approvals[call.name] : undefined;
      if (approval === undefined) return next(request);
      const decided = askPerson(request, approval);
      if (decided.kind === "approve") return next(request);
      if (decided.kind === "reject") return rejectedResult(request, decided.message, newId());
      return withEditNote(await next({ ...request, call: { ...call, args: decided.args } }), decided.args);
    },
  };
}

/** LangGraph gives a task its earlier answers again, in order: an answer that could not be read stays the first one's. */
function askPerson({ call }: ToolCallRequest, approval: ToolApproval): Exclude<Decided, { kind: "unreadable" }> {
  let problem: string | undefined;
  for (let asked = 0; asked < APPROVAL_QUESTIONS_MAX; asked += 1) {
    const decided = readDecision(interrupt(question(call, approval, problem)), call.name, approval.decisions);
    if (decided.kind !== "unreadable") return decided;
    problem = decided.why;
  }
  return { kind: "reject", message: `no readable decision was made: ${problem}` };
}

function question({ id, name, args }: ToolCallRequest["call"], approval: ToolApproval, problem: string | undefined) {
  const description = approval.description ?? `The tool '${name}' needs your approval before it runs.`;
  return {
    actionRequests: [{ name, args, description: problem === undefined ? description : `${description} (${problem})` }],
    reviewConfigs: [{ actionName: name, allowedDecisions: approval.decisions }],
    tool_call_id: id,
  };
}

/** `{ decisions: [one] }`, or the one alone; an edit in JavaScript's or in Python's spelling. */
function readDecision(answer: unknown, tool: string, allowed: readonly ApprovalDecision[]): Decided {
  const decisions = isRecord(answer) ? answer["decisions"] : undefined;
  if (Array.isArray(decisions) && decisions.length !== 1) return unreadable("give one decision for the one action");
  const decision: unknown = Array.isArray(decisions) ? decisions[0] : answer;
  const type = isRecord(decision) ? decision["type"] : undefined;
  const chosen = allowed.find((each) => each === type);
  if (chosen === undefined || !isRecord(decision)) return unreadable(`allowed decisions: ${allowed.join(", ")}`);
  if (chosen === "approve") return { kind: "approve" };
  if (chosen === "edit") return readEdit(decision["editedAction"] ?? decision["edited_action"], tool);
  const { message } = decision;
  return { kind: "reject", ...(typeof message === "string" && message.trim() !== "" ? { message } : {}) };
}

function readEdit(action: unknown, tool: string): Decided {
  if (!isRecord(action) || !isRecord(action["args"])) return unreadable("an edit needs editedAction { name, args }");
  // Another tool was neither asked for by the model nor judged for this principal.
  if (action["name"] !== undefined && action["name"] !== tool)
    return unreadable("an edit changes arguments, not the tool");
  return { kind: "edit", args: action["args"] };
}

function unreadable(why: string): Decided {
  return { kind: "unreadable", why };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A rejected `task` is a delegation that failed, and the ledger learns of it in the same commit. */
function rejectedResult({ call, state }: ToolCallRequest, message: string | undefined, id: string): ToolCallResult {
  const why = message === undefined ? "" : `: ${UTF16_UNITS.first(message, REJECTION_CHARS_MAX)}`;
  const error = `a person rejected this call of '${call.name}'${why}`;
  const isDelegation = call.name === "task";
  const result = new ToolMessage({
    id,
    name: call.name,
    tool_call_id: call.id,
    status: "error",
    content: `Error: ${error}\nIt was not run. Do not call it again with the same arguments.`,
    additional_kwargs: isDelegation ? toDelegationKwargs({ status: "failed", error }) : {},
  });
  return isDelegation ? withLedgerEntry({ message: result }, state()) : { message: result };
}

/** The model's answer keeps what it asked for; with what the tool really ran has to be said. */
function withEditNote({ message, ...result }: ToolCallResult, args: Record<string, unknown>): ToolCallResult {
  const shown = UTF16_UNITS.first(JSON.stringify(args), EDITED_ARGUMENTS_CHARS_MAX);
  const note = `A person changed the arguments of this call before it ran: ${shown}\n\n`;
  const noted = new ToolMessage({
    ...(message.id === undefined ? {} : { id: message.id }),
    ...(message.name === undefined ? {} : { name: message.name }),
    ...(message.status === undefined ? {} : { status: message.status }),
    tool_call_id: message.tool_call_id,
    content:
      typeof message.content === "string" ? note + message.content : [{ type: "text", text: note }, ...message.content],
    additional_kwargs: message.additional_kwargs,
  });
  return { ...result, message: noted };
}
