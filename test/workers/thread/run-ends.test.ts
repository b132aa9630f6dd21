import { describe, expect, it } from "vitest";
import { saveRunEnd } from "../../../src/durable-objects/run-end.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { Tool, ToolRuntime } from "../../../src/agent/tools/tool.ts";
import type { WorkspaceSession } from "../../../src/agent/tools/workspace.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const SHARED = "/workspace/shared.txt";

/** Bytes that replace bytes which were read: the change holds the path until it commits or is discarded. */
function edit(session: WorkspaceSession, text: string): void {
  session.read(SHARED);
  session.write(SHARED, bytes(text));
}

function textOf(runtime: ThreadRuntime): string {
  const file = runtime.context.workspace.get(SHARED);
  if (!file.ok || file.value.kind !== "file") throw new Error("no shared file");
  return new TextDecoder().decode(file.value.bytes);
}

/** A tool that hears no abort: it ends when the test lets it. */
function deaf(started: ToolRuntime[], release: Promise<void>): Tool {
  return plainTool("deaf", async (_args, runtime) => {
    edit(runtime.workspace, "half");
    started.push(runtime);
    await release;
    return succeeded("too late");
  });
}

async function startDeaf(runtime: ThreadRuntime, started: ToolRuntime[], script: string): Promise<string> {
  const { runId } = await startRun(runtime, script);
  await eventually(
    () => started.length,
    (count) => count === 1,
  );
  return runId;
}

const LEAD = "@ call deaf {}\n@ say never";
const EDIT = '@ call str_replace {"path": "shared.txt", "old_str": "old", "new_str": "new"}\n@ say edited';
const CHILD = `@ delegate general-purpose :: deaf :: <<'CHILD'\n${LEAD}\nCHILD\n@ say never`;

describe("cancel", () => {
  it("R60: stores the request before it throws the switch, whose listeners run at once", async () => {
    await withWakes(async (thread) => {
      const started: ToolRuntime[] = [];
      const release = Promise.withResolvers<void>();
      const runtime = await thread.create({ tools: [deaf(started, release.promise)] });
      const runId = await startDeaf(runtime, started, LEAD);
      const seen: boolean[] = [];
      runtime.context.live.get(runId)!.abort.signal.addEventListener("abort", () => {
        seen.push(runtime.context.runs.find(runId)!.cancelRequested);
      });
      await runtime.runs.cancel(runId, { wait: true });
      expect(seen).toEqual([true]);
      release.resolve();
    });
  });

  it.each([
    ["the lead's call", LEAD],
    ["a child's call", CHILD],
  ])("leaves nothing of %s that hears no abort, whatever it writes before and after", async (_what, script) => {
    await withWakes(async (thread) => {
      const started: ToolRuntime[] = [];
      const release = Promise.withResolvers<void>();
      const runtime = await thread.create({ tools: [deaf(started, release.promise)] });
      runtime.context.workspace.put(SHARED, bytes("old"));
      const runId = await startDeaf(runtime, started, script);
      await runtime.runs.cancel(runId, { wait: true });
      const [late] = started;
      expect(late!.workspace.write("/workspace/late.txt", bytes("late"))).toMatchObject({ ok: false });
      release.resolve();
      expect(runtime.context.workspace.get("/workspace/late.txt")).toMatchObject({ ok: false });
      expect(textOf(runtime)).toBe("old");
      // The next run's call meets a path nobody holds.
      const next = await startRun(runtime, EDIT);
      await runtime.context.live.get(next.runId)!.done;
      expect(textOf(runtime)).toBe("new");
    });
  });
});

describe("cancel of one delegation", () => {
  it("frees at once the path that its deaf call holds: the same run edits the file", async () => {
    await withWakes(async (thread) => {
      const started: ToolRuntime[] = [];
      const release = Promise.withResolvers<void>();
      const runtime = await thread.create({ tools: [deaf(started, release.promise)] });
      runtime.context.workspace.put(SHARED, bytes("old"));
      const runId = await startDeaf(
        runtime,
        started,
        `@ delegate general-purpose :: deaf :: <<'CHILD'\n${LEAD}\nCHILD\n${EDIT}`,
      );
      const { done } = runtime.context.live.get(runId)!;
      const [mark] = runtime.context.delegations.ofRun(runId);
      expect(runtime.runs.cancelTask(runId, mark!.taskId)).toMatchObject({ ok: true });
      await done;
      expect(runtime.context.runs.find(runId)!.status).toBe("success");
      expect(textOf(runtime)).toBe("new");
      release.resolve();
    });
  });
});

describe("the end of a run", () => {
  it("does not commit what a call had staged with the result that says it was cancelled", async () => {
    await withWakes(async (thread) => {
      const started: ToolRuntime[] = [];
      const first = await thread.create({ tools: [deaf(started, new Promise(() => undefined))] });
      const runId = await startDeaf(first, started, LEAD);
      first.context.runs.save({ ...first.context.runs.find(runId)!, cancelRequested: true });
      const second = thread.sleeping();
      second.context.workspace.put(SHARED, bytes("old"));
      // As of a call that returned just before the end: its abort listener is gone, its result is not stored.
      edit(second.context.staging.open(started[0]!.toolCallId), "half");
      await second.wake();
      expect(second.context.runs.find(runId)!.status).toBe("interrupted");
      expect(textOf(second)).toBe("old");
    });
  });

  it("frees the paths of every call that staged and did not commit, those of children included", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      runtime.context.workspace.put(SHARED, bytes("old"));
      const { runId } = await startRun(runtime, "@ say done");
      const { done } = runtime.context.live.get(runId)!;
      edit(runtime.context.staging.open("call_of_a_child"), "half");
      const putAgain = () => runtime.context.workspace.put(SHARED, bytes("whole"));
      expect(putAgain()).toMatchObject({ ok: false, error: { reason: "busy" } });
      await done;
      expect(putAgain()).toMatchObject({ ok: true });
    });
  });

  it("takes the marks of the run's delegations with it, and no other run's", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create();
      const run = await startRun(runtime, "@ say done");
      await runtime.context.live.get(run.runId)!.done;
      const { delegations, runs } = runtime.context;
      const mark = { subagentType: "bash", checkpointNs: "tools:a", steps: 0, cancelled: false };
      delegations.save({ ...mark, taskId: "left", runId: run.runId });
      delegations.save({ ...mark, taskId: "other", runId: "another run" });
      thread.storage.transactionSync(() => {
        saveRunEnd(runtime.context, runs.find(run.runId)!);
      });
      expect(delegations.find("left")).toBeUndefined();
      expect(delegations.find("other")).toBeDefined();
    });
  });
});
