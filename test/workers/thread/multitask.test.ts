/** Runs that come while another is at work: each strategy over a real object, and what a crash in each phase leaves. */
import { describe, expect, it } from "vitest";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { RunRecord } from "../../../src/platform/durable-storage/run-store.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import type { RpcResult } from "../../../src/protocol/errors.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { asking } from "../../support/http.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, tomorrow, withWakes } from "../../support/thread-wakes.ts";

/** A tool that is at work until the test lets it go, or its run ends. */
function gate() {
  const opened = Promise.withResolvers<undefined>();
  const entered = Promise.withResolvers<undefined>();
  const tool = plainTool("hold", async (_args, context) => {
    entered.resolve(undefined);
    const aborted = new Promise<void>((resolve) => {
      context.signal.addEventListener("abort", () => {
        resolve();
      });
    });
    await Promise.race([opened.promise, aborted]);
    return succeeded("held");
  });
  return { tool, entered: entered.promise, open: () => opened.resolve(undefined) };
}

const HOLDS = "@ call hold {}\n@ say first";

async function create(
  runtime: ThreadRuntime,
  text: string,
  options: Record<string, unknown> = {},
): Promise<RpcResult<RunRecord>> {
  return runtime.runs.create({ graph_id: "lead_agent", body: createRunBodySchema.parse(asking(text, options)) });
}

function ended({ context }: ThreadRuntime, runId: string): Promise<RunRecord | undefined> {
  return eventually(
    async () => context.runs.find(runId),
    (run) =>
      (run === undefined || !["pending", "running"].includes(run.status)) && context.live.get(runId) === undefined,
  );
}

async function messagesOf({ context }: ThreadRuntime): Promise<string[]> {
  const { graph, configurable } = await context.graphs.forState();
  const { messages = [] } = (await graph.getState({ configurable })).values as Partial<ThreadState>;
  return messages.map((message) => message.text);
}

interface Logged {
  readonly seq: number;
  readonly run_id: string;
  readonly event_type: string;
}

async function logOf({ context }: ThreadRuntime, thread: ThreadWakes): Promise<Logged[]> {
  await context.flush.flush();
  const query = "SELECT seq, run_id, event_type FROM run_events WHERE thread_id = ?1 ORDER BY seq";
  return (await context.deps.db.prepare(query).bind(thread.threadId).all<Logged>()).results;
}

const lifecycle = (log: readonly Logged[], runId: string) =>
  log.filter((row) => row.run_id === runId && row.event_type.startsWith("run.")).map((row) => row.event_type);

async function projected({ context }: ThreadRuntime, thread: ThreadWakes) {
  await context.flush.flush();
  const of = context.deps.db.prepare("SELECT status FROM threads WHERE thread_id = ?1").bind(thread.threadId);
  const runs = context.deps.db.prepare("SELECT run_id, status FROM runs WHERE thread_id = ?1").bind(thread.threadId);
  const rows = (await runs.all<{ run_id: string; status: string }>()).results;
  return {
    thread: (await of.first<{ status: string }>())?.status,
    runs: new Map(rows.map((r) => [r.run_id, r.status])),
  };
}

/** Every row of the checkpointer, as it is stored. */
function checkpointRows(thread: ThreadWakes): string {
  const tables = ["checkpoints", "checkpoint_writes", "checkpoint_chunks", "delegations", "tool_starts"];
  return JSON.stringify(
    tables.map((table) =>
      thread.storage.sql
        .exec(`SELECT * FROM ${table}`)
        .toArray()
        .map((row) =>
          Object.values(row).map((value) => (value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value)),
        ),
    ),
  );
}

