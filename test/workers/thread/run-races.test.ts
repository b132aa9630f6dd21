/** Runs that meet something in an awkward moment: a client that leaves, a child that goes on, a branch taken back. */
import { expect, it } from "vitest";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { checkFreshRun } from "../../../src/durable-objects/check-fresh-run.ts";
import { webhookSender } from "../../../src/platform/webhook/webhook-sender.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { asking } from "../../support/http.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

/** Until nothing of the run is at work. */
function ended({ context }: ThreadRuntime, runId: string) {
  return eventually(
    () => context.runs.find(runId),
    (run) => !["pending", "running"].includes(run?.status ?? "gone") && context.live.get(runId) === undefined,
  );
}

/** Every row of the checkpointer and of what hangs on it, as it is stored. */
function stateRows({ storage }: ThreadWakes): string[] {
  const tables = ["checkpoints", "checkpoint_writes", "checkpoint_chunks", "delegations", "tool_starts"];
  const shown = (value: SqlStorageValue) => (value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value);
  return tables.flatMap((table) => {
    const rows = storage.sql.exec(`SELECT * FROM ${table}`).toArray();
    return rows.map((row) => JSON.stringify([table, ...Object.values(row).map(shown)])).toSorted();
  });
}

/** A tool that is at work until it is let go, whatever becomes of its run. */
function deaf() {
  const entered = Promise.withResolvers<undefined>();
  const released = Promise.withResolvers<undefined>();
  const returned = Promise.withResolvers<undefined>();
  const tool = plainTool("hold", async () => {
    entered.resolve(undefined);
    await released.promise;
    returned.resolve(undefined);
    return succeeded("late");
  });
  return { tool, entered: entered.promise, release: () => released.resolve(undefined), returned: returned.promise };
}

it.each(["stream", "join"] as const)(
  "a client of the %s that leaves after its run asked, with on_disconnect cancel, takes no question away",
  async (how) => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const run = await startRun(runtime, "@ call ls {}\n@ say done", { interrupt_before: ["tools"] });
      const options = { afterId: 0, modes: [], namespaces: [], cancelOnDisconnect: true };
      const response = how === "stream" ? runtime.streams.stream(run, options) : runtime.streams.join(run, options);
      const asked = await ended(runtime, run.runId);
      expect(asked).toMatchObject({ status: "interrupted", interrupts: [] });
      await response.body!.cancel();
      // A cancel would be an edit of the state: it is asked for by now.
      await runtime.context.edits.settled();
      expect(runtime.context.runs.find(run.runId)).toEqual(asked);
      const answer = await startRun(runtime, "", { input: null });
      expect(await ended(runtime, answer.runId)).toMatchObject({ status: "success" });
    });
  },
);

it("a run from any older checkpoint that is rolled back leaves every row as it was, those of the checkpoint it left from too", async () => {
  await withWakes(async (thread) => {
    let isHeld = false;
    const entered: string[] = [];
    const held = plainTool("wait", async (_args, { signal }) => {
      entered.push("wait");
      if (!isHeld) return succeeded("went on");
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve());
      });
      return succeeded("aborted");
    });
    const runtime = await thread.create({ tools: [held] });
    await ended(runtime, (await startRun(runtime, "@ call wait {}\n@ say one")).runId);
    await ended(runtime, (await startRun(runtime, "@ say two")).runId);
    isHeld = true;
    const stored = stateRows(thread);
    const ids = thread.storage.sql.exec<{ id: string }>("SELECT checkpoint_id AS id FROM checkpoints ORDER BY id");
    const older = ids.toArray().slice(0, -1);
    expect(older.length).toBeGreaterThan(4);
    const script = "@ & delegate general-purpose :: one :: @ say found\n@ call wait {}\n@ say never";
    for (const { id } of older) {
      const before = entered.length;
      const { runId } = await startRun(runtime, script, { checkpoint_id: id });
      await eventually(
        () => entered.length,
        (count) => count > before,
      );
      expect(stateRows(thread)).not.toEqual(stored);
      expect((await runtime.runs.cancel(runId, { wait: true, action: "rollback" })).ok).toBe(true);
      expect(stateRows(thread)).toEqual(stored);
    }
  });
});

