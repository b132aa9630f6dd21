/** Any LangGraph graph of `deputy.config.ts`, run over HTTP in the real object; killed in the middle and recovered. */
import { abortAllDurableObjects, env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import { eventually } from "../../support/eventually.ts";
import { closeGate, openGate, visits } from "../../support/graphs/gates.ts";
import { ended, ranOnce, runOf, type SeenState, startRun, stateOf } from "../../support/graphs/http-run.ts";
import { newThread, parseFrames, send, sendJson, streamRun } from "../../support/http.ts";

const gateOf = () => crypto.randomUUID();

const answering = (threadId: string, graphId: string, resume: unknown) =>
  streamRun(threadId, { assistant_id: graphId, command: { resume } });

const questionsOf = ({ tasks }: SeenState) => tasks.flatMap(({ interrupts }) => interrupts);

/** Kills the object while a node of the run stands at the gate; the node comes there again. */
async function killedAt(gate: string, start: () => Promise<string>): Promise<string> {
  closeGate(gate);
  const runId = await start();
  await eventually(
    () => visits(gate),
    (count) => count === 1,
  );
  await abortAllDurableObjects();
  openGate(gate);
  return runId;
}

describe("what a graph may do", () => {
  it("nested subgraphs run to the end, and their frames are named by where they stand", async () => {
    const { state, frames } = await ranOnce("nested", {
      input: { gate: gateOf(), ask: false },
      stream_mode: ["updates"],
      stream_subgraphs: true,
    });
    expect(state.values).toMatchObject({ path: ["before", "end: not asked!"], answer: "not asked!" });
    const events = frames.map(({ event }) => event.replaceAll(/:[0-9a-f-]{36}/g, ""));
    expect(events).toEqual(expect.arrayContaining(["updates", "updates|middle", "updates|middle|inner"]));
  });

  it("`Send` makes a branch an item, whose results keep their order", async () => {
    const items = ["a", "b", "c", "d"];
    const { state } = await ranOnce("fan_out", { input: { gate: gateOf(), items } });
    expect(state.values["done"]).toEqual([...items, "joined 4"]);
  });

  it.each([
    ["short", ["chose", "short"]],
    ["leaving", ["chose", "left", "caught"]],
  ])("`Command` goes to %s", async (route, trail) => {
    const { state } = await ranOnce("commanding", { input: { route } });
    expect(state.values["trail"]).toEqual(trail);
  });

  it("an entrypoint of the functional API gives its value, and knows the run before", async () => {
    const { threadId, state } = await ranOnce("functional", { input: { gate: gateOf(), word: "ha" } });
    expect(state.values).toEqual({ result: "haha.", before: null });
    await streamRun(threadId, { assistant_id: "functional", input: { gate: gateOf(), word: "ho" } });
    expect((await stateOf(threadId)).values).toEqual({ result: "hoho.", before: "haha." });
  });

  it("a graph that fails: its error's name and message are in the run, the stream and the event; its state stands", async () => {
    const { threadId, run, frames, state } = await ranOnce("failing", { input: { said: "" } });
    const error = { error: "OutOfPaperError", message: "tray 2 is empty" };
    expect([run.status, run.error]).toEqual(["error", error]);
    expect(frames.at(-1)).toMatchObject({ event: "error", data: error });
    const events = await sendJson<{ event_type: string; content: unknown }[]>(
      "GET",
      `/threads/${threadId}/runs/${run.run_id}/events`,
    );
    expect(events.at(-1)).toMatchObject({ event_type: "run.error", content: error });
    expect(state.values).toEqual({ said: "before" });
    expect((await sendJson<{ status: string }>("GET", `/threads/${threadId}`)).status).toBe("error");
  });
});

describe("how a graph is run", () => {
  it("a factory is given the run's config and context, and the state is read through the graph it made", async () => {
    const { state } = await ranOnce("dynamic", {
      input: { said: "" },
      config: { configurable: { flavour: "plain" } },
      context: { k: 1 },
    });
    expect(state.values).toEqual({ said: 'plain for threads.create_run with {"k":1}' });
  });

  it("a factory that fails ends its run with its error, and the state stays readable", async () => {
    const { threadId, run, frames, state } = await ranOnce("dynamic", { input: { said: "" } });
    expect([run.status, run.error]).toEqual(["error", { error: "FlavourError", message: "a flavour is required" }]);
    expect(frames.at(-1)).toMatchObject({ event: "error", data: run.error });
    expect(state.values).toEqual({});
    const again = { assistant_id: "dynamic", input: { said: "" }, config: { configurable: { flavour: "plain" } } };
    await streamRun(threadId, again);
    expect((await stateOf(threadId)).values["said"]).toContain("plain");
  });

  it("every way to a run's values shows the same of a graph with an output schema: streamed, waited for, joined, behind a gap", async () => {
    const body = { input: { topic: "t" }, context: { user_id: "u1" } };
    const { threadId, frames, run, state } = await ranOnce("contextual", {
      ...body,
      stream_mode: ["values", "updates"],
    });
    // LangGraph's own stream shows all of the state: an output schema is for `invoke`.
    const given = { said: "for u1", topic: "t" };
    expect(state.values).toEqual(given);
    expect(frames.findLast(({ event }) => event === "values")?.data).toEqual(given);
    expect(await sendJson("GET", `/threads/${threadId}/runs/${run.run_id}/join`)).toEqual(given);
    const waited = { assistant_id: "contextual", ...body, stream_mode: "updates" };
    expect(await sendJson("POST", `/threads/${threadId}/runs/wait`, waited)).toEqual(given);
    const [newest] = await sendJson<{ run_id: string }[]>("GET", `/threads/${threadId}/runs`);
    const path = `/threads/${threadId}/runs/${newest!.run_id}/stream`;
    const asked = await send("GET", `${path}?stream_mode=values`);
    expect(parseFrames(await asked.text()).at(-1)).toMatchObject({ event: "values", data: given });
    const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
    await runInDurableObject(stub, (_instance, { storage }) => void storage.sql.exec("DELETE FROM frame_blocks"));
    const behindGap = parseFrames(await (await send("GET", path)).text());
    expect(behindGap.map(({ event }) => event)).toEqual(["gap", "values"]);
    expect(behindGap[1]?.data).toEqual(given);
  });

  it("a context that fits reaches the graph", async () => {
    const { run, state } = await ranOnce("contextual", { input: { topic: "t" }, context: { user_id: "u1" } });
    expect([run.error, state.values["said"]]).toEqual([null, "for u1"]);
  });

  it.each([
    [{ level: 1 }, "context.user_id"],
    [{ user_id: "u1", level: "high" }, "context.level"],
  ])("context %j is a failed run that says what is wrong where", async (context, path) => {
    const { run } = await ranOnce("contextual", { input: { topic: "t" }, context });
    expect([run.status, run.error?.error]).toEqual(["error", "InvalidContextError"]);
    expect(run.error?.message).toContain(`${path}: `);
    expect(run.error?.message).toContain("the graph's context has user_id, level");
  });

  it("the recursion limit is the run's, else the graph's own", async () => {
    const own = await ranOnce("counting", { input: { count: 0, upTo: 9 } });
    expect([own.run.error?.error, own.state.values["count"]]).toEqual(["GraphRecursionError", 7]);
    const asked = await ranOnce("counting", { input: { count: 0, upTo: 9 }, config: { recursion_limit: 20 } });
    expect([asked.run.error, asked.state.values["count"]]).toEqual([null, 9]);
    const less = await ranOnce("counting", { input: { count: 0, upTo: 9 }, config: { recursion_limit: 3 } });
    expect([less.run.error?.error, less.state.values["count"]]).toEqual(["GraphRecursionError", 3]);
  });

  it.each(["own_saver", "no_saver"])(
    "%s: what the graph was compiled with gives way to the thread's saver",
    async (graph) => {
      const { threadId, state } = await ranOnce(graph, { input: { count: 1 } });
      const said = graph === "own_saver" ? `thread ${threadId}` : "kept all the same";
      expect(state.values).toEqual({ count: 1, said });
      await abortAllDurableObjects();
      expect((await stateOf(threadId)).values).toEqual({ count: 1, said });
    },
  );
});

describe("a graph whose object dies", () => {
  it.each(["first", "second", "after"])("P1 P2 nested subgraphs go on at '%s'", async (node) => {
    const gate = gateOf();
    const threadId = await newThread();
    const runId = await killedAt(`${gate}/${node}`, () =>
      startRun(threadId, "nested", { input: { gate, ask: false } }),
    );
    expect((await ended(threadId, runId)).status).toBe("success");
    expect((await stateOf(threadId)).values).toMatchObject({ path: ["before", "end: not asked!"] });
    const seen = ["first", "second", "after"].map((each) => visits(`${gate}/${each}`));
    expect(seen).toEqual(["first", "second", "after"].map((each) => (each === node ? 2 : 1)));
  });

  it("P2 a branch of a `Send` that was done is not done again", async () => {
    const gate = gateOf();
    const threadId = await newThread();
    const start = async () => {
      const runId = await startRun(threadId, "fan_out", { input: { gate, items: ["a", "slow", "c"] } });
      await eventually(
        async () => (await stateOf(threadId)).values["done"],
        (done) => (done as string[] | undefined)?.length === 2,
      );
      return runId;
    };
    const runId = await killedAt(`${gate}/slow`, start);
    expect((await ended(threadId, runId)).status).toBe("success");
    expect((await stateOf(threadId)).values["done"]).toEqual(["a", "slow", "c", "joined 3"]);
    expect(["a", "slow", "c"].map((item) => visits(`${gate}/${item}`))).toEqual([1, 2, 1]);
  });

  it("P2 a task of an entrypoint that was done is not done again", async () => {
    const gate = gateOf();
    const threadId = await newThread();
    const input = { gate, word: "ha" };
    const runId = await killedAt(`${gate}/finish`, () => startRun(threadId, "functional", { input }));
    expect((await ended(threadId, runId)).status).toBe("success");
    expect((await stateOf(threadId)).values).toEqual({ result: "haha.", before: null });
    expect([visits(`${gate}/double`), visits(`${gate}/finish`)]).toEqual([1, 2]);
  });
});

interface Message {
  readonly id: string;
  readonly content: string;
}

describe("LangGraph's own messages channel", () => {
  const messagesOf = async (threadId: string) => ((await stateOf(threadId)).values["messages"] ?? []) as Message[];

  it("a message that was given no id has one from its first write: for readers, after a crash, at the end", async () => {
    const gate = gateOf();
    const threadId = await newThread();
    const input = {
      gate,
      messages: [
        { role: "user", content: "hi" },
        { type: "human", content: "there" },
      ],
    };
    closeGate(`${gate}/asking`);
    const runId = await startRun(threadId, "chatting", { input });
    // The other branch is done, its messages are writes that no checkpoint has taken in.
    const before = await eventually(
      () => messagesOf(threadId),
      (messages) => messages.length === 5 && visits(`${gate}/asking`) === 1,
    );
    expect(await messagesOf(threadId)).toEqual(before);
    await abortAllDurableObjects();
    expect(await messagesOf(threadId)).toEqual(before);
    openGate(`${gate}/asking`);
    expect((await ended(threadId, runId)).status).toBe("interrupted");
    expect(await messagesOf(threadId)).toEqual(before);
    expect(before.map(({ content }) => content)).toEqual(["hi", "there", "hello", "an answer", "as a dict"]);
    expect(new Set(before.map(({ id }) => id)).size).toBe(5);
  });
});

describe("a command to a graph with messages", () => {
  it("answers its question, and does not start it anew as input would; what it writes has ids", async () => {
    const input = { gate: gateOf(), messages: [{ role: "user", content: "hi" }] };
    const { threadId, state } = await ranOnce("chatting", { input });
    expect(questionsOf(state)).toMatchObject([{ value: "well?" }]);
    await answering(threadId, "chatting", "fine");
    const said = async () => (await stateOf(threadId)).values["messages"] as { id: string; content: string }[];
    const contents = (await said()).map(({ content }) => content);
    expect(contents).toEqual(["hi", "hello", "an answer", "as a dict", "you said fine"]);
    const update = { messages: [{ role: "user", content: "and?" }] };
    await streamRun(threadId, { assistant_id: "chatting", command: { update, goto: "answer" } });
    const after = await said();
    expect(after.slice(5).map(({ content }) => content)).toEqual(["and?", "an answer", "as a dict"]);
    expect(new Set(after.map(({ id }) => id)).size).toBe(8);
    expect(await said()).toEqual(after);
  });
});

describe("questions of a graph", () => {
  it("in a graph in a graph: asked once more after a crash, answered where they were asked", async () => {
    const gate = gateOf();
    const { threadId, run, state, frames } = await ranOnce("nested", { input: { gate, ask: true } });
    expect(run.status).toBe("interrupted");
    expect(questionsOf(state)).toMatchObject([{ value: { question: "go on?" } }]);
    expect(frames.at(-1)?.data).toMatchObject({ __interrupt__: [{ value: { question: "go on?" } }] });
    await abortAllDurableObjects();
    expect(questionsOf(await stateOf(threadId))).toEqual(questionsOf(state));
    await answering(threadId, "nested", "yes");
    expect((await stateOf(threadId)).values).toMatchObject({ path: ["before", "end: yes!"] });
    expect([visits(`${gate}/first`), visits(`${gate}/second`), visits(`${gate}/after`)]).toEqual([1, 2, 1]);
  });

  it("in branches of a `Send`: each answer goes to the branch that asked, and what was done stays done", async () => {
    const gate = gateOf();
    const { threadId, state } = await ranOnce("fan_out", { input: { gate, items: ["ask1", "b", "ask2"] } });
    const asked = questionsOf(state);
    expect(asked.map(({ value }) => value)).toEqual([{ item: "ask1" }, { item: "ask2" }]);
    await abortAllDurableObjects();
    const answers = Object.fromEntries(asked.map(({ id, value }) => [id, `for ${(value as { item: string }).item}`]));
    await answering(threadId, "fan_out", answers);
    expect((await stateOf(threadId)).values["done"]).toEqual(["ask1=for ask1", "b", "ask2=for ask2", "joined 3"]);
    expect(visits(`${gate}/b`)).toBe(1);
  });

  it("in an entrypoint: its tasks are not done again for the answer", async () => {
    const gate = gateOf();
    const { threadId, state } = await ranOnce("functional", { input: { gate, word: "ha", ask: true } });
    expect(questionsOf(state)).toMatchObject([{ value: { question: "and?" } }]);
    await answering(threadId, "functional", "!");
    expect((await stateOf(threadId)).values).toMatchObject({ result: "haha!." });
    expect(visits(`${gate}/double`)).toBe(1);
  });
});

it("a run says which version of its graph and of its assistant it was accepted with", async () => {
  const threadId = await newThread();
  const runId = await startRun(threadId, "versioned", { input: { gate: gateOf() } });
  expect(await ended(threadId, runId)).toMatchObject({ graph_version: "2", assistant_version: 1 });
  const plain = await ranOnce("commanding", { input: { route: "short" } });
  expect(await runOf(plain.threadId, plain.run.run_id)).toMatchObject({ graph_version: null, assistant_version: 1 });
  expect((await send("GET", `/threads/${threadId}/runs/${runId}`)).status).toBe(200);
});