describe("multitask_strategy", () => {
  it("enqueue: runs wait as pending, start in the order of their acceptance, each on the state the one before left", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool] });
      const first = await startRun(runtime, HOLDS);
      await hold.entered;
      const second = await startRun(runtime, "@ say second", { multitask_strategy: "enqueue" });
      const third = await startRun(runtime, "@ say third", { multitask_strategy: "enqueue" });
      expect(second).toMatchObject({ status: "pending", baseCheckpointId: null, attempt: 0 });
      expect((await projected(runtime, thread)).runs.get(third.runId)).toBe("pending");
      hold.open();
      await ended(runtime, third.runId);
      expect(runtime.context.runs.list({ limit: 9, offset: 0 }).map((run) => run.status)).toEqual(
        Array(3).fill("success"),
      );
      expect(await messagesOf(runtime)).toEqual([
        HOLDS,
        "",
        "held",
        "first",
        "@ say second",
        "second",
        "@ say third",
        "third",
      ]);
      const [one, two, three] = [first, second, third].map(({ runId }) => runtime.context.runs.find(runId)!);
      expect(two!.baseCheckpointId).toBe(one!.finalCheckpointId);
      expect(three!.baseCheckpointId).toBe(two!.finalCheckpointId);
      const log = await logOf(runtime, thread);
      expect(log.map((row) => row.seq)).toEqual(log.map((_, index) => index + 1));
      expect(lifecycle(log, third.runId)).toEqual(["run.queued", "run.start", "run.end"]);
      expect(await projected(runtime, thread)).toMatchObject({ thread: "idle" });
    });
  });

  it("a run that waits for later takes no frames from the one that just ended", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool], config: { runtime: { checkpoint_runs_kept: 1 } } });
      const { runs, frames } = runtime.context;
      const before = await startRun(runtime, "@ say before");
      await ended(runtime, before.runId);
      const first = await startRun(runtime, HOLDS);
      await hold.entered;
      const later = await startRun(runtime, "@ say later", { multitask_strategy: "enqueue", after_seconds: 3_600 });
      hold.open();
      await ended(runtime, first.runId);
      // Pruning has been: what only the run before had is gone.
      await eventually(
        async () => frames.has(before.runId),
        (kept) => !kept,
      );
      expect([runs.find(later.runId)!.status, frames.has(first.runId)]).toEqual(["pending", true]);
    });
  });

  it("reject: the thread is busy while a run waits, and the refusal names it", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const waiting = await startRun(runtime, "@ say later", { after_seconds: 60 });
      const refused = await create(runtime, "@ say now");
      expect(refused).toMatchObject({ ok: false, error: { code: "thread_busy", details: { run_id: waiting.runId } } });
      expect(await projected(runtime, thread)).toMatchObject({ thread: "busy" });
      expect((await runtime.threads.get()) as unknown).toMatchObject({ value: { status: "busy" } });
    });
  });

  it("interrupt: the run at work ends as interrupted with its calls closed, then the new one starts", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool] });
      const first = await startRun(runtime, HOLDS);
      await hold.entered;
      const queued = await startRun(runtime, "@ say queued", { multitask_strategy: "enqueue" });
      const second = await startRun(runtime, "@ say second", { multitask_strategy: "interrupt" });
      expect(second.status).toBe("pending");
      // The request to end is stored with the acceptance, and a run that had not started ends with it.
      expect(runtime.context.runs.find(first.runId)).toMatchObject({ cancel: { action: "interrupt" } });
      expect(runtime.context.runs.find(queued.runId)).toMatchObject({ status: "interrupted", attempt: 0 });
      await ended(runtime, second.runId);
      expect(runtime.context.runs.find(first.runId)).toMatchObject({ status: "interrupted", interrupts: null });
      expect(runtime.context.runs.find(second.runId)).toMatchObject({ status: "success" });
      const texts = await messagesOf(runtime);
      expect(texts.slice(0, 2)).toEqual([HOLDS, ""]);
      expect(texts[2]).toMatch(/^Cancelled: /);
      expect(texts.slice(3)).toEqual(["@ say second", "second"]);
      const log = await logOf(runtime, thread);
      expect(lifecycle(log, first.runId)).toEqual(["run.start", "run.end"]);
      expect(lifecycle(log, queued.runId)).toEqual(["run.queued", "run.end"]);
    });
  });

  it("rollback: the run at work is gone, the state is to the byte what it was, and the new one starts from there", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool] });
      const before = await startRun(runtime, "@ say before");
      await ended(runtime, before.runId);
      await logOf(runtime, thread);
      const stored = checkpointRows(thread);
      const { runId } = await startRun(runtime, `@ & delegate general-purpose :: one :: @ say found\n${HOLDS}`);
      await hold.entered;
      expect(checkpointRows(thread)).not.toBe(stored);
      const lastSeq = (await logOf(runtime, thread)).at(-1)!.seq;
      const cancelled = await runtime.runs.cancel(runId, { wait: true, action: "rollback" });
      expect(cancelled.ok).toBe(true);
      expect(checkpointRows(thread)).toBe(stored);
      expect(runtime.context.runs.find(runId)).toBeUndefined();
      expect(runtime.context.frames.has(runId)).toBe(false);
      expect((await logOf(runtime, thread)).filter((row) => row.run_id === runId)).toEqual([]);
      expect(await projected(runtime, thread)).toEqual({ thread: "idle", runs: new Map([[before.runId, "success"]]) });
      const next = await startRun(runtime, "@ say next", { multitask_strategy: "rollback" });
      await ended(runtime, next.runId);
      expect(await messagesOf(runtime)).toEqual(["@ say before", "before", "@ say next", "next"]);
      // Numbers go on where they were: none is given twice.
      expect((await logOf(runtime, thread)).find((row) => row.run_id === next.runId)!.seq).toBeGreaterThan(lastSeq);
    });
  });

  it("rollback of the first run of a thread leaves it empty; what had waited is gone with it", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool] });
      const first = await startRun(runtime, HOLDS);
      await hold.entered;
      const queued = await startRun(runtime, "@ say queued", { multitask_strategy: "enqueue" });
      const next = await startRun(runtime, "@ say next", { multitask_strategy: "rollback" });
      expect(runtime.context.runs.find(queued.runId)).toBeUndefined();
      await ended(runtime, next.runId);
      expect(runtime.context.runs.find(first.runId)).toBeUndefined();
      expect(await messagesOf(runtime)).toEqual(["@ say next", "next"]);
      expect((await projected(runtime, thread)).runs).toEqual(new Map([[next.runId, "success"]]));
    });
  });
});

