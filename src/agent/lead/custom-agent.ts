/**
 * What makes a lead somebody's custom agent: the snapshot its run was accepted with, and the same options where a caller
 * gives them in the config without a gateway (LangGraph's own server, a Node process). Owns how the two combine.
 * Invariant: the channel of a text follows its trust; what stands in a config is a user's, whoever filled it.
 */
import {
  type AgentOptionPlaces,
  type AgentSnapshot,
  narrowSubagents,
  parseAgentOptions,
} from "../../domain/assistant/agent-snapshot.ts";

export interface CustomAgent {
  /** Stand in System. */
  readonly operatorInstructions: readonly string[];
  /** Reach the model in a human message. */
  readonly userInstructions: readonly string[];
  readonly allowedSubagents: readonly string[] | null;
  readonly tools: readonly string[] | null;
}

/** Throws when the options of `config` are malformed: an unreadable restriction must not read as none. */
export function resolveCustomAgent(config: AgentOptionPlaces, snapshot: AgentSnapshot | undefined): CustomAgent {
  const given = parseAgentOptions(config);
  if (!given.ok) throw new Error(`${given.error.path} ${given.error.message}`);
  const { instructions = "", allowedSubagents } = given.value;
  const texts = [...(snapshot?.instructions ?? []), { trust: "user", text: instructions }];
  const textsOf = (trust: string) => texts.filter((each) => each.trust === trust).map(({ text }) => text.trim());
  return {
    operatorInstructions: textsOf("operator").filter((text) => text !== ""),
    userInstructions: textsOf("user").filter((text) => text !== ""),
    allowedSubagents: narrowSubagents(snapshot?.allowedSubagents ?? null, allowedSubagents),
    tools: snapshot?.tools ?? null,
  };
}
