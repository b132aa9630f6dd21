/**
 * The rest of `@langchain/langgraph-sdk`'s client (sdk.test.ts and assistants.test.ts have the lead agent's part): every method
 * that is not of the store, of crons or of `ui`, on graphs of an operator's own, and what clients rely on beyond the types.
 */
import { type Assistant, Client, type Run } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DeputyServer, eventually, WITH_TEST_GRAPHS } from "../support/deputy-server.ts";
import {
  collect,
  dataOf,
  eventNames,
  human,
  LEAD,
  type LeadValues,
  type Part,
  runIdOf,
  sdkClient,
} from "../support/sdk.ts";

const deputy = new DeputyServer({ config: WITH_TEST_GRAPHS });
let client: Client;

beforeAll(async () => {
  await deputy.start();
  client = sdkClient(deputy.url);
});
afterAll(() => deputy.close());

/** Long enough for everything a test does meanwhile; each test that starts it ends it. */
const SLOW = human(`@ delay 1000\n@ say ${"word ".repeat(300)}`);
const ENDED_MS = 30_000;

async function newThread(metadata: Record<string, unknown> = {}): Promise<string> {
  return (await client.threads.create({ metadata })).thread_id;
}

async function statusOf(call: Promise<unknown>): Promise<number | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => (error as { status?: number }).status,
  );
}

const running = (threadId: string, { run_id }: Run): Promise<Run> =>
  eventually(
    () => client.runs.get(threadId, run_id),
    ({ status }) => status === "running",
    ENDED_MS,
  );

const answerOf = (values: unknown): string => (values as LeadValues).messages.at(-1)!.content;

/** A thread whose graph asks in a subgraph of its subgraph. */
async function askedThread(): Promise<string> {
  const threadId = await newThread();
  await client.runs.wait(threadId, "nested", { input: { gate: threadId, ask: true } });
  return threadId;
}

