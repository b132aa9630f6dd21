import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { readThreadState } from "../../../src/agent/graph/read-thread-state.ts";
import { InvariantError } from "../../../src/domain/shared/assert.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import { agentFixture, humanInput, plainTool, runConfig, succeeded } from "../../support/agent-fixture.ts";
import { callsAnswer } from "../../support/fake-chat-model.ts";

describe("readThreadState", () => {
  test("pins LangGraph's private read key: a sent task reads messages and the other channels of its step", async () => {
    const states: ThreadState[] = [];
    const look = plainTool("look", (_, runtime) => {
      expect(runtime.config.configurable).toHaveProperty("__pregel_read");
      states.push(readThreadState(runtime.config));
      return succeeded("ok", { update: { artifacts: [runtime.toolCallId] } });
    });
    const answers = [
      callsAnswer([
        { id: "c1", name: "look" },
        { id: "c2", name: "look" },
      ]),
      callsAnswer([{ id: "c3", name: "look" }]),
      new AIMessage("done"),
    ];
    const fixture = agentFixture(answers, { tools: [look] });
    await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    expect(states.map((state) => state.messages.map((message) => message.getType()))).toEqual([
      ["human", "ai"],
      ["human", "ai"],
      ["human", "ai", "tool", "tool", "ai"],
    ]);
    expect(states.map((state) => state.artifacts)).toEqual([[], [], ["c1", "c2"]]);
    expect(states.map((state) => state.run_progress?.turns)).toEqual([1, 1, 2]);
  });

  test("outside a task it is a fault, not an empty state", () => {
    expect(() => readThreadState({ configurable: {} })).toThrow(InvariantError);
  });
});
