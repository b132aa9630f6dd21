import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { Annotation, MemorySaver, START, StateGraph } from "@langchain/langgraph";
import { describe, expect, test } from "vitest";
import {
  LAST_VALUE_CHANNELS,
  THREAD_STATE_CHANNELS,
  TOOL_WRITABLE_CHANNELS,
  applyStateUpdate,
  isReducedChannel,
  threadStateChannels,
} from "../../../src/agent/thread-state/channels.ts";
import { mergeMessageWrites } from "../../../src/agent/thread-state/merge-message-writes.ts";
import type { ThreadState, ThreadStateUpdate } from "../../../src/agent/thread-state/thread-state.ts";

const kindOf = (channel: keyof ReturnType<typeof threadStateChannels>) =>
  threadStateChannels()[channel]().lc_graph_name;

describe("the channels of ThreadState (R175)", () => {
  test("messages, the thirteen public ones, and our own run_progress; no other name", () => {
    expect(THREAD_STATE_CHANNELS.toSorted()).toEqual([
      "artifacts",
      "background_tasks",
      "delegations",
      "goal",
      "messages",
      "promoted",
      "run_progress",
      "sandbox",
      "skill_context",
      "summary_text",
      "thread_data",
      "title",
      "todos",
      "uploaded_files",
      "viewed_images",
    ]);
  });

  test("messages is a DeltaChannel over mergeMessageWrites, not over LangGraph's private delta reducer (R184)", () => {
    const messages = threadStateChannels().messages();
    expect(messages.lc_graph_name).toBe("DeltaChannel");
    expect(messages.reducer).toBe(mergeMessageWrites);
  });

  test("summary_text and the other last-value channels are LastValue (R182), the rest have a reducer", () => {
    const lastValue: readonly string[] = LAST_VALUE_CHANNELS;
    expect(kindOf("summary_text")).toBe("LastValue");
    for (const channel of THREAD_STATE_CHANNELS) {
      if (channel === "messages") continue;
      expect(kindOf(channel), channel).toBe(lastValue.includes(channel) ? "LastValue" : "BinaryOperatorAggregate");
    }
  });

  test("what a tool may write merges in one step of parallel calls", () => {
    expect(TOOL_WRITABLE_CHANNELS.every(isReducedChannel)).toBe(true);
  });
});

describe("applyStateUpdate", () => {
  const updates: ThreadStateUpdate[] = [
    {
      messages: [new HumanMessage({ id: "h", content: "x" })],
      artifacts: ["a", "a"],
      title: "one",
      promoted: { catalog_hash: "h", names: ["n", "n"] },
    },
    {
      messages: [new AIMessage({ id: "a", content: "y" })],
      artifacts: ["b"],
      todos: [],
      viewed_images: { i: { mime_type: "m", size: 1, actual_path: "p" } },
    },
    { title: "two", todos: null, goal: null, sandbox: { sandbox_id: "s" }, summary_text: "so far" },
    {
      delegations: [{ id: "d", description: "d", subagent_type: "bash", status: "in_progress" }],
      run_progress: { run_id: "r", turns: 1 },
    },
    {
      viewed_images: {},
      skill_context: [{ name: "n", path: "p", description: " x  y ", loaded_at: 1 }],
      sandbox: null,
      title: null,
    },
  ];

  test("gives what LangGraph's channels give for the same updates, stored and read back", async () => {
    const saver = new MemorySaver();
    let graph = new StateGraph(Annotation.Root(threadStateChannels())) as never as StateGraph<
      unknown,
      ThreadState,
      unknown,
      string
    >;
    let previous: string = START;
    for (const [index, update] of updates.entries()) {
      graph = graph.addNode(`n${index}`, () => update as never) as never;
      graph.addEdge(previous, `n${index}` as never);
      previous = `n${index}`;
    }
    const compiled = graph.compile({ checkpointer: saver });
    const config = { configurable: { thread_id: "t" } };
    await compiled.invoke({ messages: [] }, config);
    const stored = (await compiled.getState(config)).values as ThreadState;
    const empty = {
      messages: [],
      artifacts: [],
      delegations: [],
      skill_context: [],
      viewed_images: {},
      goal: null,
      promoted: null,
      sandbox: null,
      todos: null,
    };
    const applied = updates.reduce<ThreadState>(applyStateUpdate, empty);
    expect(JSON.parse(JSON.stringify(applied))).toEqual(JSON.parse(JSON.stringify(stored)));
    expect(applied).toMatchObject({
      artifacts: ["a", "b"],
      title: null,
      promoted: { names: ["n"] },
      sandbox: { sandbox_id: "s" },
    });
  });
});