describe("client.assistants", () => {
  it("keeps versions, newest first; an earlier one is made the latest, and the next is later than all", async () => {
    const context = (level: number) => ({ user_id: "u", level });
    const { assistant_id: id } = await client.assistants.create({ graphId: "contextual", context: context(1) });
    await client.assistants.update(id, { context: context(2), metadata: { label: "two" } });
    const versions = await client.assistants.getVersions(id);
    expect(versions.map(({ version }) => version)).toEqual([2, 1]);
    expect(versions.map((version) => version.context)).toEqual([context(2), context(1)]);
    expect((await client.assistants.getVersions(id, { metadata: { label: "two" } })).map((one) => one.version)).toEqual(
      [2],
    );
    expect((await client.assistants.getVersions(id, { limit: 1, offset: 1 })).map((one) => one.version)).toEqual([1]);
    expect(await client.assistants.setLatest(id, 1)).toMatchObject({ version: 1, context: context(1) });
    expect((await client.assistants.get(id)).version).toBe(1);
    expect((await client.assistants.update(id, { name: "third" })).version).toBe(3);
    expect(await statusOf(client.assistants.setLatest(id, 9))).toBe(404);
  });

  it("describes a graph: its schemas, its drawing flat and with what is inside, its subgraphs", async () => {
    const schemas = await client.assistants.getSchemas("contextual");
    expect(schemas.graph_id).toBe("contextual");
    expect(Object.keys(schemas.input_schema?.properties ?? {})).toEqual(["topic"]);
    expect(Object.keys(schemas.output_schema?.properties ?? {})).toEqual(["said"]);
    expect(schemas.context_schema?.required).toEqual(["user_id"]);
    const flat = await client.assistants.getGraph("nested");
    expect(flat.nodes.map(({ id }) => id)).toEqual(["__start__", "before", "middle", "end", "__end__"]);
    const deep = await client.assistants.getGraph("nested", { xray: true });
    expect(deep.nodes.map(({ id }) => String(id))).toContain("middle:inner:second");
    expect(Object.keys(await client.assistants.getSubgraphs("nested"))).toEqual(["middle"]);
    expect(Object.keys(await client.assistants.getSubgraphs("nested", { recurse: true }))).toEqual([
      "middle",
      "middle|inner",
    ]);
    expect(Object.keys(await client.assistants.getSubgraphs("nested", { namespace: "middle" }))).toEqual(["middle"]);
  });

  it("searches by graph and name, sorted, selected and by pages, counts alike, and deletes with the threads", async () => {
    const mark = crypto.randomUUID();
    const made: Assistant[] = [];
    for (const name of ["alpha", "beta", "gamma"]) {
      made.push(await client.assistants.create({ graphId: "counting", name: `${name} ${mark}`, metadata: { mark } }));
    }
    const query = { graphId: "counting", metadata: { mark }, sortBy: "name", sortOrder: "asc" } as const;
    const page = await client.assistants.search({ ...query, limit: 2, includePagination: true });
    expect(page.assistants.map(({ name }) => name)).toEqual([`alpha ${mark}`, `beta ${mark}`]);
    expect(page.next).toBe("2");
    const rest = await client.assistants.search({ ...query, limit: 2, offset: 2, includePagination: true });
    expect([rest.assistants.map(({ name }) => name), rest.next]).toEqual([[`gamma ${mark}`], null]);
    const [selected] = await client.assistants.search({ ...query, select: ["assistant_id"] });
    expect(selected).toEqual({ assistant_id: made[0]!.assistant_id });
    expect(await client.assistants.count({ graphId: "counting", metadata: { mark } })).toBe(3);
    expect(await client.assistants.count({ graphId: "nested", metadata: { mark } })).toBe(0);
    expect(await client.assistants.count({ name: `beta ${mark}` })).toBe(1);

    const kept = await newThread();
    const gone = await newThread({ assistant_id: made[0]!.assistant_id });
    await client.assistants.delete(made[0]!.assistant_id, { deleteThreads: true });
    expect(await statusOf(client.threads.get(gone))).toBe(404);
    expect((await client.threads.get(kept)).thread_id).toBe(kept);
    await expect(client.assistants.get(made[0]!.assistant_id)).rejects.toThrow(/404.*not found/i);
  });

  it("has a default assistant for each graph, under the same id at every look", async () => {
    const found = await client.assistants.search({ metadata: { created_by: "system" }, limit: 100 });
    const graphs = found.map(({ graph_id }) => graph_id);
    expect(graphs).toEqual(expect.arrayContaining([LEAD, "nested", "fan_out", "dynamic"]));
    expect(new Set(found.map(({ assistant_id }) => assistant_id)).size).toBe(found.length);
    for (const { assistant_id, graph_id } of found.slice(0, 3)) {
      expect((await client.assistants.get(graph_id)).assistant_id).toBe(assistant_id);
    }
  });
});

