/** A run that waits for an answer, and its end because somebody asked for it; and a run that answers, taken back. */
import { interrupt } from "@langchain/langgraph";
import { isToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { askTwice, GraphGates } from "../../support/asking-graphs.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

/** A delegation that has ended, one whose child asks, and the lead's own question. */
const WAITS = [
  "@ & delegate general-purpose :: one :: @ say found",
  "@ & delegate general-purpose :: two :: <<'CHILD'",
  "@ call ask {}",
  "@ say never",
  "CHILD",
  "@ & call ask {}",
  "@ say done",
].join("\n");

function asks(isAnswered: () => boolean) {
  return plainTool("ask", () => succeeded(isAnswered() ? "known" : String(interrupt({ question: "?" }))));
}

async function waiting(thread: ThreadWakes, isAnswered: () => boolean = () => false) {
  const runtime = await thread.create({ tools: [asks(isAnswered)] });
  const before = await startRun(runtime, "@ say before");
  await runtime.context.live.get(before.runId)!.done;
  const { runId } = await startRun(runtime, WAITS);
  await runtime.context.live.get(runId)!.done;
  expect(runtime.context.runs.find(runId)).toMatchObject({ status: "interrupted", interrupts: [{}, {}] });
  return { runtime, runId, before: before.runId };
}

async function goOn(runtime: ThreadRuntime): Promise<string> {
  const body = createRunBodySchema.parse({ assistant_id: "lead_agent", input: null });
  const created = await runtime.runs.create({ graph_id: "lead_agent", body });
  if (!created.ok) throw new Error(created.error.message);
  await runtime.context.live.get(created.value.runId)!.done;
  return created.value.runId;
}

async function stateOf({ context }: ThreadRuntime): Promise<ThreadState> {
  const { graph, configurable } = await context.graphs.forState();
  return (await graph.getState({ configurable })).values as ThreadState;
}

/** Every row that tells the thread's state, as it is stored. */
function stateRows(thread: ThreadWakes): string {
  const tables = ["checkpoints", "checkpoint_writes", "checkpoint_chunks", "delegations", "tool_starts"];
  return JSON.stringify(
    tables.map((table) =>
      thread.storage.sql
        .exec(`SELECT * FROM ${table}`)
        .toArray()
        .map((row) =>
          Object.values(row).map((cell) => (cell instanceof ArrayBuffer ? [...new Uint8Array(cell)] : cell)),
        ),
    ),
  );
}

async function threadStatus({ context, threads }: ThreadRuntime, thread: ThreadWakes) {
  await context.flush.flush();
  const row = context.deps.db.prepare("SELECT status FROM threads WHERE thread_id = ?1").bind(thread.threadId);
  const view = await threads.get();
  return [(await row.first<{ status: string }>())?.status, view.ok ? view.value.status : view.error.code];
}

async function expectClosed(runtime: ThreadRuntime, thread: ThreadWakes, runId: string): Promise<void> {
  await expectStepClosed(runtime, thread);
  expect(runtime.context.runs.find(runId)).toMatchObject({ status: "interrupted", interrupts: null });
}

async function expectStepClosed(runtime: ThreadRuntime, thread: ThreadWakes): Promise<void> {
  const { messages, delegations = [] } = await stateOf(runtime);
  expect(delegations.map(({ description, status }) => [description, status])).toEqual([
    ["one", "completed"],
    ["two", "cancelled"],
  ]);
  const calls = messages.flatMap((message) =>
    "tool_calls" in message ? (message.tool_calls as { id: string }[]) : [],
  );
  expect(messages.filter(isToolMessage).map((message) => message.tool_call_id)).toEqual(calls.map(({ id }) => id));
  expect(runtime.context.delegations.all()).toEqual([]);
  expect(await threadStatus(runtime, thread)).toEqual(["idle", "idle"]);
}

describe("cancel of a run that waits for an answer", () => {
  it("P5: ends the wait: open calls and delegations are cancelled, finished work stays, the thread is idle", async () => {
    await withWakes(async (thread) => {
      const { runtime, runId } = await waiting(thread);
      expect(await threadStatus(runtime, thread)).toEqual(["interrupted", "interrupted"]);
      expect((await runtime.runs.cancel(runId, { wait: true, reason: "enough" })).ok).toBe(true);
      await expectClosed(runtime, thread, runId);
      expect(runtime.context.runs.find(runId)!.cancel).toMatchObject({ reason: "enough" });
      // Twice is as once, and the thread is usable.
      expect((await runtime.runs.cancel(runId, { wait: true })).ok).toBe(true);
      const next = await startRun(runtime, "@ say usable");
      await runtime.context.live.get(next.runId)!.done;
      expect((await stateOf(runtime)).messages.at(-1)?.text).toBe("usable");
    });
  });

  it("P1: is finished by the next wake when the object died with the request stored", async () => {
    await withWakes(async (thread) => {
      const { runtime, runId } = await waiting(thread);
      const run = runtime.context.runs.find(runId)!;
      runtime.context.runs.save({ ...run, cancelRequested: true, cancel: { v: 1, action: "interrupt" } });
      await expectClosed(await thread.wake({ tools: [asks(() => false)] }), thread, runId);
    });
  });

  it("P2 P5: by its deletion: what had finished in its step stays, what is open is cancelled, no child's row is left", async () => {
    await withWakes(async (thread) => {
      const { runtime, runId } = await waiting(thread);
      expect((await runtime.runs.delete(runId)).ok).toBe(true);
      expect(runtime.context.runs.find(runId)).toBeUndefined();
      await expectStepClosed(runtime, thread);
      const view = await runtime.threads.get();
      expect(view.ok && view.value.interrupts).toEqual({});
      const next = await startRun(runtime, "@ say usable");
      await runtime.context.live.get(next.runId)!.done;
      await expectStepClosed(runtime, thread);
      const nested = "SELECT 1 FROM checkpoints WHERE checkpoint_ns <> ''";
      expect(thread.storage.sql.exec(nested).toArray()).toEqual([]);
    });
  });

  it("with rollback takes it back whole: the thread is as before the run, which is gone", async () => {
    await withWakes(async (thread) => {
      const { runtime, runId, before } = await waiting(thread);
      expect((await runtime.runs.cancel(runId, { wait: true, action: "rollback" })).ok).toBe(true);
      expect(runtime.context.runs.find(runId)).toBeUndefined();
      expect((await stateOf(runtime)).messages.map((message) => message.text)).toEqual(["@ say before", "before"]);
      expect(runtime.context.delegations.all()).toEqual([]);
      const head = runtime.context.headCheckpointId();
      expect(head).toBe(runtime.context.runs.find(before)!.finalCheckpointId);
      expect(await threadStatus(runtime, thread)).toEqual(["idle", "idle"]);
    });
  });
});

describe("cancel of a run of the operator's own graph that waits", () => {
  it("leaves nothing to go on with: no next step, no question, the thread idle, what had run stays", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create({ config: { graphs: { g: askTwice(new GraphGates()) } } });
      const body = createRunBodySchema.parse({ assistant_id: "g", input: { log: ["in"] } });
      const created = await runtime.runs.create({ graph_id: "g", body });
      if (!created.ok) throw new Error(created.error.message);
      const { runId } = created.value;
      await runtime.context.live.get(runId)!.done;
      expect(await threadStatus(runtime, thread)).toEqual(["interrupted", "interrupted"]);
      expect((await runtime.runs.cancel(runId, { wait: true })).ok).toBe(true);
      expect(await threadStatus(runtime, thread)).toEqual(["idle", "idle"]);
      const state = await runtime.state.get({});
      expect(state).toMatchObject({ ok: true, value: { next: [], tasks: [], values: { log: ["in", "before"] } } });
    });
  });
});

