/**
 * Whether a call may run now, by what its tool declares about repetition (architecture section 5, Re-run tool calls).
 * Owns the answers to a call whose earlier execution may have acted: `once` is told that nobody knows, `ask` asks a
 * person. Invariants: a `once` or `ask` call is noted before it acts; a `safe` one costs nothing; without a readable
 * approval nothing is run a second time.
 */
import { interrupt } from "@langchain/langgraph";
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import type { HookContext } from "../hooks/hook.ts";
import type { KnownStarts, StartingCall } from "../tools/tool-starts.ts";
import type { GraphTool, ToolOutcome } from "../tools/tool.ts";
import type { AgentServices } from "./agent-services.ts";

export type CallStart =
  | { readonly kind: "run"; readonly attempt: number; readonly idempotencyKey?: string }
  /** The tool is not run; this is the call's result. */
  | { readonly kind: "answered"; readonly outcome: ToolOutcome };

/** A person reads them; they are stored with the interrupt and in the run's row. */
export const QUESTION_ARGUMENTS_CHARS_MAX = 4_000;

/** Marks a result that stands for a call of which nobody knows whether it acted. */
const OUTCOME_UNKNOWN_KEY = "deputy_outcome_unknown";

const ANSWERS = ["run_again", "skip"] as const;

export interface CallToStart {
  readonly id: string;
  /** Parsed. */
  readonly args: Record<string, unknown>;
}

export async function startToolCall(
  tool: GraphTool,
  call: CallToStart,
  { context, services }: { context: HookContext; services: AgentServices },
): Promise<CallStart> {
  const attempt = services.toolAttempt(call.id);
  if (tool.recovery === "safe") return { kind: "run", attempt };
  const starting = { ...toStarting(tool, call, context), recovery: tool.recovery };
  const known = services.toolStarts?.look(starting) ?? { earlier: 0, idempotencyKey: starting.toolCallId };
  const refusal = known.earlier === 0 ? undefined : refuseRepeat(tool, starting, known);
  if (refusal !== undefined) return { kind: "answered", outcome: refusal };
  await services.toolStarts?.note(starting);
  return { kind: "run", attempt: Math.max(attempt, known.earlier + 1), idempotencyKey: known.idempotencyKey };
}

function toStarting(tool: GraphTool, { id, args }: CallToStart, { config }: HookContext) {
  const checkpointNs: unknown = config.configurable?.["checkpoint_ns"];
  return {
    toolCallId: id,
    tool: tool.name,
    args,
    checkpointNs: typeof checkpointNs === "string" ? checkpointNs : "",
  };
}

/** `undefined` when a person wants it run again. */
function refuseRepeat(tool: GraphTool, call: StartingCall, { earlier, idempotencyKey }: KnownStarts) {
  if (tool.recovery === "once") return unknownOutcome(tool, `its idempotency key is ${idempotencyKey}`);
  return askPerson(tool, call, earlier) === "run_again"
    ? undefined
    : unknownOutcome(tool, "a person chose not to repeat it");
}

/**
 * One question for each execution whose outcome is unknown: LangGraph keeps the answers of a task in order and gives
 * them again when the task runs again, so an approval of the first repeat is none of the second.
 */
function askPerson(tool: GraphTool, call: StartingCall, earlier: number): (typeof ANSWERS)[number] {
  let answer: unknown;
  for (let execution = 1; execution <= earlier; execution += 1) answer = interrupt(question(tool, call, execution));
  const chosen: unknown =
    answer !== null && typeof answer === "object" ? (answer as { action?: unknown }).action : answer;
  return chosen === "run_again" ? "run_again" : "skip";
}

function question(tool: GraphTool, { toolCallId, args }: StartingCall, execution: number): Record<string, unknown> {
  return {
    type: "tool_outcome_unknown",
    tool: tool.name,
    tool_call_id: toolCallId,
    arguments: UTF16_UNITS.first(JSON.stringify(args), QUESTION_ARGUMENTS_CHARS_MAX),
    execution,
    question: `'${tool.name}' was started and then interrupted; it may have acted. Run it again? ${checkAdvice(tool)}`,
    answers: ANSWERS,
  };
}

function unknownOutcome(tool: GraphTool, why: string): ToolOutcome {
  return {
    status: "error",
    content:
      `Outcome unknown: the call of '${tool.name}' was started and then interrupted. It may have acted. It was not run again; ${why}. ` +
      `${checkAdvice(tool)} Call it again only when you know that it did not act.`,
    additionalKwargs: { [OUTCOME_UNKNOWN_KEY]: true },
  };
}

function checkAdvice({ checkWith }: GraphTool): string {
  return checkWith === undefined ? "Find out first whether it took effect." : `Find out first: ${checkWith}`;
}
