/**
 * What LangGraph's `stream` is started with, for a first start and for one after a crash. Owns the translation of an
 * accepted create; whether it starts as accepted is decided by acceptance and by `domain/run/recovery`.
 *
 * A command's answers were matched to interrupts when it was accepted, and every start is strict: LangGraph then refuses
 * an answer to what nobody asks instead of giving it to another question.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, type CommandParams, Send } from "@langchain/langgraph";
import type { InterruptedRun } from "../domain/run/recovery.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { RunCommandBody } from "../protocol/run-start.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import { restoreLeadInput } from "./run-input.ts";

/** LangGraph's private name for: an answer to an interrupt that is not pending is an error. */
const STRICT_RESUME_KEY = "__pregel_strict_resume";

export type StartHow =
  /** As it was accepted. */
  | "input"
  /** After the last committed step. */
  | "resume"
  /** As it was accepted, with those answers that are still asked for. */
  | { readonly answers: readonly string[] };

/** What the graph is started with. */
export interface RunStart {
  /** LangGraph's first argument: values, a `Command`, or `null` to go on. */
  readonly input: unknown;
  /** The checkpoint to start from, when it is not the head. */
  readonly checkpointId?: string;
}

/** The head's state and end are asked for with the run's own config: only the stream starts elsewhere. */
export function startConfig(config: RunnableConfig, { checkpointId }: RunStart): RunnableConfig {
  const from = checkpointId === undefined ? {} : { checkpoint_id: checkpointId };
  return { ...config, configurable: { ...config.configurable, ...from, [STRICT_RESUME_KEY]: true } };
}

export function toRunStart(run: RunRecord, how: StartHow): RunStart {
  if (how === "resume") return { input: null };
  const { body } = run.command;
  const fork = forkOf(run);
  const from = fork === undefined ? {} : { checkpointId: fork };
  if (body.input !== null && body.input !== undefined) {
    return { input: run.graphId === LEAD_GRAPH_ID ? restoreLeadInput(body.input) : body.input, ...from };
  }
  return { input: toCommand(run, how === "input" ? undefined : how.answers) ?? null, ...from };
}

/** The older checkpoint that the run starts from; `undefined` for a run that starts from the head. */
export function forkOf({ command, baseCheckpointId }: Pick<RunRecord, "command" | "baseCheckpointId">) {
  const at = checkpointOf(command.body);
  return at === baseCheckpointId ? undefined : at;
}

/** The checkpoint a create names. */
export function checkpointOf({ checkpoint, checkpoint_id }: CreateRunBody): string | undefined {
  return checkpoint_id ?? checkpoint?.checkpoint_id ?? undefined;
}

export function startKindOf({ input, command }: CreateRunBody): InterruptedRun["start"] {
  if (input !== null && input !== undefined) return "input";
  return command === null || command === undefined || isEmpty(command) ? "nothing" : "command";
}

/** The interrupts that an accepted create answers. */
export function answersOf({ command }: CreateRunBody): readonly string[] {
  return Object.keys(answerMap(command));
}

function answerMap(command: RunCommandBody | null | undefined): Readonly<Record<string, unknown>> {
  return (command?.resume ?? {}) as Record<string, unknown>;
}

function isEmpty({ resume, update, goto }: RunCommandBody): boolean {
  return [resume, update, goto].every((part) => part === null || part === undefined);
}

function toCommand(run: RunRecord, answers: readonly string[] | undefined): Command | undefined {
  const { command } = run.command.body;
  if (command === null || command === undefined || isEmpty(command)) return undefined;
  const params: CommandParams = {};
  const resume = Object.entries(answerMap(command)).filter(([id]) => answers?.includes(id) ?? true);
  if (resume.length > 0) params.resume = Object.fromEntries(resume);
  const update = toUpdate(run, command.update);
  if (update !== undefined) params.update = update;
  const goto = toGoto(command.goto);
  if (goto.length > 0) params.goto = goto;
  return new Command(params);
}

function toUpdate({ graphId }: RunRecord, update: RunCommandBody["update"]): Record<string, unknown> | undefined {
  if (update === null || update === undefined || Array.isArray(update)) return undefined;
  return graphId === LEAD_GRAPH_ID ? restoreLeadInput(update) : update;
}

function toGoto(goto: RunCommandBody["goto"]): (string | Send)[] {
  if (goto === null || goto === undefined) return [];
  return (Array.isArray(goto) ? goto : [goto]).map((to) =>
    typeof to === "string" ? to : new Send(to.node, to.input ?? to.args ?? null),
  );
}
