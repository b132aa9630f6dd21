/** Two instances of one object over one storage: what the platform allows for a moment, made permanent. */
import { describe, expect, it } from "vitest";
import { ensureSchema } from "../../../src/platform/durable-storage/object-schema.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

describe("an instance that was replaced and goes on", () => {
  it("P3 P2: asks no model and starts no tool once a later one has taken the run; the run ends once, by the later one", async () => {
    await withWakes(async (thread) => {
      const acted: string[] = [];
      const gate = Promise.withResolvers<void>();
      const tools = (who: string) => [
        plainTool("slow", async () => {
          acted.push(`${who} slow`);
          if (who === "old") await gate.promise;
          return succeeded("done");
        }),
        plainTool("act", async () => {
          acted.push(`${who} act`);
          return succeeded("acted");
        }),
      ];
      const reported: string[] = [];
      const old = await thread.create({ tools: tools("old"), report: (what) => reported.push(what) });
      const { runId } = await startRun(old, "@ call slow {}\n@ call act {}\n@ say done");
      await eventually(
        () => acted.length,
        (count) => count === 1,
      );
      const oldRun = old.context.live.get(runId)!;
      const newer = await thread.wake({ tools: tools("new") });
      await newer.context.live.get(runId)!.done;
      expect(newer.context.runs.find(runId)!.status).toBe("success");
      gate.resolve();
      await oldRun.done;
      expect(acted).toEqual(["old slow", "new slow", "new act"]);
      await newer.context.flush.flush();
      const told = newer.context.deps.db.prepare(
        "SELECT count(*) AS n FROM run_events WHERE thread_id = ?1 AND event_type = 'run.end'",
      );
      expect(await told.bind(thread.threadId).first<number>("n")).toBe(1);
      expect(newer.context.runs.find(runId)!.status).toBe("success");
      expect(reported).toContain("thread object fault");
    });
  });

  it("P3: cannot delete the thread in D1, nor a run of it, after a later one wrote", async () => {
    await withWakes(async (thread) => {
      const old = await thread.create();
      const { runId } = await startRun(old, "@ say done");
      await old.context.live.get(runId)!.done;
      await old.context.flush.flush();
      const newer = await thread.wake();
      const next = await startRun(newer, "@ say more");
      await newer.context.live.get(next.runId)!.done;
      await newer.context.flush.flush();
      const key = { owner: "alice", thread_id: thread.threadId };
      await expect(old.context.flush.forgetThread(key)).rejects.toThrow("was replaced");
      await expect(old.context.wake.fenced(async () => undefined)).rejects.toThrow("was replaced");
      const rows = newer.context.deps.db.prepare("SELECT count(*) AS n FROM runs WHERE thread_id = ?1");
      expect(await rows.bind(thread.threadId).first<number>("n")).toBe(2);
    });
  });

  it("a thread that was deleted and made again gets past the fence of its predecessor", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create();
      await first.deletion.run();
      ensureSchema(thread.storage);
      const again = await thread.create();
      await again.context.flush.flush();
      const rows = again.context.deps.db.prepare("SELECT epoch FROM threads WHERE thread_id = ?1");
      expect(await rows.bind(thread.threadId).first<number>("epoch")).toBeGreaterThan(1);
    });
  });
});
