/**
 * Runs that start from a command, an older checkpoint or a breakpoint, and the base-checkpoint rule for them (architecture
 * section 5): each is killed between its acceptance and its end, and a further wake over the same storage goes on.
 */
import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { RunRecord } from "../../../src/platform/durable-storage/run-store.ts";
import type { ApiRefusal } from "../../../src/protocol/errors.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import { askBoth, askInChild, askTwice, GraphGates, steps } from "../../support/asking-graphs.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

/** Whose writes on a checkpoint are a command's own. */
const NULL_TASK = "00000000-0000-0000-0000-000000000000";

type Graph = (gates: GraphGates) => object;

const serving = (graph: Graph, gates = new GraphGates()) => ({ config: { graphs: { g: graph(gates) } } });

/** A wake that accepts runs and dies before their graphs are there. A graph that a create is checked against has no run. */
function dyingBeforeStart(graph: Graph) {
  const built = graph(new GraphGates());
  const factory = ({ configurable }: { configurable: { run_id: string } }) =>
    configurable.run_id === "" ? built : new Promise(() => undefined);
  return { config: { graphs: { g: factory } } };
}

async function create({ runs }: ThreadRuntime, body: Record<string, unknown>): Promise<RunRecord | ApiRefusal> {
  const created = await runs.create({
    graph_id: "g",
    body: createRunBodySchema.parse({ assistant_id: "g", ...body }),
  });
  return created.ok ? created.value : created.error;
}

/** Starts a run and gives its row when it ended. */
async function run(runtime: ThreadRuntime, body: Record<string, unknown>): Promise<RunRecord> {
  const { runId } = (await create(runtime, body)) as RunRecord;
  await runtime.context.live.get(runId)?.done;
  return runtime.context.runs.find(runId)!;
}

/** Starts a run that gets to a place of the graph and no further in this wake. */
async function runUntil(runtime: ThreadRuntime, body: Record<string, unknown>, arrived: () => boolean) {
  const { runId } = (await create(runtime, body)) as RunRecord;
  await eventually(() => arrived(), Boolean);
  return runId;
}

async function ended(runtime: ThreadRuntime, runId: string): Promise<RunRecord> {
  await runtime.context.live.get(runId)?.done;
  return runtime.context.runs.find(runId)!;
}

async function logOf(runtime: ThreadRuntime): Promise<unknown> {
  const state = await runtime.state.get({});
  return state.ok ? state.value.values?.["log"] : state.error;
}

interface Asked {
  readonly id: string;
  readonly value: string;
}
const askedBy = (record: RunRecord) => (record.interrupts ?? []) as readonly Asked[];

const INPUT = { input: { log: ["in"] } };

it("P1: an update is not hidden by that of a run which ended before a step took it in", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create();
    const { context } = runtime;
    await context.live.get((await startRun(runtime, "@ say first")).runId)?.done;
    const at = { thread_id: thread.threadId, checkpoint_ns: "", checkpoint_id: context.headCheckpointId()! };
    const left = new HumanMessage({ id: "left", content: "left behind" });
    // As LangGraph stores them: where to go, then what is new.
    const writes: [string, unknown][] = [
      ["branch:to:model", "__start__"],
      ["messages", [left]],
    ];
    await context.saver.putWrites({ configurable: at }, writes, NULL_TASK);
    const messages = [{ type: "human", content: "@ say brought" }];
    const body = createRunBodySchema.parse({
      assistant_id: "lead_agent",
      command: { update: { messages }, goto: "model" },
    });
    const created = await runtime.runs.create({ graph_id: "lead_agent", body });
    if (!created.ok) throw new Error(created.error.message);
    const { runId } = created.value;
    await context.live.get(runId)?.done;
    expect(context.runs.find(runId)).toMatchObject({ status: "success", error: null });
    const state = await runtime.state.get({});
    const held = (state.ok ? state.value.values?.["messages"] : []) as { content: string }[];
    expect(held.map(({ content }) => content)).toEqual(["@ say first", "first", "@ say brought", "brought"]);
  });
});

