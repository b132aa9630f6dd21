import { HumanMessage, RemoveMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StepWrites } from "../../../src/agent/graph/step-writes.ts";
import { applyStateUpdate } from "../../../src/agent/thread-state/channels.ts";
import type { ThreadState, ThreadStateUpdate } from "../../../src/agent/thread-state/thread-state.ts";
import { countedIds } from "../../support/agent-fixture.ts";

const START_STATE: ThreadState = { messages: [new HumanMessage({ id: "m0", content: "start" })], artifacts: [] };

/** What LangGraph does with a node's return: each update in order, channel by channel. */
function fold(returned: ReturnType<StepWrites["toNodeReturn"]>): ThreadState {
  const updates = Array.isArray(returned) ? returned.map((command) => command.update as ThreadStateUpdate) : [returned];
  return updates.reduce<ThreadState>(applyStateUpdate, START_STATE);
}

describe("the writes of one step", () => {
  test("fold to the running view the hooks saw, for any sequence of updates", () => {
    const id = fc.constantFrom("m0", "m1", "m2");
    const message = fc.oneof(
      id.map((id) => (text: string) => new HumanMessage({ id, content: text })),
      id.map((id) => () => new RemoveMessage({ id })),
    );
    const update = fc.record(
      {
        messages: fc.array(message, { minLength: 1, maxLength: 3 }),
        artifacts: fc.array(fc.constantFrom("x", "y", "z")),
        title: fc.constantFrom("one", "two"),
      },
      { requiredKeys: [] },
    );
    let split = 0;
    fc.assert(
      fc.property(fc.array(update, { maxLength: 5 }), (updates) => {
        const writes = new StepWrites(START_STATE, countedIds());
        for (const [index, { messages, ...channels }] of updates.entries()) {
          const built = messages?.map((make, position) => make(`t${index}.${position}`));
          try {
            writes.add(built === undefined ? channels : { ...channels, messages: built });
          } catch (error) {
            expect((error as Error).message).toContain("which the thread does not hold");
          }
        }
        const returned = writes.toNodeReturn();
        split += Array.isArray(returned) ? 1 : 0;
        expect(fold(returned)).toEqual(writes.state());
      }),
      { numRuns: 1_000 },
    );
    expect(split, "some sequences must need several writes of one channel").toBeGreaterThan(50);
  });

  test("plain messages of several hooks leave as one write, a last value once", () => {
    const writes = new StepWrites(START_STATE, countedIds());
    writes.add({ messages: [new HumanMessage("a")], title: "one" });
    writes.add({ messages: [new HumanMessage("b")], title: "two" });
    const returned = writes.toNodeReturn();
    expect(returned).toMatchObject({ title: "two", messages: [{ id: "id-1" }, { id: "id-2" }] });
  });

  test("two writes of a merging channel leave as two commands", () => {
    const writes = new StepWrites(START_STATE, countedIds());
    writes.add({ artifacts: ["a"] });
    writes.add({ artifacts: ["b"] });
    expect(writes.toNodeReturn()).toEqual([
      new Command({ update: { artifacts: ["a"] } }),
      new Command({ update: { artifacts: ["b"] } }),
    ]);
  });
});
