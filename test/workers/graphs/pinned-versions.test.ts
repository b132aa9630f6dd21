/** A run stays with the version of its graph that it was accepted with, across deploys: each wake here is one. */
import { describe, expect, it } from "vitest";
import type { DeputyConfigInput } from "../../../src/config.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { RunRecord } from "../../../src/platform/durable-storage/run-store.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { eventually } from "../../support/eventually.ts";
import { closeGate, visits } from "../../support/graphs/gates.ts";
import { nested } from "../../support/graphs/nested.ts";
import { signing } from "../../support/graphs/versioned.ts";
import { type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

type Graphs = NonNullable<DeputyConfigInput["graphs"]>;

const [one, two] = [signing("one"), signing("two")];
/** Of the deploy that dies: it never gets past its gate, so what comes after is another one's. */
const dying = signing("one", { waits: true });
const FIRST: Graphs = { signed: { graph: dying, version: "1" } };
const UNVERSIONED: Graphs = { signed: dying };

async function accepted(runtime: ThreadRuntime, input: object, graphId = "signed"): Promise<RunRecord> {
  const body = createRunBodySchema.parse({ assistant_id: graphId, input });
  const created = await runtime.runs.create({ graph_id: graphId, body });
  if (!created.ok) throw new Error(created.error.message);
  return created.value;
}

/** The run stands in its second node when its object dies; then the next deploy wakes it. */
async function acrossDeploy(thread: ThreadWakes, before: Graphs, after: Graphs) {
  const gate = crypto.randomUUID();
  closeGate(`${gate}/second`);
  const first = await thread.create({ config: { graphs: before } });
  const run = await accepted(first, { gate });
  await eventually(
    () => visits(`${gate}/second`),
    (count) => count === 1,
  );
  const second = await thread.wake({ config: { graphs: after } });
  const live = second.context.live.get(run.runId);
  await live?.done;
  const state = await second.state.get({});
  return { second, run: second.context.runs.find(run.runId)!, frames: live?.frames, state };
}

const signedBy = ({ state }: Awaited<ReturnType<typeof acrossDeploy>>) =>
  state.ok ? state.value.values?.["by"] : state.error;

describe("a run that a deploy interrupts", () => {
  it.each<[string, Graphs, Graphs, string[]]>([
    [
      "its version is an earlier one now",
      FIRST,
      { signed: { graph: two, version: "2", previous: { "1": one } } },
      ["one", "one"],
    ],
    ["its version is the current one still", FIRST, { signed: { graph: two, version: "1" } }, ["one", "two"]],
    ["its graph had no version: the current one drives it", UNVERSIONED, { signed: two }, ["one", "two"]],
    ["its graph had no version and has one now", UNVERSIONED, { signed: { graph: two, version: "2" } }, ["one", "two"]],
  ])("P1 goes on where %s", async (_what, before, after, by) => {
    await withWakes(async (thread) => {
      const seen = await acrossDeploy(thread, before, after);
      expect([seen.run.status, seen.run.error]).toEqual(["success", null]);
      expect(signedBy(seen)).toEqual(by);
    });
  });

  it.each<[string, Graphs, string]>([
    [
      "version is served no more",
      { signed: { graph: two, version: "2" } },
      "version '1' of graph 'signed' is served no more",
    ],
    ["graph has no versions any more", { signed: two }, "version '1' of graph 'signed' is served no more"],
    ["graph is gone", { nested }, "version '1' of graph 'signed' is served no more"],
  ])("P1 P5 ends with that reason, driven by nothing else, where its %s", async (_what, after, reason) => {
    await withWakes(async (thread) => {
      const seen = await acrossDeploy(thread, FIRST, after);
      const { second, run } = seen;
      expect([run.status, run.error?.error]).toEqual(["error", "GraphNotServedError"]);
      expect(run.error?.message).toContain(reason);
      expect(lastFrame(seen)).toEqual({ event: "error", data: JSON.stringify(run.error) });
      await second.context.flush.flush();
      const events = await second.context.deps.db
        .prepare("SELECT event_type, content FROM run_events WHERE thread_id = ? ORDER BY seq DESC LIMIT 1")
        .bind(thread.threadId)
        .all<{ event_type: string; content: string }>();
      expect(events.results[0]?.event_type).toBe("run.error");
      expect(events.results[0]?.content).toContain("GraphNotServedError");
      // What was committed before stands, and nothing was added.
      expect(signedBy(seen)).toEqual(["one"]);
    });
  });
});

function lastFrame({ frames }: Awaited<ReturnType<typeof acrossDeploy>>) {
  let last: { event: string; data: unknown } | undefined;
  for (let afterId = -1; ;) {
    const next = frames?.next(afterId);
    if (next?.kind === "gap") {
      afterId = next.firstAvailableId - 1;
      continue;
    }
    if (next?.kind !== "frame") return last;
    afterId = next.frame.id;
    last = { event: next.frame.event, data: next.frame.data };
  }
}

describe("a thread whose graph is gone", () => {
  it("is still read: values, questions and history; an edit is refused by the reason", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create({ config: { graphs: { nested } } });
      const run = await accepted(first, { gate: crypto.randomUUID(), ask: true }, "nested");
      await first.context.live.get(run.runId)?.done;
      const second = await thread.wake({ config: {} });
      const state = await second.state.get({});
      if (!state.ok) throw new Error(state.error.message);
      const { values, tasks, next } = state.value;
      expect([values, next]).toEqual([expect.objectContaining({ ask: true, path: ["before"] }), []]);
      expect(tasks?.flatMap(({ interrupts }) => interrupts.map(({ value }) => value))).toEqual([
        { question: "go on?" },
      ]);
      const history = await second.state.history({ limit: 10 });
      expect(history.ok && history.value.length).toBeGreaterThan(1);
      const edited = await second.state.update({ values: { path: ["x"] } });
      expect(edited).toMatchObject({ ok: false, error: { code: "invalid_request" } });
      expect(!edited.ok && edited.error.message).toContain("graph 'nested' is served no more");
      expect(second.context.runs.find(run.runId)?.status).toBe("interrupted");
    });
  });
});