describe("answers", () => {
  it("a plain value is stored with the one interrupt it answers, and a wrong or second answer is refused", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create(serving(askTwice));
      const [first] = askedBy(await run(runtime, INPUT));
      expect(first?.value).toBe("first?");
      const second = await run(runtime, { command: { resume: "yes" } });
      expect(second.command.body.command).toEqual({ resume: { [first!.id]: "yes" } });
      expect(askedBy(second)).toMatchObject([{ value: "second?" }]);
      expect(await create(runtime, { command: { resume: { [first!.id]: "again" } } })).toMatchObject({
        code: "invalid_request",
        details: { unknown_ids: [first!.id], pending_ids: [askedBy(second)[0]!.id] },
      });
      // An object without an id in it is an answer as well, an empty one too.
      expect((await run(runtime, { command: { resume: {} } })).status).toBe("success");
      expect(await logOf(runtime)).toEqual(["in", "before", "yes then [object Object]", "after"]);
      expect(await create(runtime, { command: { resume: "late" } })).toMatchObject({ code: "invalid_request" });
    });
  });

  it("with several questions a plain value is refused with their ids, and each is answered by its own", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create(serving(askBoth));
      const questions = askedBy(await run(runtime, INPUT));
      const ids = Object.fromEntries(questions.map(({ value, id }) => [value, id]));
      const refused = (await create(runtime, { command: { resume: "both" } })) as ApiRefusal;
      expect(refused).toMatchObject({
        code: "invalid_request",
        details: { pending_ids: questions.map(({ id }) => id) },
      });
      for (const { id } of questions) expect(refused.message).toContain(id);
      const half = await run(runtime, { command: { resume: { [ids["b?"]!]: 2 } } });
      expect(askedBy(half)).toEqual([{ id: ids["a?"], value: "a?" }]);
      expect((await run(runtime, { command: { resume: 1 } })).status).toBe("success");
      expect(await logOf(runtime)).toEqual(["in", "a=1", "b=2", "after"]);
    });
  });

  it("an update and a goto with nothing to answer move the thread; what the graph does not have is refused", async () => {
    await withWakes(async (thread) => {
      const gates = new GraphGates();
      const runtime = await thread.create(serving(steps, gates));
      await run(runtime, INPUT);
      const refusals = [
        [{ goto: "four" }, "one, two, three"],
        [{ goto: [{ node: "four", input: {} }] }, "one, two, three"],
        [{ update: { notes: 1 } }, "log"],
        [
          {
            update: [
              ["log", ["x"]],
              ["log", ["y"]],
            ],
          },
          "twice",
        ],
        [{}, "resume, update, goto"],
        [{ resume: null }, "resume, update, goto"],
      ] as const;
      for (const [command, named] of refusals) {
        const refused = (await create(runtime, { command })) as ApiRefusal;
        expect([refused.code, refused.message]).toEqual(["invalid_request", expect.stringContaining(named)]);
      }
      expect(await create(runtime, { ...INPUT, command: { goto: "two" } })).toMatchObject({ code: "invalid_request" });
      expect((await run(runtime, { command: { update: { log: ["added"] }, goto: "three" } })).status).toBe("success");
      expect(await logOf(runtime)).toEqual(["in", "one", "two", "three", "added", "three"]);
    });
  });

  it("a thread without state, a busy one, and one whose answer is not wanted strictly, say so", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create(serving(askTwice, new GraphGates("answered first")));
      expect(await create(runtime, { command: { resume: 1 } })).toMatchObject({ code: "invalid_request" });
      await run(runtime, INPUT);
      const lenient = { command: { resume: 1 }, strict_resume: false };
      expect(await create(runtime, lenient)).toMatchObject({ code: "unsupported_option" });
      await create(runtime, { command: { resume: 1 }, strict_resume: true });
      expect(await create(runtime, { command: { resume: 2 } })).toMatchObject({ code: "thread_busy" });
      expect(await create(runtime, { command: { resume: 2 }, multitask_strategy: "enqueue" })).toMatchObject({
        code: "invalid_request",
      });
    });
  });
});

