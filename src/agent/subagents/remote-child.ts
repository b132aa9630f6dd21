/**
 * The child of a definition whose agent is another process's: it brings nothing of ours along, because the agent has its
 * own prompt, tools, model and bounds.
 */
import type { SubagentDefinition } from "./subagent-definition.ts";
import type { ChatModel } from "../models/model.ts";
import type { ChildAgent } from "./provider.ts";

/** Which model answers there is not told to us; events and usage name the way it is reached. */
const REMOTE_MODEL: ChatModel = {
  name: "acp",
  provider: "acp",
  generate: () => Promise.reject(new Error("an agent of another process asks its own model")),
};

type RemoteDefinition = Pick<SubagentDefinition, "name" | "acp">;

export function remoteChild({ name, acp }: RemoteDefinition): ChildAgent {
  const endpoint = acp === undefined ? {} : { endpoint: acp };
  return { name, systemPrompt: "", model: REMOTE_MODEL, tools: [], hooks: [], maxTurns: 1, ...endpoint };
}