describe("client.threads", () => {
  it("searches by ids, status and order, with offset", async () => {
    const mark = crypto.randomUUID();
    const ids = [];
    for (let index = 0; index < 3; index += 1) ids.push(await newThread({ mark, index }));
    await client.runs.wait(ids[1]!, "nested", { input: { gate: mark, ask: true } });
    const found = async (query: object) =>
      (await client.threads.search({ metadata: { mark }, ...query })).map(({ thread_id }) => thread_id);
    await eventually(
      () => found({ status: "interrupted" }),
      (seen) => seen.length > 0,
      ENDED_MS,
    );
    expect(await found({ status: "interrupted" })).toEqual([ids[1]]);
    expect(await found({ status: "idle" })).toEqual([ids[2], ids[0]]);
    expect(await found({ ids: [ids[0], ids[2], crypto.randomUUID()] })).toEqual([ids[2], ids[0]]);
    expect(await found({ sortBy: "created_at", sortOrder: "asc", limit: 1, offset: 1 })).toEqual([ids[1]]);
    expect(await found({ metadata: { mark, index: 2 } })).toEqual([ids[2]]);
    expect(await client.threads.count({ metadata: { mark }, status: "interrupted" })).toBe(1);
  });

  it("finds a thread by the graph and the assistant that ran on it, as chat clients list theirs", async () => {
    const mark = crypto.randomUUID();
    const { assistant_id: id } = await client.assistants.create({ graphId: "counting", metadata: { mark } });
    const [own, other] = [await newThread({ mark }), await newThread({ mark })];
    await client.runs.wait(own, id, { input: { count: 0, upTo: 1 } });
    await client.runs.wait(other, "versioned", { input: { gate: mark } });
    const made = `made-${mark}`;
    await client.runs.wait(made, "versioned", { input: { gate: mark }, ifNotExists: "create", metadata: { mark } });
    expect((await client.threads.get(own)).metadata).toEqual({ mark, graph_id: "counting", assistant_id: id });
    expect((await client.threads.get(made)).metadata).toMatchObject({ graph_id: "versioned" });
    const found = async (metadata: Record<string, string>) =>
      (await client.threads.search({ metadata })).map(({ thread_id }) => thread_id);
    await eventually(
      () => found({ assistant_id: id }),
      (seen) => seen.length > 0,
      ENDED_MS,
    );
    expect(await found({ assistant_id: id })).toEqual([own]);
    expect(await found({ mark, graph_id: "versioned" })).toEqual([other]);
    await client.assistants.delete(id, { deleteThreads: true });
    expect(await statusOf(client.threads.get(own))).toBe(404);
  });

  it("shows a question in the thread, in its state, and inside of the subgraph that asks", async () => {
    const threadId = await askedThread();
    const thread = await client.threads.get(threadId);
    expect(thread.status).toBe("interrupted");
    expect(Object.values(thread.interrupts).flat()).toMatchObject([{ value: { question: "go on?" } }]);
    const state = await client.threads.getState<{ path: string[] }>(threadId, undefined, { subgraphs: true });
    expect([state.next, state.values.path]).toEqual([["middle"], ["before"]]);
    const middle = state.tasks[0]!.state!;
    const inner = middle.tasks[0]!.state!;
    expect([middle.next, inner.next]).toEqual([["inner"], ["second"]]);
    expect(inner.checkpoint.checkpoint_ns).toMatch(/^middle:[0-9a-f-]+\|inner:[0-9a-f-]+$/);
    const byReference = await client.threads.getState(threadId, inner.checkpoint);
    expect(byReference).toMatchObject({ next: ["second"], checkpoint: inner.checkpoint });
    const history = await client.threads.getHistory(threadId, { checkpoint: inner.checkpoint });
    expect(history[0]!.checkpoint.checkpoint_id).toBe(inner.checkpoint.checkpoint_id);
    const selected = await client.threads.getState(threadId, undefined, { select: ["next", "values.path"] });
    expect(selected).toEqual({ next: ["middle"], values: { path: ["before"] } });
  });

  it("writes state as a node, and at an older checkpoint as a branch of it", async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, "versioned", { input: { gate: threadId } });
    const [end, middle] = await client.threads.getHistory<{ by: string[] }>(threadId);
    expect([end!.values.by, middle!.values.by]).toEqual([["two", "two"], ["two"]]);
    const branch = await client.threads.updateState(threadId, {
      values: { by: ["me"] },
      checkpoint: middle!.checkpoint,
      asNode: "first",
    });
    const written = (branch as unknown as { checkpoint: { checkpoint_id: string } }).checkpoint;
    const state = await client.threads.getState<{ by: string[] }>(threadId);
    expect(state).toMatchObject({ values: { by: ["two", "me"] }, next: ["second"] });
    expect(state.checkpoint.checkpoint_id).toBe(written.checkpoint_id);
    expect(state.parent_checkpoint?.checkpoint_id).toBe(middle!.checkpoint.checkpoint_id);
    const values = await client.runs.wait(threadId, "versioned", { input: null });
    expect(values).toMatchObject({ by: ["two", "me", "two"] });
  });

  it("patches the newest checkpoint's metadata, and history finds it by that", async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, "counting", { input: { count: 0, upTo: 3 } });
    await client.threads.patchState(threadId, { reviewed: "yes" });
    await client.runs.wait(threadId, "counting", { input: { upTo: 5 } });
    const found = await client.threads.getHistory<{ count: number }>(threadId, { metadata: { reviewed: "yes" } });
    expect(found.map(({ values }) => values.count)).toEqual([3]);
    await client.threads.patchState({ configurable: { thread_id: threadId } }, { reviewed: "no" });
    expect((await client.threads.getState(threadId)).metadata).toMatchObject({ reviewed: "no" });
  });

  it("prunes to the newest state, and away", async () => {
    const [kept, gone] = [await newThread(), await newThread()];
    for (const text of ["one", "two"]) await client.runs.wait(kept, LEAD, human(`@ say ${text}`));
    const before = await client.threads.getState(kept);
    expect(await client.threads.prune([kept], { strategy: "keep_latest" })).toEqual({ pruned_count: 1 });
    expect(await client.threads.getHistory(kept)).toHaveLength(1);
    expect((await client.threads.getState(kept)).values).toEqual(before.values);
    expect(answerOf(await client.runs.wait(kept, LEAD, human("@ say three")))).toBe("three");
    expect(await client.threads.prune([gone, crypto.randomUUID()])).toEqual({ pruned_count: 1 });
    expect(await statusOf(client.threads.get(gone))).toBe(404);
  });

  it("makes a thread with a history and a life; lists its runs by fields", async () => {
    const said = (type: string, content: string) => ({ messages: [{ type, content }] });
    const { thread_id: threadId } = await client.threads.create({
      graphId: LEAD,
      supersteps: [
        { updates: [{ values: said("human", "What is 1+1?"), asNode: "__start__" }] },
        { updates: [{ values: said("ai", "2"), asNode: "model" }] },
      ],
      ttl: 60,
    });
    const values = await client.runs.wait(threadId, LEAD, human("@ say more"));
    expect((values as unknown as LeadValues).messages.map(({ content }) => content)).toEqual([
      "What is 1+1?",
      "2",
      "@ say more",
      "more",
    ]);
    const listed = await client.runs.list(threadId, { select: ["status", "multitask_strategy"] });
    expect(listed).toEqual([{ status: "success", multitask_strategy: "reject" }]);
    await client.threads.update(threadId, { ttl: { ttl: 120, strategy: "delete" } });
    const shown = await client.threads.get(threadId, { include: ["ttl"] });
    expect(shown).toMatchObject({ thread_id: threadId, ttl: { strategy: "delete", ttl_minutes: 120 } });
  });

  it("copies a thread with its history; what the copy does then is its own", async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, "versioned", { input: { gate: threadId } });
    const copy = (await client.threads.copy(threadId)) as unknown as { thread_id: string };
    expect(copy.thread_id).not.toBe(threadId);
    const states = async (of: string) => (await client.threads.getHistory(of)).map(({ values }) => values);
    const before = await states(threadId);
    expect(await states(copy.thread_id)).toEqual(before);
    await client.runs.wait(copy.thread_id, "versioned", { input: { gate: threadId } });
    expect(await states(threadId)).toEqual(before);
  });

  it("joinStream follows a thread over its runs", async () => {
    const threadId = await newThread();
    const leaving = new AbortController();
    const seen: Part[] = [];
    const following = (async () => {
      for await (const part of client.threads.joinStream(threadId, { lastEventId: "-", signal: leaving.signal })) {
        seen.push(part);
        if (ends(seen) === 2) leaving.abort();
      }
    })().catch((error: unknown) => {
      if (!leaving.signal.aborted) throw error;
    });
    const first = await client.runs.create(threadId, "counting", { input: { count: 0, upTo: 2 } });
    await client.runs.join(threadId, first.run_id);
    const second = await client.runs.create(threadId, "counting", { input: { count: 0, upTo: 3 } });
    await following;
    expect(dataOf<{ status?: string; run_id: string }>(seen, "metadata").filter(isEnd)).toMatchObject([
      { run_id: first.run_id },
      { run_id: second.run_id },
    ]);
    expect(dataOf<{ count: number }>(seen, "values").map(({ count }) => count)).toContain(3);
  });

  const isEnd = ({ status }: { status?: string }) => status === "run_done";
  const ends = (parts: readonly Part[]) => dataOf<{ status?: string }>(parts, "metadata").filter(isEnd).length;
});