describe("a run that was killed", () => {
  it("between its answer and the answer's use: the answer is given again, once", async () => {
    await withWakes(async (thread) => {
      const gates = new GraphGates("answered first");
      const first = await thread.create(serving(askTwice, gates));
      await run(first, INPUT);
      const runId = await runUntil(first, { command: { resume: "one" } }, () => gates.ran.includes("answered first"));
      const second = await thread.wake(serving(askTwice));
      expect(askedBy(await ended(second, runId))).toMatchObject([{ value: "second?" }]);
      await run(second, { command: { resume: "two" } });
      expect(await logOf(second)).toEqual(["in", "before", "one then two", "after"]);
    });
  });

  it("after the graph asked again: the run is interrupted, and its answer answers nothing else", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create(serving(askTwice));
      await run(first, INPUT);
      const answered = await run(first, { command: { resume: "one" } });
      // As it was a moment before its terminal commit.
      first.context.runs.save({ ...answered, status: "running", interrupts: null });
      const gates = new GraphGates();
      const second = await thread.wake(serving(askTwice, gates));
      const again = await ended(second, answered.runId);
      expect([again.status, again.error, askedBy(again)]).toMatchObject(["interrupted", null, [{ value: "second?" }]]);
      expect(gates.ran).toEqual([]);
      await run(second, { command: { resume: "two" } });
      expect(await logOf(second)).toEqual(["in", "before", "one then two", "after"]);
    });
  });

  it("after a child asked again and before its parent stored that: the child's question is asked, not answered", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create(serving(askInChild));
      await run(first, INPUT);
      const { saver } = first.context;
      const [child] = saver.childNamespaces(thread.threadId);
      expect(child).toMatch(/^nested:/);
      const head = first.context.headCheckpointId();
      const stored = thread.storage.sql
        .exec<{ task_id: string; body: ArrayBuffer }>(
          "SELECT task_id, body FROM checkpoint_writes WHERE checkpoint_ns = '' AND checkpoint_id = ?",
          head,
        )
        .one();
      const answered = await run(first, { command: { resume: "one" } });
      expect(askedBy(answered)).toMatchObject([{ value: "second?" }]);
      // The child's row is there, the parent's is not yet.
      thread.storage.sql.exec(
        "UPDATE checkpoint_writes SET body = ? WHERE checkpoint_ns = '' AND task_id = ?",
        stored.body,
        stored.task_id,
      );
      first.context.runs.save({ ...answered, status: "running", interrupts: null });
      const second = await thread.wake(serving(askInChild));
      expect(askedBy(await ended(second, answered.runId))).toMatchObject([{ value: "second?" }]);
      await run(second, { command: { resume: "two" } });
      expect(await logOf(second)).toEqual(["in", "in", "one then two", "after"]);
    });
  });

  it("with one of two answers used: the other is given again and the first is not", async () => {
    await withWakes(async (thread) => {
      const gates = new GraphGates("b answered");
      const first = await thread.create(serving(askBoth, gates));
      const questions = askedBy(await run(first, INPUT));
      const resume = Object.fromEntries(questions.map(({ id, value }) => [id, `to ${value}`]));
      const runId = await runUntil(first, { command: { resume } }, () => gates.ran.length === 2);
      // The first task's result is stored when it is, beside the one that hangs.
      await eventually(
        () => first.state.get({}),
        (state) => JSON.stringify(state).includes("a=to a?"),
      );
      const again = new GraphGates();
      const second = await thread.wake(serving(askBoth, again));
      expect((await ended(second, runId)).status).toBe("success");
      expect(again.ran).toEqual(["b answered"]);
      expect(await logOf(second)).toEqual(["in", "a=to a?", "b=to b?", "after"]);
    });
  });

  it("with an update and a goto, before and after its first commit: each happens once", async () => {
    await withWakes(async (thread) => {
      const gates = new GraphGates();
      const first = await thread.create(serving(steps, gates));
      await run(first, INPUT);
      const command = { update: { log: ["added"] }, goto: "three" };
      const dying = await thread.wake(dyingBeforeStart(steps));
      const accepted = (await create(dying, { command })) as RunRecord;
      const second = await thread.wake(serving(steps, new GraphGates("three")));
      await eventually(() => second.context.headCheckpointId() !== accepted.baseCheckpointId, Boolean);
      const third = await thread.wake(serving(steps));
      expect((await ended(third, accepted.runId)).status).toBe("success");
      const log = (await logOf(third)) as string[];
      expect(log.filter((entry) => entry === "added")).toEqual(["added"]);
    });
  });

  it("at a breakpoint that it had not ended at yet: it ends there, and the step behind it is not run", async () => {
    for (const at of [{ interrupt_before: ["two"] }, { interrupt_after: ["one"] }]) {
      await withWakes(async (thread) => {
        const first = await thread.create(serving(steps));
        const stopped = await run(first, { ...INPUT, ...at });
        expect([stopped.status, stopped.interrupts]).toEqual(["interrupted", []]);
        first.context.runs.save({ ...stopped, status: "running", interrupts: null });
        const gates = new GraphGates();
        const second = await thread.wake(serving(steps, gates));
        const again = await ended(second, stopped.runId);
        expect([again.status, again.interrupts, gates.ran]).toEqual(["interrupted", [], []]);
        expect((await run(second, {})).status).toBe("success");
        expect(await logOf(second)).toEqual(["in", "one", "two", "three"]);
      });
    }
  });
});

