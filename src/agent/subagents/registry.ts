/**
 * Resolves subagent definitions from the built-ins, `deputy.config.ts` and the managed ones (delegation-behaviour 1.1).
 * Owns who a name belongs to: built-ins before configuration before managed definitions; a shadowed one is left out.
 * Owns precedence: a per-agent override wins over the global value (built-ins only), which wins over the definition.
 * Built once per run, so a run keeps the snapshot it was admitted with. Resolution copies, it never changes a source.
 */
import type { DeputyConfig, SubagentDefinitionConfig } from "../../config.ts";
import { acpDefinition } from "../../domain/delegation/acp-definition.ts";
import type { ManagedSubagent } from "../../domain/delegation/managed-subagent.ts";
import { BUILT_IN_SUBAGENTS } from "./built-ins.ts";
import type { SubagentDefinition } from "./subagent-definition.ts";

type SubagentsConfig = DeputyConfig["subagents"];

export class SubagentRegistry {
  readonly #definitions: ReadonlyMap<string, SubagentDefinition>;
  readonly #allowed: readonly string[] | null;

  /**
   * `allowed` and `managed` as the run was accepted with them: the caller's policy and the enabled managed subagents.
   * `unusable` are names that nothing here can run as they are meant (`unusableBuiltIns`).
   */
  constructor(
    config: SubagentsConfig,
    allowed: readonly string[] | null = null,
    managed: readonly ManagedSubagent[] = [],
    unusable: readonly string[] = [],
  ) {
    const operators = [...BUILT_IN_SUBAGENTS, ...customDefinitions(config)];
    const resolved = [...operators, ...unshadowed(managed, operators)].map((each) => override(each, config));
    const usable = resolved.filter((each) => !unusable.includes(each.name));
    const permitted = usable.filter((each) => allowed === null || allowed.includes(each.name));
    this.#allowed = allowed;
    this.#definitions = new Map(permitted.map((each) => [each.name, each]));
  }

  find(name: string): SubagentDefinition | undefined {
    return this.#definitions.get(name);
  }

  /** Built-ins first, then custom agents in the order of the configuration, then managed ones by name. */
  list(): readonly SubagentDefinition[] {
    return [...this.#definitions.values()];
  }

  /** Those whose texts are the framework's or the operator's: they may stand in System and in tools. */
  operatorList(): readonly SubagentDefinition[] {
    return this.list().filter((each) => each.source !== "managed");
  }

  /** Those whose texts came through the API. */
  managedList(): readonly SubagentDefinition[] {
    return this.list().filter((each) => each.source === "managed");
  }

  names(): readonly string[] {
    return [...this.#definitions.keys()];
  }

  /** Whether the caller's policy allows the name, known or not. */
  permits(name: string): boolean {
    return this.#allowed === null || this.#allowed.includes(name);
  }

  /** The names for a refusal, and whose doing it is when there are none. */
  available(): string {
    const none = this.#allowed === null ? "none" : "none permitted by caller policy";
    return this.names().join(", ") || none;
  }
}

function customDefinitions(config: SubagentsConfig): SubagentDefinition[] {
  const builtIns = new Set(BUILT_IN_SUBAGENTS.map((each) => each.name));
  return Object.entries(config.custom_agents)
    .filter(([name]) => !builtIns.has(name))
    .map(([name, definition]) => fromConfig(name, definition));
}

function fromConfig(name: string, definition: SubagentDefinitionConfig): SubagentDefinition {
  if (definition.provider === "acp") {
    const { description, timeout_seconds: timeoutSeconds, acp } = definition;
    return { ...acpDefinition({ description, timeoutSeconds, acp }), name, source: "config" };
  }
  return {
    name,
    description: definition.description,
    systemPrompt: definition.system_prompt,
    tools: definition.tools,
    disallowedTools: definition.disallowed_tools,
    model: definition.model,
    maxTurns: definition.max_turns,
    timeoutSeconds: definition.timeout_seconds,
    provider: definition.provider,
    maxDepth: definition.max_depth,
    source: "config",
  };
}

function unshadowed(
  managed: readonly ManagedSubagent[],
  operators: readonly SubagentDefinition[],
): SubagentDefinition[] {
  const taken = new Set(operators.map((each) => each.name));
  return managed
    .filter(({ name }) => !taken.has(name))
    .map(({ name, definition }) => ({ ...definition, name, source: "managed" }));
}

function override(definition: SubagentDefinition, config: SubagentsConfig): SubagentDefinition {
  const own = config.agents[definition.name];
  const isBuiltIn = definition.source === "built-in";
  const globalTurns = isBuiltIn ? config.max_turns : null;
  const globalTimeout = isBuiltIn ? config.timeout_seconds : undefined;
  return {
    ...definition,
    model: own?.model ?? definition.model,
    maxTurns: own?.max_turns ?? globalTurns ?? definition.maxTurns,
    timeoutSeconds: own?.timeout_seconds ?? globalTimeout ?? definition.timeoutSeconds,
  };
}
