/**
 * An agent graph with real parts for unit tests: LangGraph, its MemorySaver, the in-memory scratch workspace, counted ids.
 */
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { MemorySaver } from "@langchain/langgraph";
import { HumanMessage } from "@langchain/core/messages";
import type { ToolMessage } from "@langchain/core/messages";
import { z } from "zod";
import type { AgentServices } from "../../src/agent/graph/agent-services.ts";
import { type AgentGraphOptions, buildAgentGraph } from "../../src/agent/graph/agent-graph.ts";
import { ScratchWorkspace } from "../../src/agent/tools/scratch-workspace.ts";
import type { ThreadState } from "../../src/agent/thread-state/thread-state.ts";
import type { Tool, ToolOutcome, ToolRuntime } from "../../src/agent/tools/tool.ts";
import { FakeChatModel, type PlannedAnswer } from "./fake-chat-model.ts";

export function countedIds(prefix = "id"): () => string {
  let last = 0;
  return () => `${prefix}-${++last}`;
}

/** Notes what the graph asked of the workspace and of recovery. */
export interface FixtureServices extends AgentServices {
  readonly discarded: string[];
}

export function fixtureServices(): FixtureServices {
  const scratch = new ScratchWorkspace({ files: [], now: () => 0 });
  const attempts = new Map<string, number>();
  const discarded: string[] = [];
  return {
    discarded,
    workspace: {
      open: (id) => scratch.open(id),
      commit: (id) => scratch.commit(id),
      discard: (id) => {
        discarded.push(id);
        scratch.discard(id);
      },
    },
    toolAttempt(id) {
      const attempt = (attempts.get(id) ?? 0) + 1;
      attempts.set(id, attempt);
      return attempt;
    },
    newId: countedIds(),
    now: () => 0,
  };
}

export function plainTool(
  name: string,
  execute: (args: Record<string, unknown>, runtime: ToolRuntime) => ToolOutcome | Promise<ToolOutcome>,
  parameters: Tool["parameters"] = z.object({}),
): Tool {
  return {
    name,
    description: name,
    parameters,
    recovery: "safe",
    execute: async (args, runtime) => execute(args, runtime),
  };
}

export function succeeded(content: string, more: Partial<ToolOutcome> = {}): ToolOutcome {
  return { status: "success", content, ...more };
}

export interface Fixture {
  readonly graph: ReturnType<typeof buildAgentGraph>;
  readonly model: FakeChatModel;
  readonly saver: BaseCheckpointSaver;
  readonly services: FixtureServices;
}

export function agentFixture(answers: readonly PlannedAnswer[], options: Partial<AgentGraphOptions> = {}): Fixture {
  const model = new FakeChatModel(answers);
  const services = fixtureServices();
  const saver = new MemorySaver();
  const graph = buildAgentGraph({
    name: "lead",
    model,
    systemPrompt: "You are a test.",
    tools: [],
    hooks: [],
    maxTurns: 20,
    services,
    checkpointer: saver,
    streamTokens: true,
    ...options,
  });
  return { graph, model, saver, services };
}

export function runConfig(run = "run-1", thread = "thread-1") {
  return { configurable: { thread_id: thread, run_id: run }, durability: "sync" as const };
}

export function humanInput(text: string, id: string) {
  return { messages: [new HumanMessage({ content: text, id })] };
}

/** State as the saver gives it back, not as a run left it in memory. */
export async function storedState(fixture: Fixture, thread = "thread-1"): Promise<ThreadState> {
  const snapshot = await fixture.graph.getState({ configurable: { thread_id: thread } });
  return snapshot.values as ThreadState;
}

export function toolResults(state: ThreadState): ToolMessage[] {
  return state.messages.filter((message): message is ToolMessage => message.getType() === "tool");
}
