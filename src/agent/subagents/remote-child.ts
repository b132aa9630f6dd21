/**
 * The child of a definition whose agent is another process's: it brings nothing of ours along, because the agent has its
 * own prompt, tools, model and bounds.
 */
import { NO_TURNS } from "../../domain/delegation/acp-definition.ts";
import type { SubagentDefinition } from "./subagent-definition.ts";
import type { ChatModel } from "../models/model.ts";
import type { ChildAgent } from "./provider.ts";

/** Which model answers there is not told to us; events and usage name the way it is reached. */
const REMOTE_MODEL: ChatModel = {
  name: "acp",
  provider: "acp",
  generate: () => Promise.reject(new Error("an agent of another process asks its own model")),
};

/** Throws where configuration lays a model or turns over a definition that has neither: it would be ignored. */
export function remoteChild({ name, acp, model, maxTurns }: RemoteDefinition): ChildAgent {
  if (model !== "inherit" || maxTurns !== NO_TURNS) {
    throw new TypeError(`'${name}' is reached by acp: 'subagents.agents' cannot set its model or max_turns`);
  }
  const endpoint = acp === undefined ? {} : { endpoint: acp };
  return { name, systemPrompt: "", model: REMOTE_MODEL, tools: [], hooks: [], maxTurns, ...endpoint };
}

type RemoteDefinition = Pick<SubagentDefinition, "name" | "acp" | "model" | "maxTurns">;
