/** What a run tells of its options and of the limit that held it back: from its acceptance, across deploys, to its end. */
import { AIMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { pendingCalls } from "../../../src/agent/graph/pending-calls.ts";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import { eventually } from "../../support/eventually.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { toRun } from "../../../src/durable-objects/run-view.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import { asking, newThread, sendJson, streamRun } from "../../support/http.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const DELEGATE = "@ delegate general-purpose :: first :: @ say one";

async function ended(runtime: ThreadRuntime, runId: string) {
  await runtime.context.live.get(runId)?.done;
  return runtime.context.runs.find(runId)!;
}

async function stateOf(runtime: ThreadRuntime): Promise<ThreadState> {
  const { graph, configurable } = await runtime.context.graphs.forState();
  return (await graph.getState({ configurable })).values as ThreadState;
}

describe("R189 adjusted options", () => {
  it("are in the run's metadata from its acceptance on, on each way to read it", async () => {
    const threadId = await newThread();
    const configurable = { max_total_subagents: 99, max_concurrent_subagents: 2 };
    const body = asking("@ say hi", { config: { configurable }, metadata: { team: "blue" } });
    const created = await sendJson<Run>("POST", `/threads/${threadId}/runs`, body);
    const metadata = expect.objectContaining({
      team: "blue",
      deputy_adjusted_options: { max_total_subagents: { requested: 99, used: 50 } },
    });
    expect(created.metadata).toEqual(metadata);
    await sendJson("GET", `/threads/${threadId}/runs/${created.run_id}/join`);
    expect((await sendJson<Run>("GET", `/threads/${threadId}/runs/${created.run_id}`)).metadata).toEqual(metadata);
    expect((await sendJson<Run[]>("GET", `/threads/${threadId}/runs`))[0]?.metadata).toEqual(metadata);
  });

  it("cannot be forged: a client's value of the key is dropped, whether there is one of the server's or not", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const forged = { deputy_adjusted_options: { max_total_subagents: { requested: 1, used: 1_000 } }, mine: 1 };
      const plain = await startRun(runtime, "@ say hi", { metadata: forged });
      await ended(runtime, plain.runId);
      expect(toRun(plain, "t").metadata).not.toHaveProperty("deputy_adjusted_options");
      expect(toRun(plain, "t").metadata).toMatchObject({ mine: 1 });
      const context = { max_total_subagents: 0 };
      const clamped = await startRun(runtime, "@ say hi", { metadata: forged, context });
      await ended(runtime, clamped.runId);
      expect(toRun(clamped, "t").metadata["deputy_adjusted_options"]).toEqual({
        max_total_subagents: { requested: 0, used: 1 },
      });
    });
  });

  it("R38 R39 tell what the thread's admission really runs, also after a deploy that lowered it", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create({ config: { subagent_runtime: { max_running: 8 } } });
      const configurable = { max_concurrent_subagents: 6 };
      const run = await startRun(first, "@ say hi", { config: { configurable } });
      expect(run.notes).toBeUndefined();
      await ended(first, run.runId);
      const second = await crashed(thread, first, run.runId, { subagent_runtime: { max_running: 2 } });
      expect(second.metadata["deputy_adjusted_options"]).toEqual({
        max_concurrent_subagents: { requested: 6, used: 2 },
      });
    });
  });

  it("R186 a model that a deploy took away: the run goes on with the default one and says so", async () => {
    await withWakes(async (thread) => {
      const models = [{ name: "rehearsal", provider: "scripted" as const }];
      const first = await thread.create({ config: { models } });
      const run = await startRun(first, "@ say hi", { config: { configurable: { model_name: "rehearsal" } } });
      expect(run.notes).toBeUndefined();
      await ended(first, run.runId);
      const recovered = await crashed(thread, first, run.runId, { models: [] });
      expect(recovered.status).toBe("success");
      expect(recovered.metadata["deputy_adjusted_options"]).toEqual({
        model_name: { requested: "rehearsal", used: "scripted" },
      });
    });
  });
});

/** The run as it is after a crash before its end and a wake under another configuration. */
async function crashed(thread: ThreadWakes, before: ThreadRuntime, runId: string, config: object): Promise<Run> {
  const run = before.context.runs.find(runId)!;
  before.context.runs.save({ ...run, status: "running", finalCheckpointId: null });
  const after = await thread.wake({ config });
  return toRun(await ended(after, runId), "t");
}

