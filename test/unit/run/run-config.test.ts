import { describe, expect, it } from "vitest";
import type { BuiltGraph } from "../../../src/agent/graph-catalog.ts";
import { buildConfig, runConfig } from "../../../src/durable-objects/run-config.ts";
import type { RunRecord } from "../../../src/platform/durable-storage/run-store.ts";

const built = {
  configurable: { thread_id: "thread-1", checkpoint_ns: "" },
  recursionLimit: 42,
} as unknown as BuiltGraph;

function runWith(body: Record<string, unknown>, headers: Record<string, string> = {}): RunRecord {
  const command = { v: 1, graph_id: "lead_agent", headers, body: { assistant_id: "assistant-1", ...body } };
  return { runId: "run-1", graphId: "lead_agent", command } as unknown as RunRecord;
}

describe("runConfig", () => {
  it("R44 the run's own id reaches the graph, whatever the client put in its place", () => {
    const run = runWith({ config: { configurable: { run_id: "forged" } }, metadata: { run_id: "forged", kept: 1 } });
    const config = runConfig(run, built);
    expect(config.configurable).toMatchObject({ run_id: "run-1", assistant_id: "assistant-1", graph_id: "lead_agent" });
    expect(config.metadata).toEqual({ kept: 1, run_id: "run-1", assistant_id: "assistant-1", graph_id: "lead_agent" });
  });

  it("P7 a client's config neither leaves its thread, nor names a checkpoint, nor hands in an internal handle", () => {
    const forged = {
      thread_id: "another",
      checkpoint_id: "c-9",
      checkpoint_ns: "tools:x",
      checkpoint_map: { "": "c-9" },
      __pregel_checkpointer: "handle",
      deputy_depth: -9,
      deputy_task_id: "another's",
      mine: "kept",
    };
    const { configurable } = runConfig(runWith({ config: { configurable: forged } }), built);
    expect(configurable).toEqual({
      thread_id: "thread-1",
      checkpoint_ns: "",
      mine: "kept",
      run_id: "run-1",
      assistant_id: "assistant-1",
      graph_id: "lead_agent",
    });
  });

  it("P7 forwarded headers never stand over the server's keys", () => {
    const { configurable } = runConfig(runWith({}, { "x-tenant": "a", thread_id: "another", run_id: "forged" }), built);
    expect(configurable).toMatchObject({ "x-tenant": "a", thread_id: "thread-1", run_id: "run-1" });
  });

  it("tags are the client's, the step limit is the graph's", () => {
    const config = runConfig(runWith({ config: { tags: ["nightly"], recursion_limit: 5 } }), built);
    expect(config).toMatchObject({ tags: ["nightly"], recursionLimit: 42 });
  });

  it("config metadata reaches the graph below the run's own, and below what only the server says", () => {
    const config = { metadata: { source: "config", trace: "t-1", run_id: "forged" } };
    const { metadata } = runConfig(runWith({ config, metadata: { source: "run" } }), built);
    expect(metadata).toMatchObject({ source: "run", trace: "t-1", run_id: "run-1" });
  });
});

describe("buildConfig", () => {
  it("P7 a graph factory gets the client's keys filtered as LangGraph does, its context too, and never a forged run", () => {
    const forged = { thread_id: "another", checkpoint_id: "c-9", __pregel_checkpointer: "handle", deputy_depth: -9 };
    const run = runWith(
      {
        config: { configurable: { ...forged, run_id: "forged", mine: "kept" } },
        context: { ...forged, yours: "kept" },
      },
      { "x-tenant": "a", thread_id: "another" },
    );
    const { configurable } = buildConfig(run);
    expect(configurable).toEqual({
      "x-tenant": "a",
      mine: "kept",
      yours: "kept",
      run_id: "run-1",
      assistant_id: "assistant-1",
      graph_id: "lead_agent",
    });
    // The run itself gets the same, and what binds it to its thread.
    expect(runConfig(run, built).configurable).toEqual({ ...configurable, ...built.configurable });
  });

  it("the client's step limit reaches the factory, and only when there is one", () => {
    expect(buildConfig(runWith({ config: { recursion_limit: 5 } })).recursionLimit).toBe(5);
    expect(buildConfig(runWith({}))).not.toHaveProperty("recursionLimit");
  });
});