describe("a crash", () => {
  it("P1: while a run waits its turn: the next wake finishes the one at work, then starts it", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const first = await thread.create({ tools: [hold.tool] });
      const { runId } = await startRun(first, HOLDS);
      await hold.entered;
      const queued = await startRun(first, "@ say second", { multitask_strategy: "enqueue" });
      const free = plainTool("hold", () => succeeded("held again"));
      const second = await thread.wake({ tools: [free] });
      await ended(second, queued.runId);
      expect(second.context.runs.find(runId)).toMatchObject({ status: "success", attempt: 2 });
      expect(second.context.runs.find(queued.runId)).toMatchObject({ status: "success", attempt: 1 });
      expect((await messagesOf(second)).slice(-3)).toEqual(["first", "@ say second", "second"]);
      hold.open();
    });
  });

  it.each(["interrupt", "rollback"] as const)(
    "P1: after %s was accepted and before the old run ended: the next wake ends it so, and starts the new one",
    async (strategy) => {
      await withWakes(async (thread) => {
        const hold = gate();
        const first = await thread.create({ tools: [hold.tool] });
        const { runId } = await startRun(first, HOLDS);
        await hold.entered;
        // Stored as acceptance stores it; the switch was not thrown yet.
        const asleep = thread.sleeping({ tools: [plainTool("hold", () => succeeded("never"))] });
        const queued = await create(asleep, "@ say second", { multitask_strategy: strategy });
        if (!queued.ok) throw new Error(queued.error.message);
        const second = await thread.wake({ tools: [plainTool("hold", () => succeeded("never"))] });
        await ended(second, queued.value.runId);
        const old = second.context.runs.find(runId);
        if (strategy === "rollback") expect(old).toBeUndefined();
        else expect(old).toMatchObject({ status: "interrupted", attempt: 1 });
        const texts = await messagesOf(second);
        expect(texts.slice(-2)).toEqual(["@ say second", "second"]);
        expect(texts).not.toContain("never");
        expect(texts.includes(HOLDS)).toBe(strategy === "interrupt");
        hold.open();
      });
    },
  );

  it("P1: of a thread that only waits for a time: the alarm is set for it, and the wake it makes starts the run", async () => {
    await withWakes(async (thread) => {
      let now = tomorrow();
      const first = await thread.create({ now: () => now });
      const { runId } = await startRun(first, "@ say later", { after_seconds: 3_600 });
      await first.arm();
      expect(await thread.storage.getAlarm()).toBe(now + 3_600_000);
      const second = await thread.wake({ now: () => now });
      expect(second.context.runs.find(runId)).toMatchObject({ status: "pending" });
      now += 3_600_000;
      await second.onAlarm();
      await ended(second, runId);
      expect(second.context.runs.find(runId)).toMatchObject({ status: "success" });
    });
  });
});