describe("client.runs", () => {
  it("createBatch starts each on a thread of its own, with the options as the SDK spells them", async () => {
    const made = await client.runs.createBatch([
      { assistantId: "counting", input: { count: 0, upTo: 2 }, multitaskStrategy: "enqueue" },
      { assistantId: "counting", input: { count: 0, upTo: 4 }, interruptBefore: ["add"], metadata: { tag: "b" } },
    ]);
    expect(made.map((run) => run.multitask_strategy)).toEqual(["enqueue", "reject"]);
    expect(new Set(made.map((run) => run.thread_id)).size).toBe(2);
    const [first, second] = await Promise.all(made.map((run) => client.runs.join(run.thread_id, run.run_id)));
    expect(first).toMatchObject({ count: 2 });
    expect(second).toMatchObject({ __interrupt__: [] });
    expect((await client.runs.get(made[1]!.thread_id, made[1]!.run_id)).metadata).toMatchObject({ tag: "b" });
  });

  it("list filters by status, newest first, by pages", async () => {
    const threadId = await newThread();
    const runs: string[] = [];
    for (const upTo of [2, 9, 2]) {
      const run = await client.runs.create(threadId, "counting", { input: { count: 0, upTo } });
      await client.runs.join(threadId, run.run_id);
      runs.push(run.run_id);
    }
    const ids = async (options: Parameters<Client["runs"]["list"]>[1]) =>
      (await client.runs.list(threadId, options)).map(({ run_id }) => run_id);
    expect(await ids({ status: "error" })).toEqual([runs[1]]);
    expect(await ids({ status: "success" })).toEqual([runs[2], runs[0]]);
    expect(await ids({ limit: 1, offset: 1 })).toEqual([runs[1]]);
  });

  it("a run past its limit: wait throws GraphRecursionError, join resolves, joinStream ends with error", async () => {
    const threadId = await newThread();
    const input = { count: 0, upTo: 9 };
    await expect(client.runs.wait(threadId, "counting", { input })).rejects.toThrow("GraphRecursionError");
    const [run] = await client.runs.list(threadId);
    expect(await client.runs.join(threadId, run!.run_id)).toMatchObject({
      __error__: { error: "GraphRecursionError" },
    });
    const parts = await collect(client.runs.joinStream(threadId, run!.run_id, { lastEventId: "-1" }));
    expect(parts.at(-1)).toMatchObject({
      event: "error",
      data: { error: "GraphRecursionError", message: expect.stringContaining("7") },
    });
    const more = await client.runs.wait(await newThread(), "counting", { input, config: { recursion_limit: 20 } });
    expect(more).toMatchObject({ count: 9 });
  });

  it("enqueue keeps the order; interrupt leaves its predecessor interrupted; a rolled-back run is gone with its work", async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, LEAD, human("@ say before"));
    const before = await client.threads.getState<LeadValues>(threadId);
    const taken = await client.runs.create(threadId, LEAD, SLOW);
    await running(threadId, taken);
    await client.runs.wait(threadId, LEAD, { ...human("@ say after rollback"), multitaskStrategy: "rollback" });
    expect(await statusOf(client.runs.get(threadId, taken.run_id))).toBe(404);
    const { values } = await client.threads.getState<LeadValues>(threadId);
    expect(values.messages.slice(0, 2)).toEqual(before.values.messages);
    expect(values.messages.map(({ content }) => content).slice(2)).toEqual(["@ say after rollback", "after rollback"]);

    const slow = await client.runs.create(threadId, LEAD, SLOW);
    await running(threadId, slow);
    const next = await client.runs.create(threadId, LEAD, { ...human("@ say b"), multitaskStrategy: "interrupt" });
    const last = await client.runs.create(threadId, LEAD, { ...human("@ say c"), multitaskStrategy: "enqueue" });
    const answers = await Promise.all([next, last].map(({ run_id }) => client.runs.join(threadId, run_id)));
    expect(answers.map(answerOf)).toEqual(["b", "c"]);
    expect((await client.runs.get(threadId, slow.run_id)).status).toBe("interrupted");
  });

  it("cancel rolls back, cancelMany ends a thread's runs, and a run that waits its time is interrupted with an idle thread", async () => {
    const threadId = await newThread();
    const gone = await client.runs.create(threadId, LEAD, SLOW);
    await running(threadId, gone);
    await client.runs.cancel(threadId, gone.run_id, true, "rollback");
    expect(await statusOf(client.runs.get(threadId, gone.run_id))).toBe(404);

    const later = await client.runs.create(threadId, LEAD, { ...human("@ say late"), afterSeconds: 600 });
    expect(later.status).toBe("pending");
    await client.runs.cancel(threadId, later.run_id, true, "interrupt", { reason: "taken" });
    expect(await client.runs.get(threadId, later.run_id)).toMatchObject({
      status: "interrupted",
      cancel_reason: "taken",
    });
    expect((await client.threads.get(threadId)).status).toBe("idle");

    const active = await client.runs.create(threadId, LEAD, SLOW);
    const queued = await client.runs.create(threadId, LEAD, { ...SLOW, multitaskStrategy: "enqueue" });
    await client.runs.cancelMany({ threadId, status: "pending" });
    expect((await client.runs.get(threadId, queued.run_id)).status).toBe("interrupted");
    await client.runs.cancelMany({ threadId, runIds: [active.run_id], action: "interrupt" });
    await client.runs.join(threadId, active.run_id);
    expect((await client.runs.get(threadId, active.run_id)).status).toBe("interrupted");
    expect((await client.threads.get(threadId)).status).toBe("idle");
  });

  it("stops before a node and goes on without input; the history stays one line", async () => {
    const threadId = await newThread();
    const stopped = await client.runs.wait(threadId, "versioned", {
      input: { gate: threadId },
      interruptBefore: ["second"],
    });
    expect(stopped).toMatchObject({ by: ["two"], __interrupt__: [] });
    expect(await client.threads.get(threadId)).toMatchObject({ status: "interrupted" });
    expect(await client.runs.wait(threadId, "versioned", { input: null })).toMatchObject({ by: ["two", "two"] });
    const history = await client.threads.getHistory(threadId);
    const parents = history.map((state) => state.parent_checkpoint?.checkpoint_id ?? null);
    expect(parents).toEqual([...history.slice(1).map((state) => state.checkpoint.checkpoint_id), null]);
  });

  it("answers questions by command: one by its value, several by their ids; the wrong one is refused", async () => {
    const threadId = await askedThread();
    const answered = await client.runs.wait(threadId, "nested", { command: { resume: "yes" } });
    expect(answered).toMatchObject({ path: ["before", "end: yes!"] });
    const branches = await newThread();
    const items = ["ask-a", "plain", "ask-b"];
    const asked = await client.runs.wait(branches, "fan_out", { input: { gate: branches, items } });
    const questions = (asked as { __interrupt__: { id: string; value: { item: string } }[] })["__interrupt__"];
    expect(questions.map(({ value }) => value.item).toSorted()).toEqual(["ask-a", "ask-b"]);
    expect(await statusOf(client.runs.wait(branches, "fan_out", { command: { resume: "both" } }))).toBe(422);
    const resume = Object.fromEntries(questions.map(({ id, value }) => [id, value.item.toUpperCase()]));
    const done = (await client.runs.wait(branches, "fan_out", { command: { resume } })) as { done: string[] };
    expect(done.done.toSorted()).toEqual(["ask-a=ASK-A", "ask-b=ASK-B", "joined 3", "plain"]);
  });

  it("update and goto of a command, a fork at a checkpoint, a thread made on the way", async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, "commanding", { input: { route: "short" } });
    const moved = await client.runs.wait(threadId, "commanding", {
      command: { update: { trail: ["told"] }, goto: "caught" },
    });
    expect(moved).toMatchObject({ trail: ["chose", "short", "told", "caught"] });
    const history = await client.threads.getHistory<{ trail: string[] }>(threadId, { limit: 20 });
    const fork = history.find(({ values, next }) => values.trail.join() === "chose" && next.includes("short"))!;
    const forked = await client.runs.wait(threadId, "commanding", {
      input: null,
      checkpointId: fork.checkpoint.checkpoint_id!,
    });
    expect(forked).toMatchObject({ trail: ["chose", "short"] });

    const made = `made-${crypto.randomUUID()}`;
    expect(await statusOf(client.runs.wait(made, "commanding", { input: { route: "leaving" } }))).toBe(404);
    const values = await client.runs.wait(made, "commanding", { input: { route: "leaving" }, ifNotExists: "create" });
    expect(values).toMatchObject({ trail: ["chose", "left", "caught"] });
  });

  it("every mode at once, in subgraphs: exactly the frames that were asked for, and a join picks among them", async () => {
    const threadId = await newThread();
    const streamMode = [
      "values",
      "updates",
      "messages-tuple",
      "custom",
      "events",
      "debug",
      "tasks",
      "checkpoints",
    ] as const;
    const parts = await collect(
      client.runs.stream(threadId, "nested", {
        input: { gate: threadId, ask: false },
        streamMode: [...streamMode],
        streamSubgraphs: true,
      }),
    );
    const bare = new Set(eventNames(parts).map((name) => name.split("|")[0]!));
    expect([...bare].toSorted()).toEqual(["checkpoints", "debug", "events", "metadata", "tasks", "updates", "values"]);
    const depths = new Set(
      parts.filter(({ event }) => event.startsWith("updates")).map(({ event }) => event.split("|").length),
    );
    expect(depths).toEqual(new Set([1, 2, 3]));
    expect(parts.at(-1)!.event).not.toBe("end");
    const joined = await collect(
      client.runs.joinStream(threadId, runIdOf(parts), {
        lastEventId: "-1",
        streamMode: ["updates"],
        streamNamespaces: ["middle|inner"],
      }),
    );
    const inner = (event: string) => /^updates\|middle:[^|]+\|inner:[^|]+$/.test(event);
    expect(joined).toEqual(parts.filter(({ event }) => event === "metadata" || inner(event)));
    expect(joined.length).toBe(3);
  });

  it("the legacy messages mode builds up each message, and says it once more whole", async () => {
    const parts = await collect(
      client.runs.stream(await newThread(), LEAD, { ...human("@ say one two three"), streamMode: "messages" }),
    );
    expect(eventNames(parts)).toEqual(["messages/complete", "messages/metadata", "messages/partial", "metadata"]);
    const texts = dataOf<[{ content: string }]>(parts, "messages/partial").map(([message]) => message.content);
    expect(texts.at(-1)).toBe("one two three");
    for (const [index, text] of texts.slice(1).entries()) expect(text.startsWith(texts[index]!)).toBe(true);
  });

  it("stateless: created in the background, joined by its own id; context reaches the graph, x-* headers its config", async () => {
    const run = await client.runs.create(null, "contextual", { input: { topic: "t" }, context: { user_id: "ada" } });
    const parts = await collect(client.runs.joinStream(null, run.run_id, { lastEventId: "-1" }));
    expect(dataOf<{ said?: string }>(parts, "values").at(-1)).toEqual({ topic: "t", said: "for ada" });
    const misfit = client.runs.wait(null, "contextual", { input: { topic: "t" }, context: { user_id: 7 } });
    await expect(misfit).rejects.toThrow(/InvalidContextError: .*user_id/);
    const flavoured = await client.runs.wait(null, "dynamic", {
      input: {},
      config: { configurable: { flavour: "mint" } },
    });
    expect(flavoured).toMatchObject({ said: expect.stringMatching(/^mint for threads.create_run with /) });
    const tenant = new Client({ apiUrl: deputy.url, apiKey: null, defaultHeaders: { "x-tenant": "blue" } });
    expect(await tenant.runs.wait(null, "forwarded", { input: {} })).toMatchObject({ said: "x-tenant=blue" });
  });
});