describe("breakpoints and checkpoints", () => {
  it("a run stops at each node with '*', and input null goes on; an unknown node is refused with those there are", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create(serving(steps));
      const refused = (await create(runtime, { ...INPUT, interrupt_after: ["four"] })) as ApiRefusal;
      expect([refused.code, refused.message]).toEqual([
        "invalid_request",
        expect.stringContaining("its nodes: one, two, three"),
      ]);
      const logs: unknown[] = [];
      let stopped = await run(runtime, { ...INPUT, interrupt_before: "*" });
      while (stopped.status === "interrupted") {
        logs.push(await logOf(runtime));
        stopped = await run(runtime, { interrupt_before: ["*"] });
      }
      expect(logs).toEqual([["in"], ["in", "one"], ["in", "one", "two"]]);
      expect(stopped.status).toBe("success");
    });
  });

  it("a run from an older checkpoint makes a branch that is the thread from then on, also when it was killed", async () => {
    await withWakes(async (thread) => {
      const first = await thread.create(serving(steps));
      await run(first, INPUT);
      const history = await first.state.history({ limit: 10 });
      if (!history.ok) throw new Error(history.error.message);
      const older = history.value.find(
        (state) => (state.values?.["log"] as string[] | undefined)?.length === 2,
      )!.checkpoint!;
      const forks = [
        [{ checkpoint_id: older.checkpoint_id }, ["in", "one", "two", "three"]],
        [{ checkpoint: older, input: { log: ["other"] } }, ["in", "one", "other", "one", "two", "three"]],
        [
          { checkpoint: older, command: { update: { log: ["u"] }, goto: "three" } },
          ["in", "one", "u", "two", "three", "three"],
        ],
      ] as const;
      for (const [body, log] of forks) {
        const dying = await thread.wake(dyingBeforeStart(steps));
        const accepted = (await create(dying, body)) as RunRecord;
        expect(accepted.baseCheckpointId).not.toBe(older.checkpoint_id);
        const next = await thread.wake(serving(steps));
        expect((await ended(next, accepted.runId)).status).toBe("success");
        expect([...((await logOf(next)) as string[])].toSorted()).toEqual([...log].toSorted());
      }
    });
  });

  it("a checkpoint of elsewhere, a child's, and an answer to an older one are refused; the head's own is no branch", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create(serving(askTwice));
      await run(runtime, INPUT);
      const head = runtime.context.headCheckpointId()!;
      const at = { thread_id: thread.threadId, checkpoint_ns: "", checkpoint_id: head, checkpoint_map: null };
      const codes = [
        [{ checkpoint_id: crypto.randomUUID() }, "not_found"],
        [{ checkpoint: { ...at, thread_id: "other" } }, "not_found"],
        [{ checkpoint: { ...at, checkpoint_ns: "ask:1" } }, "unsupported_option"],
        [{ checkpoint: { ...at, checkpoint_map: { "ask:1": "x" } } }, "unsupported_option"],
        [{ checkpoint: at, checkpoint_id: "another" }, "invalid_request"],
        [{ checkpoint_id: "" }, "invalid_request"],
      ] as const;
      for (const [body, code] of codes) expect([body, await create(runtime, body)]).toMatchObject([body, { code }]);
      const answered = await run(runtime, { checkpoint: at, command: { resume: "one" } });
      expect(askedBy(answered)).toMatchObject([{ value: "second?" }]);
      await run(runtime, { command: { resume: "two" } });
      const late = (await create(runtime, { checkpoint: at, command: { resume: "other" } })) as ApiRefusal;
      expect([late.code, late.details?.["field"]]).toEqual(["unsupported_option", "command.resume"]);
      // From there without an answer the graph asks anew, under an id of its own.
      const anew = await run(runtime, { checkpoint: at });
      expect(askedBy(anew)).toMatchObject([{ value: "first?" }]);
      await run(runtime, { command: { resume: "uno" } });
      await run(runtime, { command: { resume: "due" } });
      expect(await logOf(runtime)).toEqual(["in", "before", "uno then due", "after"]);
    });
  });
});
