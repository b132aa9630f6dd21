/** ThreadState as clients read, page, select and edit it, over the lead and over a graph with a subgraph that asks. */
import "../../../src/async-context.ts";
import { Annotation, interrupt, StateGraph } from "@langchain/langgraph";
import { expect, it } from "vitest";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import {
  historyBodySchema,
  type SelectedState,
  type ThreadStateBody,
  updateStateBodySchema,
} from "../../../src/protocol/threads.ts";
import { asking, newThread, send, sendJson } from "../../support/http.ts";
import { withWakes } from "../../support/thread-wakes.ts";

const State = Annotation.Root({ topic: Annotation<string>, answer: Annotation<string> });

const asker = new StateGraph(State)
  .addNode("ask", ({ topic }) => ({ answer: `${topic}: ${interrupt<unknown, string>({ question: topic })}` }))
  .addEdge("__start__", "ask")
  .addEdge("ask", "__end__")
  .compile();
const nested = new StateGraph(State)
  .addNode("first", () => ({ topic: "weather" }))
  .addNode("child", asker)
  .addEdge("__start__", "first")
  .addEdge("first", "child")
  .addEdge("child", "__end__")
  .compile();
/** Two nodes ask at once. */
const both = new StateGraph(
  Annotation.Root({ log: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }) }),
)
  .addNode("left", () => ({ log: [interrupt<unknown, string>("left?")] }))
  .addNode("right", () => ({ log: [interrupt<unknown, string>("right?")] }))
  .addEdge("__start__", "left")
  .addEdge("__start__", "right")
  .compile();
const config = { graphs: { nested, both } };

async function runNested(runtime: ThreadRuntime): Promise<void> {
  const body = createRunBodySchema.parse({ assistant_id: "nested", input: { topic: "none" } });
  const created = await runtime.runs.create({ graph_id: "nested", body });
  if (!created.ok) throw new Error(created.error.message);
  await runtime.context.live.get(created.value.runId)?.done;
}

async function valueOf<T>(
  result: Promise<{ ok: true; value: T } | { ok: false; error: { message: string } }>,
): Promise<T> {
  const settled = await result;
  if (!settled.ok) throw new Error(settled.error.message);
  return settled.value;
}

const history = (runtime: ThreadRuntime, body: object = {}) =>
  runtime.state.history(historyBodySchema.parse({ limit: 100, ...body }));

it("a task shows its interrupts, its path and where its subgraph stands; with subgraphs the subgraph's whole state", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config });
    await runNested(runtime);
    const shallow = (await valueOf(runtime.state.get({}))) as ThreadStateBody;
    expect(shallow).toMatchObject({ values: { topic: "weather" }, next: ["child"] });
    const [task] = shallow.tasks;
    expect(task).toMatchObject({
      name: "child",
      error: null,
      state: null,
      result: null,
      path: ["__pregel_pull", "child"],
      interrupts: [{ id: expect.any(String), value: { question: "weather" } }],
      checkpoint: {
        thread_id: thread.threadId,
        checkpoint_ns: `child:${task!.id}`,
        checkpoint_id: null,
        checkpoint_map: null,
      },
    });
    const deep = (await valueOf(runtime.state.get({ subgraphs: true }))) as ThreadStateBody;
    const inner = deep.tasks[0]!.state as ThreadStateBody;
    expect(inner).toMatchObject({ values: { topic: "weather" }, next: ["ask"], tasks: [{ name: "ask" }] });
    expect(inner.checkpoint).toMatchObject({ checkpoint_ns: `child:${task!.id}`, checkpoint_id: expect.any(String) });
    expect(Object.keys(inner.checkpoint!.checkpoint_map ?? {})).toContain("");
  });
});