it("P3: a child that ignores its abort and ends after the rollback writes nothing: no state, no event, no frame, no slot", async () => {
  await withWakes(async (thread) => {
    const hold = deaf();
    const runtime = await thread.create({ tools: [hold.tool] });
    const { context } = runtime;
    await ended(runtime, (await startRun(runtime, "@ say before")).runId);
    const stored = stateRows(thread);
    const child = "<<'CHILD'\n@ call hold {}\n@ say child done\nCHILD";
    const { runId } = await startRun(runtime, `@ delegate general-purpose :: one :: ${child}\n@ say never`, {
      stream_mode: ["values", "custom"],
    });
    await hold.entered;
    expect((await runtime.runs.cancel(runId, { wait: true, action: "rollback" })).ok).toBe(true);
    expect(stateRows(thread)).toEqual(stored);
    hold.release();
    await hold.returned;
    // Whatever the child would still do, a run of its kind does as well and is slower: it goes through the same steps.
    const next = await startRun(runtime, "@ delegate general-purpose :: two :: @ say found\n@ say after");
    expect(await ended(runtime, next.runId)).toMatchObject({ status: "success" });
    expect(await runtime.runs.cancel(runId, { wait: true })).toMatchObject({ ok: false });
    const written = stateRows(thread).filter((row) => row.includes(runId));
    expect(written).toEqual([]);
    expect(context.frames.has(runId)).toBe(false);
    await context.flush.flush();
    const events = context.deps.db.prepare("SELECT event_type FROM run_events WHERE thread_id = ?1 AND run_id = ?2");
    expect((await events.bind(thread.threadId, runId).all()).results).toEqual([]);
    expect(context.admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
    const nested = "SELECT DISTINCT checkpoint_ns FROM checkpoints WHERE checkpoint_ns <> ''";
    expect(thread.storage.sql.exec(nested).toArray()).toEqual([]);
  });
});

it("creates of one Idempotency-Key with enqueue are one waiting run, and the same run once it has ended", async () => {
  await withWakes(async (thread) => {
    const hold = deaf();
    const runtime = await thread.create({ tools: [hold.tool] });
    await startRun(runtime, "@ call hold {}\n@ say first");
    await hold.entered;
    const body = createRunBodySchema.parse(asking("@ say once", { multitask_strategy: "enqueue" }));
    const command = { graph_id: "lead_agent", body, idempotency: { key: "key", body_hash: "hash" } };
    const taken = await Promise.all(Array.from({ length: 5 }, () => runtime.runs.create(command)));
    expect(taken.map((each) => each.ok && each.value.status)).toEqual(Array(5).fill("pending"));
    const [runId, ...others] = new Set(taken.map((each) => (each.ok ? each.value.runId : "")));
    expect(others).toEqual([]);
    hold.release();
    await ended(runtime, runId!);
    expect(await runtime.runs.create(command)).toMatchObject({ ok: true, value: { runId, status: "success" } });
    expect(runtime.runs.list({ limit: 9, offset: 0 })).toHaveLength(2);
  });
});

it("a rolled-back run's Idempotency-Key is refused: its run is gone and is not executed a second time", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create();
    const body = createRunBodySchema.parse(asking("@ say once", { after_seconds: 60 }));
    const command = { graph_id: "lead_agent", body, idempotency: { key: "key", body_hash: "hash" } };
    const created = await runtime.runs.create(command);
    const runId = created.ok ? created.value.runId : "";
    expect((await runtime.runs.cancel(runId, { wait: true, action: "rollback" })).ok).toBe(true);
    const again = await runtime.runs.create(command);
    expect(again).toMatchObject({ ok: false, error: { code: "idempotency_conflict", details: { run_id: runId } } });
    expect(runtime.runs.list({ limit: 9, offset: 0 })).toEqual([]);
  });
});