describe("rollback of a run that went on where another one waited", () => {
  /** A run that answers and is then held, so that it can be taken back in the middle. */
  async function answering(thread: ThreadWakes, script: string) {
    let isAnswered = false;
    const entered = Promise.withResolvers<undefined>();
    const hold = plainTool("hold", async (_args, { signal }) => {
      entered.resolve(undefined);
      await new Promise((resolve) => {
        signal.addEventListener("abort", resolve);
      });
      return succeeded("never");
    });
    const runtime = await thread.create({ tools: [asks(() => isAnswered), hold] });
    const first = await startRun(runtime, script);
    await runtime.context.live.get(first.runId)!.done;
    expect(runtime.context.runs.find(first.runId)).toMatchObject({ status: "interrupted" });
    await runtime.context.flush.flush();
    const stored = stateRows(thread);
    isAnswered = true;
    const body = createRunBodySchema.parse({ assistant_id: "lead_agent", input: null });
    const created = await runtime.runs.create({ graph_id: "lead_agent", body });
    if (!created.ok) throw new Error(created.error.message);
    await entered.promise;
    isAnswered = false;
    return { runtime, first: first.runId, second: created.value.runId, stored };
  }

  it("brings the wait back to the byte, its child's checkpoints, writes and delegation included, and it can go on", async () => {
    await withWakes(async (thread) => {
      const script = WAITS.replace("@ say done", "@ call hold {}\n@ say done");
      const { runtime, first, second, stored } = await answering(thread, script);
      expect(stateRows(thread)).not.toBe(stored);
      expect((await runtime.runs.cancel(second, { wait: true, action: "rollback" })).ok).toBe(true);
      expect(runtime.context.runs.find(second)).toBeUndefined();
      expect(stateRows(thread)).toBe(stored);
      expect(await threadStatus(runtime, thread)).toEqual(["interrupted", "interrupted"]);
      const third = await thread.wake({
        tools: [asks(() => true), plainTool("hold", () => succeeded("held"))],
      });
      await goOn(third);
      const { messages, delegations = [] } = await stateOf(third);
      expect(messages.at(-1)?.text).toBe("done");
      expect(delegations.map(({ status }) => status)).toEqual(["completed", "completed"]);
      expect(third.context.runs.find(first)).toMatchObject({ status: "interrupted" });
    });
  });

  it("keeps nothing once that run has ended by itself", async () => {
    await withWakes(async (thread) => {
      let isAnswered = false;
      const { runtime } = await waiting(thread, () => isAnswered);
      isAnswered = true;
      const runId = await goOn(runtime);
      expect(runtime.context.runs.find(runId)).toMatchObject({ status: "success" });
      const count = (query: string) => thread.storage.sql.exec<{ n: number }>(query).one().n;
      expect(count("SELECT count(*) AS n FROM checkpoint_writes WHERE thread_id LIKE 'base/%'")).toBe(0);
      expect(count("SELECT count(*) AS n FROM checkpoints WHERE checkpoint_ns <> ''")).toBe(0);
      expect(runtime.context.delegations.all()).toEqual([]);
    });
  });
});