it("a subgraph's state is read, paged and edited under its namespace; what is not there is not found", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config });
    await runNested(runtime);
    const root = (await valueOf(runtime.state.get({}))) as ThreadStateBody;
    const checkpoint_ns = root.tasks[0]!.checkpoint!.checkpoint_ns;
    const inner = (await valueOf(runtime.state.get({ checkpoint_ns }))) as ThreadStateBody;
    expect(inner).toMatchObject({ next: ["ask"], checkpoint: { checkpoint_ns } });
    const pages = await valueOf(history(runtime, { checkpoint: { checkpoint_ns } }));
    expect(pages.length).toBeGreaterThan(0);
    expect(pages.every((state) => state.checkpoint?.checkpoint_ns === checkpoint_ns)).toBe(true);
    const update = updateStateBodySchema.parse({ values: { topic: "tides" }, checkpoint: { checkpoint_ns } });
    const edited = await valueOf(runtime.state.update(update));
    expect(edited.checkpoint).toMatchObject({ checkpoint_ns });
    const after = (await valueOf(runtime.state.get({ checkpoint_ns }))) as ThreadStateBody;
    expect(after.values).toMatchObject({ topic: "tides" });
    expect(((await valueOf(runtime.state.get({}))) as ThreadStateBody).values).toMatchObject({ topic: "weather" });
    for (const at of [{ checkpoint_ns: "child:nobody" }, { checkpoint_ns: "nowhere:x" }, { checkpoint_id: "none" }]) {
      expect(await runtime.state.get(at)).toMatchObject({ ok: false, error: { code: "not_found" } });
      const edit = updateStateBodySchema.parse({ values: { topic: "x" }, checkpoint: at });
      expect(await runtime.state.update(edit)).toMatchObject({ ok: false, error: { code: "not_found" } });
    }
  });
});

it("history pages by `before` without repeating or skipping; a checkpoint that is not there is no first page", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config });
    await runNested(runtime);
    const whole = await valueOf(history(runtime));
    const ids = whole.map((state) => state.checkpoint!.checkpoint_id!);
    expect(ids.length).toBeGreaterThan(2);
    const paged: string[] = [];
    let before: string | undefined;
    for (;;) {
      const page = await valueOf(history(runtime, { limit: 1, ...(before === undefined ? {} : { before }) }));
      if (page.length === 0) break;
      paged.push(...page.map((state) => state.checkpoint!.checkpoint_id!));
      before = paged.at(-1);
    }
    expect(paged).toEqual(ids);
    for (const parent of [1, 2]) expect(whole[parent - 1]!.parent_checkpoint?.checkpoint_id).toBe(ids[parent]);
    const byConfig = await valueOf(history(runtime, { before: { configurable: { checkpoint_id: ids[0] } } }));
    expect(byConfig.map((state) => state.checkpoint?.checkpoint_id)).toEqual(ids.slice(1));
    for (const unknown of ["zzzz", "0000", { checkpoint_id: "1f000000-0000-6000-8000-000000000000" }]) {
      expect(await history(runtime, { before: unknown })).toMatchObject({ ok: false, error: { code: "not_found" } });
    }
    for (const empty of ["", {}, { checkpoint_id: "" }, { configurable: {} }]) {
      expect(historyBodySchema.safeParse({ before: empty }).success, JSON.stringify(empty)).toBe(false);
    }
  });
});

it("PATCH state marks the newest checkpoint, history finds it by that, and the graph's own words stay the graph's", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config });
    expect(await runtime.state.patchMetadata({ a: 1 })).toMatchObject({ ok: false, error: { code: "not_found" } });
    await runNested(runtime);
    const before = (await valueOf(runtime.state.get({}))) as ThreadStateBody;
    expect(await runtime.state.patchMetadata({ review: { by: "ann", ok: true } })).toMatchObject({ ok: true });
    const after = (await valueOf(runtime.state.get({}))) as ThreadStateBody;
    expect(after).toEqual({ ...before, metadata: { ...before.metadata, review: { by: "ann", ok: true } } });
    const found = await valueOf(history(runtime, { metadata: { review: { ok: true, by: "ann" } } }));
    expect(found.map((state) => state.checkpoint)).toEqual([after.checkpoint]);
    expect(await valueOf(history(runtime, { metadata: { review: { by: "ann" } } }))).toEqual([]);
    for (const metadata of [{ source: "x" }, { step: 9 }, { __pregel_x: 1 }, { parents: {} }]) {
      expect(await runtime.state.patchMetadata(metadata)).toMatchObject({
        ok: false,
        error: { code: "invalid_request" },
      });
    }
    const big = await runtime.state.patchMetadata({ big: "x".repeat(70_000) });
    expect(big).toMatchObject({ ok: false, error: { code: "too_large" } });
    expect(await valueOf(runtime.state.get({}))).toEqual(after);
  });
});

