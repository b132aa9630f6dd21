/**
 * A tool of Deputy's: what the model sees and what runs. Adapters for other tool libraries wrap into this shape.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import type { ZodObject } from "zod";
import type { ThreadState } from "../thread-state/thread-state.ts";
import type { WorkspaceSession } from "./workspace.ts";

/**
 * What recovery may do with a call whose result never committed. `safe` (reads, and workspace tools, whose writes commit
 * with the result): run it again. Whatever acts outside of the object: `once`, answered "outcome unknown" for the model
 * to check, or `ask`, a person decides.
 */
export type ToolRecovery = "safe" | "once" | "ask";

export interface ToolOutcome {
  readonly status: "success" | "error";
  /** What the model reads. */
  readonly content: string;
  readonly additionalKwargs?: Readonly<Record<string, unknown>>;
  /** Further channel writes committed with the result, `messages` excepted. */
  readonly update?: Readonly<Partial<Record<Exclude<keyof ThreadState, "messages">, unknown>>>;
}

export interface ToolRuntime {
  readonly toolCallId: string;
  readonly runId: string | undefined;
  /** 1 on the first execution, 2 or more when an earlier one may have happened. */
  readonly attempt: number;
  /** Of `once` and `ask` tools: to be handed to whatever they act on, the same for every execution of this call. */
  readonly idempotencyKey?: string;
  readonly signal: AbortSignal;
  readonly workspace: WorkspaceSession;
  /** The state the model call saw. */
  state(): ThreadState;
  /** Writes to LangGraph's `custom` stream. */
  emit(event: Readonly<Record<string, unknown>>): void;
  /** LangGraph's config of this task; a child graph is invoked under it. */
  readonly config: RunnableConfig;
}

/** Arguments whose schema was given to us as JSON Schema, not written here. */
export interface JsonSchemaParameters {
  /** What the model is shown. */
  readonly jsonSchema: Record<string, unknown>;
  /** Everything wrong with `args`, each with its path; none when they fit. */
  readonly violations: (args: unknown) => readonly string[];
}

export interface Tool<Parameters extends ZodObject | JsonSchemaParameters = ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly parameters: Parameters;
  readonly recovery: ToolRecovery;
  /** Of `once` and `ask` tools: a sentence on how to find out whether a call took effect. */
  readonly checkWith?: string;
  /** `args` already passed `parameters`. A throw becomes an error result; a tool task never throws (section 4). */
  execute(args: Record<string, unknown>, runtime: ToolRuntime): Promise<ToolOutcome>;
}

/** Any tool a graph can run. */
export type GraphTool = Tool<ZodObject | JsonSchemaParameters>;