it("a run of a batch is refused before any starts for what only a thread's object knows: webhook, checkpoint, command", async () => {
  await withWakes(async (thread) => {
    const { context } = await thread.create();
    const webhooks = webhookSender({ secret: "s", allowedHosts: [], timeoutMs: 1_000, fetchIn: () => fetch });
    const check = (options: Record<string, unknown>, deps = { ...context.deps, webhooks }) =>
      checkFreshRun(deps, "t", {
        graph_id: "lead_agent",
        body: createRunBodySchema.parse(asking("@ say x", options)),
      });
    expect(await check({ webhook: "https://hooks.example.com/" })).toEqual({ ok: true, value: null });
    const refused = (code: string) => ({ ok: false, error: { code } });
    expect(await check({ webhook: "http://169.254.169.254/" })).toMatchObject(refused("invalid_request"));
    expect(await check({ webhook: "https://hooks.example.com/" }, context.deps as never)).toMatchObject(
      refused("unsupported_option"),
    );
    expect(await check({ checkpoint_id: "elsewhere" })).toMatchObject(refused("not_found"));
    expect(await check({ interrupt_before: ["no_node"] })).toMatchObject(refused("invalid_request"));
    expect(await check({ interrupt_after: ["model", "no_node"] })).toMatchObject(refused("invalid_request"));
    expect(await check({ interrupt_before: ["model"], interrupt_after: "*" })).toEqual({ ok: true, value: null });
    expect(await check({ checkpoint: { checkpoint_ns: "child:1" } })).toMatchObject(refused("unsupported_option"));
    expect(await check({ checkpoint_id: "" })).toMatchObject(refused("invalid_request"));
    expect(await check({ command: { goto: "model" } })).toMatchObject(refused("invalid_request"));
  });
});

it("a state edited since a run asked keeps that run from being rolled back: the edit would go with it", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create();
    const run = await startRun(runtime, "@ call ls {}\n@ say done", { interrupt_before: ["tools"] });
    await ended(runtime, run.runId);
    const edited = await runtime.state.update({ values: { title: "edited" } });
    expect(edited.ok).toBe(true);
    const head = runtime.context.headCheckpointId();
    const refused = await runtime.runs.cancel(run.runId, { wait: true, action: "rollback" });
    expect(refused).toMatchObject({ ok: false, error: { code: "not_cancellable" } });
    expect(runtime.context.headCheckpointId()).toBe(head);
  });
});

it.each(["interrupt", "rollback"] as const)(
  "a %s that comes between the run's row and its start is heard: the run asks no model and no tool",
  async (action) => {
    await withWakes(async (thread) => {
      let calls = 0;
      const counting = plainTool("count", async () => {
        calls += 1;
        return succeeded("counted");
      });
      const runtime = await thread.create({ tools: [counting] });
      const { context } = runtime;
      // The last word of the transaction that accepts a run; what waits for the transaction goes on behind the cancel.
      const { idempotent } = context;
      const note = idempotent.note.bind(idempotent);
      let cancelled: Promise<unknown> | undefined;
      idempotent.note = (command, runId, isOwnThread) => {
        note(command, runId, isOwnThread);
        queueMicrotask(() => {
          expect(context.live.get(runId)).toBeUndefined();
          cancelled = runtime.runs.cancel(runId, { wait: false, action });
        });
      };
      const run = await startRun(runtime, "@ call count {}\n@ say done");
      const end = await ended(runtime, run.runId);
      expect(await cancelled).toMatchObject({ ok: true });
      expect(calls).toBe(0);
      expect(context.headCheckpointId()).toBeNull();
      expect(end?.status).toBe(action === "rollback" ? undefined : "interrupted");
    });
  },
);