it("over HTTP: select leaves what it names, on every way to read a state; other names are refused", async () => {
  const threadId = await newThread();
  await sendJson("POST", `/threads/${threadId}/runs/wait`, asking("@ say done"));
  const path = `/threads/${threadId}`;
  const whole = await sendJson<ThreadStateBody>("GET", `${path}/state`);
  const select = ["values.messages", "next"];
  const ref = whole.checkpoint!;
  const wanted = { values: { messages: whole.values["messages"] }, next: [] };
  const ways: [string, string, object?][] = [
    ["GET", "/state?select=values.messages&select=next"],
    ["GET", `/state/${ref.checkpoint_id}?select=values.messages&select=next`],
    ["POST", "/state/checkpoint", { checkpoint: ref, select }],
    ["POST", "/state/checkpoint", { checkpoint: {}, select }],
  ];
  for (const [method, route, body] of ways) {
    expect(await sendJson(method, path + route, body), route).toEqual(wanted);
  }
  const pages = await sendJson<SelectedState[]>("POST", `${path}/history`, { select: ["checkpoint"], limit: 2 });
  expect(pages.map((state) => Object.keys(state))).toEqual([["checkpoint"], ["checkpoint"]]);
  expect(await sendJson("GET", `${path}/state?select=interrupts`)).toEqual({ interrupts: [] });
  const bad: [string, string, object?][] = [
    ["GET", "/state?select=nothing"],
    ["GET", "/history?select=values."],
    ["POST", "/history", { before: "" }],
    ["POST", "/history", { select: [] }],
    ["POST", "/state/checkpoint", { checkpoint: { ...ref, thread_id: "another" } }],
    ["POST", "/state", { values: {}, checkpoint: { thread_id: "another" } }],
  ];
  for (const [method, route, body] of bad) {
    expect((await send(method, path + route, body)).status, `${method} ${route}`).toBe(422);
  }
  const missing: [string, string, object?][] = [
    ["GET", "/state/nothing"],
    ["GET", "/history?before=nothing"],
    ["POST", "/history", { before: { checkpoint_id: "nothing" } }],
    ["POST", "/state", { values: {}, checkpoint_id: "nothing" }],
  ];
  for (const [method, route, body] of missing) {
    expect((await send(method, path + route, body)).status, `${method} ${route}`).toBe(404);
  }
});

it("an empty thread has an empty state and no history, and says so in the shapes clients know", async () => {
  const path = `/threads/${await newThread()}`;
  const empty = {
    values: {},
    next: [],
    tasks: [],
    metadata: {},
    created_at: null,
    checkpoint: null,
    parent_checkpoint: null,
  };
  expect(await sendJson("GET", `${path}/state`)).toEqual(empty);
  expect(await sendJson("GET", `${path}/state?subgraphs=true`)).toEqual(empty);
  expect(await sendJson("POST", `${path}/history`, {})).toEqual([]);
  expect(await sendJson("GET", `${path}/history`)).toEqual([]);
  expect((await send("PATCH", `${path}/state`, { metadata: { a: 1 } })).status).toBe(404);
});

it("a task that is done asks no more: not in the thread, its state or its history, while another still asks", async () => {
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config });
    const run = async (body: object) => {
      const parsed = createRunBodySchema.parse({ assistant_id: "both", ...body });
      const created = await runtime.runs.create({ graph_id: "both", body: parsed });
      if (!created.ok) throw new Error(created.error.message);
      await runtime.context.live.get(created.value.runId)?.done;
    };
    const asked = async () => {
      const view = await valueOf(runtime.threads.get());
      const state = (await valueOf(runtime.state.get({}))) as ThreadStateBody;
      const [newest] = (await valueOf(history(runtime, { limit: 1 }))) as ThreadStateBody[];
      return [
        Object.values(view.interrupts).flat(),
        state.tasks.flatMap((task) => task.interrupts),
        newest!.tasks.flatMap((task) => task.interrupts),
      ].map((interrupts) => interrupts.map(({ value }) => value));
    };
    const threeTimes = (values: string[]) => [values, values, values];
    await run({ input: { log: [] } });
    expect(await asked()).toEqual(threeTimes(["left?", "right?"]));
    const { tasks } = (await valueOf(runtime.state.get({}))) as ThreadStateBody;
    await run({ command: { resume: { [tasks[0]!.interrupts[0]!.id!]: "yes" } } });
    expect(await asked()).toEqual(threeTimes(["right?"]));
  });
});
