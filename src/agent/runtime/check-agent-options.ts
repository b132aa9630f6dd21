/**
 * What a program may give to `createDeputyAgent`, checked before anything is built, so that a slip is told as one and not
 * as a failure of the first run. Owns the rules and their words. An option that nobody reads is refused, never ignored.
 */
import { isLangChainModel } from "../models/langchain-model.ts";
import { isPlainObject, MODEL_NAME_PATTERN } from "../models/request-rules.ts";
import type { Tool } from "../tools/tool.ts";
import type { DeputyAgentOptions } from "./create-deputy-agent.ts";
import { SubagentRuntime } from "./subagent-runtime.ts";

/** As many as a configured agent may have. */
export const DEPUTY_AGENT_TURNS_MAX = 1_000;

const OPTIONS = [
  "model",
  "tools",
  "systemPrompt",
  "subagentRuntime",
  "hooks",
  "name",
  "maxTurns",
  "allowedSubagents",
  "checkpointer",
  "workspace",
] as const satisfies readonly (keyof DeputyAgentOptions)[];

/** Throws a `TypeError` that names the option and what it may be. */
export function checkAgentOptions(options: DeputyAgentOptions): void {
  if (!isPlainObject(options)) throw new TypeError("createDeputyAgent takes one object of options");
  const unknown = Object.keys(options).find((key) => !(OPTIONS as readonly string[]).includes(key));
  need(unknown === undefined, `there is no option '${unknown}'; allowed are: ${OPTIONS.join(", ")}`);
  const { model, tools = [], systemPrompt = "", subagentRuntime, hooks, name = "agent", maxTurns = 1 } = options;
  need(isModel(model), "model: must be a chat model of LangChain's or of Deputy's, or the name of one");
  need(Array.isArray(tools) && tools.every(isPlainObject), "tools: must be an array of tools");
  need(typeof systemPrompt === "string", "systemPrompt: must be a string");
  need(typeof name === "string" && name !== "", "name: must be a string that is not empty");
  const inRange = Number.isInteger(maxTurns) && maxTurns >= 1 && maxTurns <= DEPUTY_AGENT_TURNS_MAX;
  need(inRange, `maxTurns: must be an integer from 1 to ${DEPUTY_AGENT_TURNS_MAX} (got ${String(maxTurns)})`);
  need(hooks === undefined || Array.isArray(hooks), "hooks: must be an array, the whole chain");
  const isRuntime = subagentRuntime === undefined || subagentRuntime instanceof SubagentRuntime;
  need(isRuntime, "subagentRuntime: must be a SubagentRuntime");
  need(
    subagentRuntime === undefined || hooks === undefined,
    "subagentRuntime and hooks exclude each other: a complete chain of your own has no place for its limits",
  );
  checkAllowed(options);
}

function checkAllowed({ allowedSubagents: allowed = null, subagentRuntime }: DeputyAgentOptions): void {
  const isList = allowed === null || (Array.isArray(allowed) && allowed.every((each) => typeof each === "string"));
  need(isList, "allowedSubagents: must be null for all, or an array of names");
  need(
    allowed === null || subagentRuntime !== undefined,
    "allowedSubagents needs a subagentRuntime: nothing is delegated without one",
  );
}

/** All tools of an agent, those of its runtime included. */
export function checkToolNames(tools: readonly Tool[]): void {
  const names = new Set<string>();
  for (const { name } of tools) {
    const isLegal = typeof name === "string" && MODEL_NAME_PATTERN.test(name);
    need(isLegal, `tools: the name ${JSON.stringify(name)} is illegal; names match ${MODEL_NAME_PATTERN.source}`);
    need(!names.has(name), `tools: two are named '${name}'; those of a runtime count as well`);
    names.add(name);
  }
}

function isModel(model: unknown): boolean {
  if (typeof model === "string") return true;
  if (isLangChainModel(model)) return true;
  const { name, generate } = (model ?? {}) as Record<string, unknown>;
  return typeof model === "object" && typeof name === "string" && typeof generate === "function";
}

function need(holds: boolean, rule: string): void {
  if (!holds) throw new TypeError(rule);
}