describe("a run that waits", () => {
  it("is cancelled before it starts: interrupted, its thread idle, its reason told, and never a model request", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const { runId } = await startRun(runtime, "@ say never", { after_seconds: 60 });
      const options = { wait: true, action: "interrupt", reason: "changed my mind" } as const;
      expect((await runtime.runs.cancel(runId, options)).ok).toBe(true);
      expect(runtime.context.runs.find(runId)).toMatchObject({
        status: "interrupted",
        attempt: 0,
        cancel: { reason: "changed my mind" },
      });
      expect(await projected(runtime, thread)).toEqual({ thread: "idle", runs: new Map([[runId, "interrupted"]]) });
      expect(await messagesOf(runtime)).toEqual([]);
      // Twice is as once.
      expect((await runtime.runs.cancel(runId, options)).ok).toBe(true);
      expect(lifecycle(await logOf(runtime, thread), runId)).toEqual(["run.queued", "run.end"]);
    });
  });

  it("is checked again when it starts: a removal of a message that is gone ends it with that reason", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool] });
      const opening = { messages: [{ type: "human", id: "m1", content: "@ say before" }] };
      const created = await create(runtime, "", { input: opening });
      await ended(runtime, created.ok ? created.value.runId : "");
      await startRun(runtime, HOLDS);
      await hold.entered;
      const removal = { input: { messages: [{ type: "remove", id: "m1" }] }, multitask_strategy: "enqueue" };
      const one = await create(runtime, "", removal);
      const two = await create(runtime, "", removal);
      if (!one.ok || !two.ok) throw new Error("refused");
      hold.open();
      await ended(runtime, two.value.runId);
      expect(runtime.context.runs.find(one.value.runId)!.status).not.toBe("pending");
      expect(runtime.context.runs.find(two.value.runId)).toMatchObject({
        status: "error",
        error: { error: "RunNotStartedError", message: expect.stringContaining("m1") as string },
      });
      expect(lifecycle(await logOf(runtime, thread), two.value.runId)).toEqual([
        "run.queued",
        "run.start",
        "run.error",
      ]);
      const text = await runtime.streams
        .stream(two.value, { afterId: 0, modes: [], namespaces: [], cancelOnDisconnect: false })
        .text();
      expect(text).toContain("event: error");
    });
  });

  it("keeps whoever joins it until it has run; one that is rolled back tells its readers so and ends", async () => {
    await withWakes(async (thread) => {
      const hold = gate();
      const runtime = await thread.create({ tools: [hold.tool] });
      const first = await startRun(runtime, HOLDS);
      await hold.entered;
      const readFirst = runtime.streams
        .stream(first, { afterId: 0, modes: [], namespaces: [], cancelOnDisconnect: false })
        .text();
      const joinFirst = runtime.streams.join(first, { cancelOnDisconnect: false }).json();
      const second = await startRun(runtime, "@ say second", { multitask_strategy: "rollback" });
      const readSecond = runtime.streams
        .stream(second, { afterId: 0, modes: [], namespaces: [], cancelOnDisconnect: false })
        .text();
      const joinSecond = runtime.streams.join(second, { cancelOnDisconnect: false }).json<{ messages: unknown[] }>();
      expect(await readFirst).toMatch(/event: error\ndata: \{"error":"RunRolledBack"[^\n]*\nid: \d+\n\n$/);
      expect(await joinFirst).toMatchObject({ __error__: { error: "RunRolledBack" } });
      expect((await joinSecond).messages).toHaveLength(2);
      expect(await readSecond).toMatch(/^event: metadata[\s\S]*second/);
    });
  });
});
