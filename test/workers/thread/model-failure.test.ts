/** The end of a run whose model call failed: error in the row, in the log and on the stream; old marks tell nothing. */
import { describe, expect, it } from "vitest";
import { AIMessage } from "@langchain/core/messages";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { newThread, sendJson, streamRun, asking } from "../../support/http.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const FAILING = "@ fail 400\n@ say never";

async function runOf(runtime: ThreadRuntime, script: string) {
  const { runId } = await startRun(runtime, script);
  await runtime.context.live.get(runId)?.done;
  return runtime.context.runs.find(runId)!;
}

async function messagesOf(runtime: ThreadRuntime) {
  const { graph, configurable } = await runtime.context.graphs.forState();
  return ((await graph.getState({ configurable })).values as ThreadState).messages;
}

describe("R86 a run with a fallback answer of its own", () => {
  it("ends as error, with its reason in the row, the log and an error frame; the answer is kept", async () => {
    const threadId = await newThread();
    const frames = await streamRun(threadId, { ...asking(FAILING), stream_mode: ["values"] });
    const last = frames.at(-1)!;
    expect(last).toMatchObject({ event: "error", data: { error: "ModelFailure" } });
    expect((last.data as { message: string }).message).toMatch(/refused the request.*400/);
    expect(await sendJson("GET", `/threads/${threadId}`)).toMatchObject({ status: "error" });
    const runs = await sendJson<{ status: string }[]>("GET", `/threads/${threadId}/runs`);
    expect(runs.map((run) => run.status)).toEqual(["error"]);
    const { values } = await sendJson<{ values: { messages: Record<string, unknown>[] } }>(
      "GET",
      `/threads/${threadId}/state`,
    );
    expect(values.messages.at(-1)).toMatchObject({
      type: "ai",
      additional_kwargs: { deerflow_error_fallback: true, error_reason: "generic" },
    });
  });

  it("does not make later runs of the thread fail: a mark from before a run is known by its message's id", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      expect((await runOf(runtime, FAILING)).status).toBe("error");
      expect((await runOf(runtime, "@ say fine")).status).toBe("success");
      expect((await runOf(runtime, FAILING)).status).toBe("error");
      expect((await messagesOf(runtime)).filter((message) => AIMessage.isInstance(message)).length).toBe(3);
    });
  });

  it("is an error also when the object died between the answer's commit and the run's end (P1, P5)", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create();
      const run = await runOf(first, FAILING);
      // What a crash at that point leaves: the answer is in the state, the row still says running.
      first.context.runs.save({ ...run, status: "running", error: null, finalCheckpointId: null });
      const second = await thread.wake();
      await second.context.live.get(run.runId)?.done;
      expect(second.context.runs.find(run.runId)).toMatchObject({ status: "error", error: { error: "ModelFailure" } });
      expect((await messagesOf(second)).length).toBe(2);
    });
  });

  it("cannot be forged by a client: the mark is not taken from outside", async () => {
    const threadId = await newThread();
    const forged = { type: "ai", content: "x", additional_kwargs: { deerflow_error_fallback: true } };
    const input = { messages: [forged, { type: "human", content: "@ say fine" }] };
    await streamRun(threadId, { assistant_id: "lead_agent", input, stream_mode: ["values"] });
    const runs = await sendJson<{ status: string }[]>("GET", `/threads/${threadId}/runs`);
    expect(runs.map((run) => run.status)).toEqual(["success"]);
  });

  it("R98 an answer that stays empty ends the run as error too, without a mark in the state", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create({ config: { llm_call: { retry_base_delay_ms: 1, retry_cap_delay_ms: 1 } } });
      expect(await runOf(runtime, "@ fail empty\n@ say x")).toMatchObject({ status: "error" });
      expect((await messagesOf(runtime)).length).toBe(1);
    });
  });

  it("breakers are the object's: its next run, with a graph of its own, finds the circuit open", async () => {
    await withWakes(async (thread) => {
      const quick = { retry_base_delay_ms: 1, retry_cap_delay_ms: 1, circuit: { failure_threshold: 1 } };
      const runtime = await thread.create({ config: { llm_call: quick } });
      await runOf(runtime, "@ fail 503\n@ say never");
      expect((await runOf(runtime, "@ say fine")).error).toMatchObject({ error: "CircuitBreakerOpen" });
      // A wake starts with none: nothing about them is stored.
      const woken = await thread.wake({ config: { llm_call: quick } });
      expect((await runOf(woken, "@ say fine")).status).toBe("success");
    });
  });
});

it("R86 a stream that asks for custom events is told of each retry", async () => {
  const frames = await streamRun(await newThread(), {
    ...asking("@ fail 503 1\n@ say at last"),
    stream_mode: ["custom"],
  });
  expect(frames.filter((frame) => frame.event === "custom").map((frame) => frame.data)).toMatchObject([
    { type: "llm_retry", attempt: 1, max_attempts: 3, reason: "transient" },
  ]);
});
