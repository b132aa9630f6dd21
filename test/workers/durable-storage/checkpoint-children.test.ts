import "../../../src/async-context.ts";
import { Annotation, type BaseCheckpointSaver, Send, StateGraph } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { DurableCheckpointSaver } from "../../../src/platform/durable-storage/checkpoint-saver.ts";
import type { CommitHook } from "../../../src/platform/durable-storage/commit-hook.ts";
import { inFreshObject } from "../../support/object-storage.ts";

const config = { configurable: { thread_id: "t" }, durability: "sync" as const };
const Parent = Annotation.Root({
  results: Annotation<string[]>({ reducer: (left, right) => [...left, ...right], default: () => [] }),
});
const Child = Annotation.Root({ name: Annotation<string>, steps: Annotation<number> });

/** Two tasks that each run a child of two steps inside the node, as the `task` tool does; `run` is told each step. */
function buildParent(checkpointer: BaseCheckpointSaver, run: (step: string) => void) {
  const step = (number: number) => (state: typeof Child.State) => {
    run(`${state.name} ${number}`);
    return { steps: number };
  };
  // Compiled without a checkpointer key: it inherits the parent's under `tools:<task id>`.
  const child = new StateGraph(Child)
    .addNode("one", step(1))
    .addNode("two", step(2))
    .addEdge("__start__", "one")
    .addEdge("one", "two")
    .addEdge("two", "__end__")
    .compile();
  return new StateGraph(Parent)
    .addNode("model", () => ({}))
    .addNode("tools", async ({ name }: { name: string }) => {
      const { steps } = await child.invoke({ name, steps: 0 });
      return { results: [`${name} took ${steps}`] };
    })
    .addEdge("__start__", "model")
    .addConditionalEdges("model", () => ["a", "b"].map((name) => new Send("tools", { name })), ["tools"])
    .addEdge("tools", "__end__")
    .compile({ checkpointer });
}

function childNamespaces(storage: DurableObjectStorage): string[] {
  const query = "SELECT DISTINCT checkpoint_ns AS ns FROM checkpoints WHERE checkpoint_ns > ''";
  return storage.sql
    .exec<{ ns: string }>(query)
    .toArray()
    .map((row) => row.ns);
}

/** Deletes a child's rows in the transaction that stores its task's result. */
function deletingChildren(storage: DurableObjectStorage): DurableCheckpointSaver {
  const hook: CommitHook = {
    onCheckpoint: () => {},
    onWrites: ({ checkpointNs, taskId, writes }) => {
      if (checkpointNs !== "" || !writes.some(([channel]) => channel === "results")) return;
      saver.deleteNamespace("t", `tools:${taskId}`);
    },
  };
  const saver = new DurableCheckpointSaver({ storage, hook });
  return saver;
}

describe("children inside a tool task", () => {
  it("P2 a child that died goes on from its last step, and its rows go with the result's commit", async () => {
    await inFreshObject(async (storage) => {
      const steps: string[] = [];
      const crash = new Error("died");
      const dying = buildParent(deletingChildren(storage), (step) => {
        steps.push(step);
        if (step === "b 2") throw crash;
      });
      await expect(dying.invoke({ results: [] }, config)).rejects.toThrow(crash);
      const [left, ...others] = childNamespaces(storage);
      expect(left).toMatch(/^tools:/);
      expect(others.length).toBeLessThanOrEqual(1);

      const before = steps.length;
      const revived = buildParent(deletingChildren(storage), (step) => steps.push(step));
      const state = await revived.invoke(null, config);
      expect(state.results).toEqual(["a took 2", "b took 2"]);
      expect(steps.slice(before)).toContain("b 2");
      expect(steps.slice(before)).not.toContain("b 1");
      expect(steps.slice(before)).not.toContain("a 1");
      expect(childNamespaces(storage)).toEqual([]);
      const rows = storage.sql.exec("SELECT 1 FROM checkpoint_writes WHERE checkpoint_ns > ''").toArray();
      expect(rows).toEqual([]);
    });
  });
});