describe("a run that went on from a wait and waits again", () => {
  /** The first run asks; the second goes on without an answer and so asks again. */
  async function askingAgain(thread: ThreadWakes) {
    const { runtime, runId: first } = await waiting(thread);
    await runtime.context.flush.flush();
    const stored = stateRows(thread);
    const second = await goOn(runtime);
    expect(runtime.context.runs.find(second)).toMatchObject({ status: "interrupted", interrupts: [{}, {}] });
    return { runtime, first, second, stored };
  }
  const copies = ({ storage }: ThreadWakes) =>
    storage.sql.exec("SELECT 1 FROM checkpoint_writes WHERE thread_id LIKE 'base/%'").toArray().length;

  it("is taken back to the byte, its frames too, and the first one waits again", async () => {
    await withWakes(async (thread) => {
      const { runtime, first, second, stored } = await askingAgain(thread);
      expect(runtime.context.frames.has(second)).toBe(true);
      expect((await runtime.runs.cancel(second, { wait: true, action: "rollback" })).ok).toBe(true);
      expect(stateRows(thread)).toBe(stored);
      expect(runtime.context.frames.has(second)).toBe(false);
      expect(runtime.context.runs.newestStarted()).toMatchObject({ runId: first, interrupts: [{}, {}] });
    });
  });

  it("keeps nothing of what it could have gone back to once somebody ends it", async () => {
    await withWakes(async (thread) => {
      const { runtime, second } = await askingAgain(thread);
      const { toolStarts } = runtime.context;
      expect(copies(thread)).toBeGreaterThan(0);
      toolStarts.add("call_open", "");
      expect((await runtime.runs.cancel(second, { wait: true })).ok).toBe(true);
      expect(copies(thread)).toBe(0);
      expect(toolStarts.all()).toEqual([]);
      await expectClosed(runtime, thread, second);
    });
  });

  it("is refused a rollback once a later run started from it, also when that one was taken back; the state stays", async () => {
    await withWakes(async (thread) => {
      const { runtime, second } = await askingAgain(thread);
      const third = await goOn(runtime);
      expect((await runtime.runs.cancel(third, { wait: true, action: "rollback" })).ok).toBe(true);
      const stored = stateRows(thread);
      const refused = await runtime.runs.cancel(second, { wait: true, action: "rollback" });
      expect(refused).toMatchObject({ ok: false, error: { code: "not_cancellable" } });
      expect(stateRows(thread)).toBe(stored);
      expect(runtime.context.runs.find(second)).toMatchObject({ status: "interrupted", interrupts: [{}, {}] });
    });
  });
});
