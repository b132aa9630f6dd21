/**
 * A lead that can delegate, made of real parts: LangGraph with its MemorySaver, the spawn provider, the executor and the
 * admission controller; only models, clock and storage of grants are in memory.
 */
import { AIMessage, HumanMessage, isToolMessage, type ToolMessage } from "@langchain/core/messages";
import { MemorySaver } from "@langchain/langgraph";
import { parseDeputyConfig, type DeputyConfigInput } from "../../src/config.ts";
import type { AdmissionConfig, BatchGrant } from "../../src/domain/admission/admission-state.ts";
import { buildAgentGraph } from "../../src/agent/graph/agent-graph.ts";
import type { AgentHook } from "../../src/agent/hooks/hook.ts";
import type { ModelRequest } from "../../src/agent/models/model.ts";
import { AdmissionController } from "../../src/agent/subagents/admission-controller.ts";
import { memoryJournal } from "../../src/agent/subagents/delegation-journal.ts";
import { SubagentExecutor } from "../../src/agent/subagents/executor.ts";
import type { GrantStore } from "../../src/agent/subagents/grant-store.ts";
import { forkProvider } from "../../src/agent/subagents/providers/fork.ts";
import { spawnProvider } from "../../src/agent/subagents/providers/spawn.ts";
import { SubagentRegistry } from "../../src/agent/subagents/registry.ts";
import { SubagentService } from "../../src/agent/subagents/subagent-service.ts";
import { createTaskTool } from "../../src/agent/tools/task.ts";
import type { Tool } from "../../src/agent/tools/tool.ts";
import type { ThreadState } from "../../src/agent/thread-state/thread-state.ts";
import { countedIds, fixtureServices } from "./agent-fixture.ts";
import { ManualTimers } from "./manual-timers.ts";
import { ReplyModel, catalogOf, promptOf, type Reply } from "./reply-model.ts";

export function memoryGrants(): GrantStore & { readonly rows: Map<string, BatchGrant> } {
  const rows = new Map<string, BatchGrant>();
  return {
    rows,
    save: (grant) => void rows.set(grant.grantId, grant),
    delete: (grantId) => void rows.delete(grantId),
    load: () => [...rows.values()],
  };
}

export interface DelegationFixtureOptions {
  readonly lead: Reply;
  readonly child: Reply;
  readonly tools?: readonly Tool[];
  readonly childTools?: readonly Tool[];
  readonly hooks?: readonly AgentHook[];
  readonly admission?: Partial<AdmissionConfig>;
  readonly subagents?: DeputyConfigInput["subagents"];
}

/** A request of the lead's: its prompt is the user's, everything else is a child's. */
export const LEAD_PROMPT = "go";

export function delegationFixture(options: DelegationFixtureOptions) {
  const timers = new ManualTimers();
  const services = fixtureServices();
  const journal = memoryJournal();
  const faults: unknown[] = [];
  const reply: Reply = (request, config) =>
    promptOf(request) === LEAD_PROMPT ? options.lead(request, config) : options.child(request, config);
  const model = new ReplyModel(reply);
  const admission = new AdmissionController({
    config: {
      maxRunning: 3,
      maxQueued: 64,
      policy: "queue",
      queueTimeoutMs: 300_000,
      classWeights: [1, 1],
      grantTtlMs: 120_000,
      ...options.admission,
    },
    grants: memoryGrants(),
    now: () => timers.now(),
    newId: countedIds("grant"),
    timers,
    onBatchTurn: () => {},
  });
  const service = new SubagentService({
    newId: countedIds("child-run"),
    reportFault: (_what, error) => void faults.push(error),
  });
  service.register(spawnProvider());
  service.register(forkProvider());
  const executor = new SubagentExecutor({ service, admission, journal, timers });
  const config = parseDeputyConfig({ subagents: options.subagents ?? {} });
  const tools = options.tools ?? [];
  const task = createTaskTool({
    executor,
    registry: new SubagentRegistry(config.subagents),
    models: catalogOf(model),
    services,
    childHooks: [],
    agentName: "lead",
    model,
    tools,
    limits: { maxConcurrent: 3, maxTotal: 6 },
  });
  const saver = new MemorySaver();
  const graph = buildAgentGraph({
    name: "lead",
    model,
    systemPrompt: "You lead.",
    tools: [...tools, task],
    hooks: options.hooks ?? [],
    maxTurns: 20,
    services,
    checkpointer: saver,
    streamTokens: true,
  });
  return { graph, model, saver, timers, services, journal, admission, service, executor, faults };
}

export type DelegationFixture = ReturnType<typeof delegationFixture>;

const CONFIG = { configurable: { thread_id: "thread-1", run_id: "run-1" }, durability: "sync" as const };

export interface RunRecord {
  readonly events: Record<string, unknown>[];
  readonly chunks: [string, unknown][];
  readonly state: ThreadState;
  readonly error?: unknown;
}

/** Streams a run to its end, whatever that is. `input: null` resumes. */
export async function runLead(
  fixture: DelegationFixture,
  options: {
    input?: null;
    signal?: AbortSignal;
    config?: Record<string, unknown>;
    onEvent?: (event: Record<string, unknown>) => void;
  } = {},
): Promise<RunRecord> {
  const { signal, onEvent } = options;
  const input = options.input === null ? null : { messages: [new HumanMessage({ content: LEAD_PROMPT, id: "h1" })] };
  const events: Record<string, unknown>[] = [];
  const chunks: [string, unknown][] = [];
  let error: unknown;
  try {
    const stream = await fixture.graph.stream(input, {
      ...CONFIG,
      ...options.config,
      streamMode: ["updates", "custom", "messages"],
      ...(signal === undefined ? {} : { signal }),
    });
    for await (const [mode, chunk] of stream as AsyncIterable<[string, unknown]>) {
      chunks.push([mode, chunk]);
      if (mode !== "custom") continue;
      events.push(chunk as Record<string, unknown>);
      onEvent?.(chunk as Record<string, unknown>);
    }
  } catch (caught) {
    error = caught;
  }
  const snapshot = await fixture.graph.getState({ configurable: { thread_id: "thread-1" } });
  return { events, chunks, state: snapshot.values as ThreadState, ...(error === undefined ? {} : { error }) };
}

export interface PlannedTask {
  readonly id: string;
  readonly prompt: string;
  readonly type?: string;
  readonly description?: string;
}

export function taskCalls(...tasks: readonly PlannedTask[]): AIMessage {
  return new AIMessage({
    content: "",
    tool_calls: tasks.map(({ id, prompt, type = "general-purpose", description = `do ${id}` }) => ({
      id,
      name: "task",
      type: "tool_call" as const,
      args: { description, prompt, subagent_type: type },
    })),
  });
}

/** A lead that delegates once and then answers with what came back. */
export function delegatesOnce(...tasks: readonly PlannedTask[]): Reply {
  return (request: ModelRequest) => {
    const results = request.messages.filter((message) => isToolMessage(message));
    return results.length === 0
      ? taskCalls(...tasks)
      : new AIMessage({ content: results.map((each) => each.text).join(" | ") });
  };
}

export function taskResults(state: ThreadState): readonly ToolMessage[] {
  return state.messages.filter((message): message is ToolMessage => isToolMessage(message));
}

export function eventTypes(events: readonly Record<string, unknown>[], taskId?: string): unknown[] {
  return events.filter((event) => taskId === undefined || event.task_id === taskId).map((event) => event.type);
}