describe("R51 the limit that held a run back", () => {
  const script = (...lines: string[]) => lines.join("\n");

  it("is the run's `stop_reason`, beside a status of success; the next run has none", async () => {
    const threadId = await newThread();
    const spent = { config: { configurable: { max_total_subagents: 1 } } };
    await streamRun(threadId, asking(script(DELEGATE, DELEGATE), spent));
    await streamRun(threadId, asking("@ say hello"));
    const [second, first] = await sendJson<Run[]>("GET", `/threads/${threadId}/runs`);
    expect(first).toMatchObject({ status: "success", stop_reason: "subagent_limit_capped" });
    expect(second).toMatchObject({ status: "success", stop_reason: null });
    const events = await sendJson<{ event_type: string; content: Record<string, unknown> }[]>(
      "GET",
      `/threads/${threadId}/runs/${first!.run_id}/events?event_types=run.end`,
    );
    expect(events[0]?.content).toMatchObject({ status: "success", stop_reason: "subagent_limit_capped" });
  });

  it("is told of a run that was held back and then failed", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const context = { max_total_subagents: 1 };
      const both = script(
        DELEGATE,
        '@ & call ls {"path": "."}',
        "@ & delegate bash :: more :: @ say two",
        "@ fail 400",
      );
      const run = await startRun(runtime, both, { context });
      expect(await ended(runtime, run.runId)).toMatchObject({
        status: "error",
        notes: { stop_reason: "subagent_limit_capped" },
      });
    });
  });

  it("is told although the object died before the run's end", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create();
      const run = await startRun(first, script(DELEGATE, DELEGATE), { context: { max_total_subagents: 1 } });
      const { notes, ...row } = await ended(first, run.runId);
      expect(notes?.stop_reason).toBe("subagent_limit_capped");
      first.context.runs.save({ ...row, status: "running", finalCheckpointId: null });
      const second = await thread.wake();
      expect(await ended(second, run.runId)).toMatchObject({ notes: { stop_reason: "subagent_limit_capped" } });
    });
  });
});

describe("R46 R47 what stood before a run", () => {
  it("a run's own delegations are its own in the ledger, run after run", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const first = await startRun(runtime, DELEGATE);
      await ended(runtime, first.runId);
      const second = await startRun(runtime, DELEGATE);
      await ended(runtime, second.runId);
      const { delegations = [] } = await stateOf(runtime);
      expect(delegations.map(({ run_id, status }) => [run_id, status])).toEqual([
        [first.runId, "completed"],
        [second.runId, "completed"],
      ]);
    });
  });

  it("calls that stood in the thread before a run that brings no Human never become its own", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const first = await startRun(runtime, "@ say hi\n@ say again");
      await ended(runtime, first.runId);
      const { graph, configurable } = await runtime.context.graphs.forState();
      // As a store has it that never kept a ledger: a call with its result, and no entry.
      const call = { id: "old", name: "task", args: { description: "old", prompt: "p", subagent_type: "bash" } };
      const answer = new AIMessage({ id: "m1", content: "", tool_calls: [call] });
      const kwargs = { subagent_status: "completed", subagent_result_brief: "42" };
      const result = new ToolMessage({ id: "m2", tool_call_id: "old", content: "42", additional_kwargs: kwargs });
      await graph.updateState({ configurable }, { messages: [answer, result] }, "tools");
      const second = await startRun(runtime, "", { input: null });
      expect(await ended(runtime, second.runId)).toMatchObject({ status: "success" });
      const { delegations = [], messages } = await stateOf(runtime);
      expect(messages.at(-1)?.getType()).toBe("ai");
      expect(delegations).toEqual([]);
    });
  });
});

describe("a run that crashed and is given up", () => {
  it("leaves no ledger entry under way and no call without a result", async () => {
    await withWakes(async (thread) => {
      let starts = 0;
      const hang: Tool = {
        name: "hang",
        description: "Never ends.",
        parameters: z.object({}),
        recovery: "safe",
        execute: () => {
          starts += 1;
          return new Promise(() => {});
        },
      };
      const options = { tools: [hang], config: { runtime: { recovery_attempts: 1 } } };
      const run = await startRun(await thread.create(options), "@ delegate general-purpose :: slow :: @ call hang {}");
      for (const wanted of [1, 2]) {
        await eventually(
          () => starts,
          (count) => count === wanted,
        );
        await thread.wake(options);
      }
      const second = thread.sleeping(options);
      expect(second.context.runs.find(run.runId)).toMatchObject({ status: "error", error: { error: "RecoveryError" } });
      const { delegations = [], messages } = await stateOf(second);
      expect(delegations.map(({ status, run_id }) => [status, run_id])).toEqual([["cancelled", run.runId]]);
      expect(pendingCalls(messages)).toEqual([]);
      expect(messages.at(-1)?.additional_kwargs).toMatchObject({ subagent_status: "cancelled" });
    });
  });
});
