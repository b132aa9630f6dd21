/**
 * What a custom agent is beyond options every run may set: texts of its own, and whom it may delegate to. Owns how the
 * two options are read, how restrictions combine, and what a run keeps of its agent when it is accepted.
 * Invariants: combining only narrows; a malformed restriction is refused, never read as none.
 */
import { err, ok, type Result } from "../shared/result.ts";

/** Who wrote a text. Only an operator's may stand in System (R172, R173). */
export type TextTrust = "operator" | "user";

export interface AgentInstructions {
  readonly trust: TextTrust;
  readonly text: string;
}

/** PERSISTED in run rows: fields are only added. */
export interface AgentSnapshot {
  readonly v: 1;
  /** Of the assistant, when the run was accepted. */
  readonly assistantVersion: number;
  readonly instructions: readonly AgentInstructions[];
  /** Subagents the run may delegate to, at any depth; null means all. */
  readonly allowedSubagents: readonly string[] | null;
  /** Exact names of the tools it has; null means all. */
  readonly tools: readonly string[] | null;
}

/** An agent of the operator's, from `deputy.config.ts`. */
export interface OperatorAgent {
  readonly name: string;
  readonly description: string;
  readonly instructions: string;
  /** A name in the model catalogue; absent for the default. */
  readonly model?: string;
  readonly allowedSubagents: readonly string[] | null;
  readonly tools: readonly string[] | null;
}

/** As for the operator's own texts: some 25,000 tokens, sent with every request. */
export const AGENT_INSTRUCTIONS_CHARS_MAX = 100_000;

/** Above every subagent a deployment can name: the run's row holds the list twice. */
export const ALLOWED_SUBAGENTS_MAX = 500;

export const INSTRUCTIONS_OPTION = "instructions";
export const ALLOWED_SUBAGENTS_OPTION = "allowed_subagents";

/** Options that the agent takes in: they leave the run's config, the snapshot has them. */
export const AGENT_OPTIONS = [INSTRUCTIONS_OPTION, ALLOWED_SUBAGENTS_OPTION] as const;

export interface AgentOptions {
  /** Undefined when not given; "" is given, and none. */
  readonly instructions: string | undefined;
  readonly allowedSubagents: readonly string[] | null;
}

/** Where the options stand: in a run, in an assistant, in LangGraph's own config. */
export interface AgentOptionPlaces {
  readonly configurable?: unknown;
  readonly context?: unknown;
}

export interface AgentOptionRefusal {
  /** The option with its place. */
  readonly path: string;
  readonly message: string;
}

const SUBAGENT_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/**
 * Reads the two options where they stand; everything else there is left alone. A context's instructions win over a
 * configurable's, as every option's do; of the two lists both bind.
 */
export function parseAgentOptions({
  configurable,
  context,
}: AgentOptionPlaces): Result<AgentOptions, AgentOptionRefusal> {
  const inConfig = parsePlace(configurable, "config.configurable");
  if (!inConfig.ok) return inConfig;
  const inContext = parsePlace(context, "context");
  if (!inContext.ok) return inContext;
  return ok({
    instructions: inContext.value.instructions ?? inConfig.value.instructions,
    allowedSubagents: narrowSubagents(inConfig.value.allowedSubagents, inContext.value.allowedSubagents),
  });
}

function parsePlace(place: unknown, name: string): Result<AgentOptions, AgentOptionRefusal> {
  const options = typeof place === "object" && place !== null ? (place as Record<string, unknown>) : {};
  const instructions = options[INSTRUCTIONS_OPTION] ?? undefined;
  const allowed = options[ALLOWED_SUBAGENTS_OPTION] ?? null;
  if (instructions !== undefined && !isInstructions(instructions)) {
    const message = `must be a string of at most ${AGENT_INSTRUCTIONS_CHARS_MAX} characters`;
    return err({ path: `${name}.${INSTRUCTIONS_OPTION}`, message });
  }
  if (allowed !== null && !isNameList(allowed)) {
    const message = `must be null for all, or a list of at most ${ALLOWED_SUBAGENTS_MAX} subagent names (${SUBAGENT_NAME.source})`;
    return err({ path: `${name}.${ALLOWED_SUBAGENTS_OPTION}`, message });
  }
  return ok({ instructions, allowedSubagents: allowed === null ? null : [...new Set(allowed)] });
}

function isInstructions(value: unknown): value is string {
  return typeof value === "string" && value.length <= AGENT_INSTRUCTIONS_CHARS_MAX;
}

function isNameList(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length <= ALLOWED_SUBAGENTS_MAX &&
    value.every((name) => typeof name === "string" && SUBAGENT_NAME.test(name))
  );
}

/** What both allow. Null allows all. */
export function narrowSubagents(
  left: readonly string[] | null,
  right: readonly string[] | null,
): readonly string[] | null {
  if (left === null) return right;
  return right === null ? left : left.filter((name) => right.includes(name));
}
