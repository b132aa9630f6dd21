/** A cancel that meets the run's end, another cancel, or a crash: one winner, the same wherever it is told. */
import { describe, expect, it } from "vitest";
import { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { FailpointName } from "../../../src/domain/shared/failpoint.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

type Hook = (runtime: ThreadRuntime, name: FailpointName) => Promise<void> | undefined;

/** A wake whose run is met at its failpoints. */
async function hooked(thread: ThreadWakes, hook: Hook): Promise<ThreadRuntime> {
  return hookedWake(thread, await thread.create(), hook);
}

async function hookedWake(thread: ThreadWakes, { context }: ThreadRuntime, hook: Hook): Promise<ThreadRuntime> {
  const failpoint = (name: FailpointName) => hook(runtime, name);
  const runtime = new ThreadRuntime(thread.storage, { ...context.deps, failpoint });
  await runtime.wake();
  return runtime;
}

const idOf = ({ context }: ThreadRuntime) => context.runs.activeRuns()[0]?.runId ?? "";

async function toldOf({ context }: ThreadRuntime, thread: ThreadWakes, runId: string) {
  await context.flush.flush();
  const of = async (query: string) => (await context.deps.db.prepare(query).bind(thread.threadId, runId).all()).results;
  const ends = await of(
    `SELECT event_type, content ->> 'status' AS status FROM run_events
     WHERE thread_id = ?1 AND run_id = ?2 AND event_type IN ('run.end', 'run.error')`,
  );
  const runs = await of("SELECT status FROM runs WHERE thread_id = ?1 AND run_id = ?2");
  const [row] = await of("SELECT status FROM threads WHERE thread_id = ?1 AND ?2 <> ''");
  return { row: context.runs.find(runId)?.status, ends, runs, thread: row?.["status"] };
}

const INTERRUPTED = {
  row: "interrupted",
  ends: [{ event_type: "run.end", status: "interrupted" }],
  runs: [{ status: "interrupted" }],
  thread: "idle",
};
const GONE = { row: undefined, ends: [], runs: [], thread: "idle" };

describe("a cancel", () => {
  it.each([
    ["interrupt", INTERRUPTED],
    ["rollback", GONE],
  ] as const)("P1: by %s that is stored while the end is prepared wins over it, everywhere", async (action, told) => {
    await withWakes(async (thread) => {
      let met = 0;
      const runtime = await hooked(thread, async (at, name) => {
        if (name !== "terminal_commit") return;
        met += 1;
        if (met === 1) await at.runs.cancel(idOf(at), { wait: false, action });
      });
      const { runId } = await startRun(runtime, "@ say done");
      await runtime.context.live.get(runId)?.done;
      expect(met).toBeGreaterThan(0);
      expect(await toldOf(runtime, thread, runId)).toEqual(told);
      if (action === "rollback") expect(runtime.context.headCheckpointId()).toBeNull();
    });
  });

  it("by rollback outdoes an earlier interrupt; an interrupt does not undo a rollback", async () => {
    for (const actions of [
      ["interrupt", "rollback"],
      ["rollback", "interrupt"],
    ] as const) {
      await withWakes(async (thread) => {
        const runtime = await hooked(thread, () => undefined);
        const { runId } = await startRun(runtime, "@ say done");
        const [first, second] = actions;
        const both = [
          runtime.runs.cancel(runId, { wait: true, action: first }),
          runtime.runs.cancel(runId, { wait: true, action: second }),
        ];
        expect((await Promise.all(both)).map(({ ok }) => ok)).toEqual([true, true]);
        expect(await toldOf(runtime, thread, runId)).toEqual(GONE);
      });
    }
  });

  it("after a success is refused, by either action, and changes nothing", async () => {
    await withWakes(async (thread) => {
      const runtime = await hooked(thread, () => undefined);
      const { runId } = await startRun(runtime, "@ say done");
      await runtime.context.live.get(runId)?.done;
      for (const action of ["interrupt", "rollback"] as const) {
        const refused = await runtime.runs.cancel(runId, { wait: true, action });
        expect(refused).toMatchObject({ ok: false, error: { code: "not_cancellable" } });
      }
      expect(await toldOf(runtime, thread, runId)).toMatchObject({ row: "success", runs: [{ status: "success" }] });
    });
  });

  it("P1: by rollback whose object dies before it is done is done by the next wake, and what waited starts", async () => {
    await withWakes(async (thread) => {
      const reached = Promise.withResolvers<undefined>();
      const first = await hooked(thread, (_at, name) => {
        if (name !== "rollback") return undefined;
        reached.resolve(undefined);
        return new Promise(() => undefined);
      });
      const { runId } = await startRun(first, "@ say done");
      const next = await startRun(first, "@ say next", { multitask_strategy: "rollback" });
      await reached.promise;
      expect(first.context.runs.find(runId)).toMatchObject({ status: "running", cancel: { action: "rollback" } });
      const second = await thread.wake();
      await eventually(
        async () => second.context.runs.find(next.runId)?.status,
        (status) => status === "success",
      );
      expect(await toldOf(second, thread, runId)).toEqual(GONE);
    });
  });

  it.each([
    ["interrupt", INTERRUPTED],
    ["rollback", GONE],
  ] as const)("P1: by %s that comes while recovery gives the run up wins over that end", async (action, told) => {
    await withWakes(async (thread) => {
      const held = Promise.withResolvers<undefined>();
      const first = await hooked(thread, (_at, name) => {
        if (name !== "model_request") return undefined;
        held.resolve(undefined);
        return new Promise(() => undefined);
      });
      const { runId } = await startRun(first, "@ say done");
      await held.promise;
      const { runs } = first.context;
      const stored = runs.find(runId)!;
      const headCheckpointId = first.context.headCheckpointId();
      runs.save({ ...stored, recovery: { ...stored.recovery, headCheckpointId, attempts: 1_000 } });
      let met = 0;
      const second = await hookedWake(thread, first, async (at, name) => {
        if (name !== "terminal_commit") return;
        met += 1;
        if (met === 1) await at.runs.cancel(runId, { wait: false, action });
      });
      expect(met).toBe(1);
      expect(await toldOf(second, thread, runId)).toEqual(told);
      expect(second.context.runs.find(runId)?.error ?? null).toBeNull();
    });
  });
});
