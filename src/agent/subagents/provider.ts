/**
 * The seam: what a provider of children is and what a child run is (subagent-seam 1.2, 1.5 to 1.7).
 * A provider establishes one child per `start` and owes clean-up until then; afterwards the run, and the duty to dispose
 * it, are the caller's. A child's failure is data (`stopReason`); `result` rejects only for LangGraph's own signals,
 * which must reach the parent, and for faults that have no stop reason.
 */
import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { AcpEndpoint } from "../../domain/delegation/acp-endpoint.ts";
import type { AgentServices } from "../graph/agent-services.ts";
import type { AgentHook } from "../hooks/hook.ts";
import type { ChatModel } from "../models/model.ts";
import type { Tool } from "../tools/tool.ts";
import type { ToolFilter } from "./child-tools.ts";

export interface SubagentCapabilities {
  readonly outputSchema: boolean;
  readonly depthLimit: boolean;
  readonly toolFilter: boolean;
  readonly persona: boolean;
}

/** Who delegates, and where. */
export interface DelegatingAgent {
  readonly name: string;
  /** 0 for a lead; a child is one deeper. */
  readonly depth: number;
  /** The config of the delegating task: callbacks, tags, stream handlers and the saver are inherited through it. */
  readonly config: RunnableConfig;
  readonly services: AgentServices;
  /** Absent: the child's checkpoints go to the parent's saver. `false`: the child keeps none. */
  readonly checkpointer?: false;
}

/** Which agent is to run; composed by the caller, so that a provider needs no registry. */
export interface ChildAgent {
  readonly name: string;
  readonly systemPrompt: string;
  readonly model: ChatModel;
  readonly tools: readonly Tool[];
  readonly hooks: readonly AgentHook[];
  readonly maxTurns: number;
  /** Where the agent is, when it is one of another process; then it has its own prompt, tools and model. */
  readonly endpoint?: AcpEndpoint;
}

/** `restored`: already told before a crash. */
export type MessageOrigin = "new" | "restored";

export interface SubagentRequest {
  /** The child's one Human message, verbatim; a string is one block of text. */
  readonly prompt: string | readonly TextBlock[];
  readonly agent: ChildAgent;
  readonly parent: DelegatingAgent;
  /** Fires before the child exists: `start` rejects. Fires after: the run settles `aborted`. */
  readonly signal: AbortSignal;
  /** The child's id; the caller's, so that it is the same after recovery. */
  readonly id: string;
  /** Called for every assistant and tool message as it appears. Must not throw. */
  readonly onMessage?: (message: BaseMessage, origin: MessageOrigin) => void;
  /** A short display name, in the metadata of what the child runs. */
  readonly label?: string;
  /** Needs `outputSchema`. A JSON Schema of the subset that `checkOutputSchema` names. */
  readonly outputSchema?: unknown;
  /** Needs `depthLimit`. Absolute: the child's depth must not exceed it. */
  readonly maxDepth?: number;
  /** Needs `toolFilter`. Names tools of `agent`, in at least one of its lists. */
  readonly toolFilter?: ToolFilter;
  /** Needs `persona`. Replaces the system prompt; "" is an explicit empty one. */
  readonly persona?: string;
}

/** What a provider is given: the checked request, and the service's own part. */
export interface CheckedSubagentRequest extends SubagentRequest {
  /** A provider hands it every run that `resume` gives, before its caller gets it: resumed runs are observed like started ones. */
  readonly onResume?: (run: SubagentRun) => void;
}

/** Open: a consumer treats a reason it does not know as a failure. */
export type SubagentRunStopReason =
  | "completed"
  | "aborted"
  | "error"
  | "max-tokens"
  /** The turn budget was spent. */
  | "max-turns"
  | "refusal"
  | (string & {});

export interface TextBlock {
  readonly type: "text";
  readonly text: string;
}

export interface SubagentResult {
  /** The last non-empty text of the child; partial when it did not complete; empty when it never spoke. */
  readonly output: readonly TextBlock[];
  readonly stopReason: SubagentRunStopReason;
  /** Present only when a requested schema was satisfied. */
  readonly structured?: unknown;
  /** The provider's own words about a failure; never the child's. */
  readonly diagnostic?: string;
}

export interface SubagentRun {
  readonly id: string;
  readonly result: Promise<SubagentResult>;
  /** Settles `result` as `aborted` unless it has settled. Harmless when repeated. */
  cancel(reason?: string): void;
  /** Cancels what is left and resolves once the child is quiescent. Idempotent: repeated calls share one teardown. */
  dispose(): Promise<void>;
  /** Present where a running child can be steered. */
  sendMessage?(content: string): Promise<void>;
  /** Present where a settled child can go on; gives a fresh run, or `NOT_RESUMABLE`. */
  resume?(content: string): Promise<SubagentRun>;
}

export interface SubagentProvider {
  readonly name: string;
  readonly capabilities: SubagentCapabilities;
  /** Whether the child sees the parent's completed turns. Descriptive. */
  readonly inheritsParentContext: boolean;
  /**
   * Its children act outside of what a step commits: a start that may have reached one before a crash is not repeated,
   * and the delegation fails and says so.
   */
  readonly startsOnce?: true;
  /** Resolves once the child exists. Starts may overlap; one never frees or finishes another. */
  start(request: CheckedSubagentRequest): Promise<SubagentRun>;
}

export function promptBlocks({ prompt }: Pick<SubagentRequest, "prompt">): readonly TextBlock[] {
  return typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
}

export function textOf(result: SubagentResult): string {
  return result.output.map((block) => block.text).join("\n");
}
