/**
 * Every stream mode over HTTP (langgraph-api.md B3), and what a join shows of a run: by mode, by namespace, to clients that
 * know the run only, and to those that follow the thread.
 */
import { abortAllDurableObjects, env, runInDurableObject } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { threadObjectName } from "../../../src/platform/thread-directory.ts";
import {
  ALICE,
  asking,
  BOB,
  type Frame,
  newThread,
  parseFrames,
  send,
  sendJson,
  streamRun,
} from "../../support/http.ts";

const ALL = ["values", "messages-tuple", "messages", "updates", "custom", "events", "debug", "tasks", "checkpoints"];
const LONG = "a sentence that is long enough to be worth a name of its own ".repeat(20).trim();
const SCRIPT = ['@ & call bash {"command": "echo 42"}', "@ usage 10 3", `@ say ${LONG} {{result:last:line 1}}`].join(
  "\n",
);

type Json = Record<string, unknown>;
const modesOf = (frames: readonly Frame[]) =>
  [...new Set(frames.map(({ event }) => event.split("|", 1)[0]!))].toSorted();
const dataOf = (frames: readonly Frame[], event: string) =>
  frames.filter((frame) => frame.event === event).map(({ data }) => data as Json);
const runIdOf = (frames: readonly Frame[]) => (frames[0]!.data as { run_id: string }).run_id;

async function join(path: string, headers: Record<string, string> = {}): Promise<Frame[]> {
  const response = await send("GET", path, undefined, { ...ALICE, ...headers });
  expect(response.status).toBe(200);
  return parseFrames(await response.text());
}

describe("a run with every stream mode", () => {
  let threadId: string;
  let live: string;
  let frames: Frame[];

  beforeAll(async () => {
    threadId = await newThread();
    const response = await send("POST", `/threads/${threadId}/runs/stream`, asking(SCRIPT, { stream_mode: ALL }));
    live = await response.text();
    frames = parseFrames(live);
  });

  it("has frames of each", () => {
    const expected = ["messages/complete", "messages/metadata", "messages/partial", "metadata", "messages"];
    // Nothing here writes `custom`.
    const others = ALL.filter((mode) => mode !== "custom" && !mode.startsWith("messages"));
    expect(modesOf(frames)).toEqual([...expected, ...others].toSorted());
    expect(frames.map(({ id }) => Number(id))).toEqual(frames.map((_, place) => place + 1));
  });

  it("values: the whole state at each step", () => {
    const values = dataOf(frames, "values");
    expect(values.map(({ messages }) => (messages as unknown[]).length)).toEqual([1, 2, 3, 4]);
    expect(Object.keys(values[0]!)).not.toContain("run_progress");
  });

  it("checkpoints: the same state, its place, what comes next, and nothing internal", () => {
    const [first, ...others] = dataOf(frames, "checkpoints");
    expect(Object.keys(first!).toSorted()).toEqual(
      ["checkpoint", "config", "metadata", "next", "parent_checkpoint", "parent_config", "tasks", "values"].toSorted(),
    );
    const last = others.at(-1)!;
    expect(last["next"]).toEqual([]);
    expect(last["values"]).toEqual(dataOf(frames, "values").at(-1));
    expect(last["parent_checkpoint"]).toEqual(others.at(-2)!["checkpoint"]);
    const config = (last["config"] as { configurable: Json }).configurable;
    expect(Object.keys(config)).toEqual(["thread_id", "checkpoint_ns", "checkpoint_id"]);
    expect(config["thread_id"]).toBe(threadId);
    expect(live).not.toMatch(/"(?:__pregel|deputy_)\w*":/);
  });

  it("tasks: one frame as a task starts, one with its result, under one id", () => {
    const tasks = dataOf(frames, "tasks");
    const started = tasks.filter((task) => "input" in task);
    expect(started.map(({ name }) => name)).toEqual(["model", "tools", "model"]);
    for (const { id, triggers, interrupts } of started) {
      expect(Array.isArray(triggers)).toBe(true);
      expect(interrupts).toEqual([]);
      const ended = tasks.filter((task) => task["id"] === id && !("input" in task));
      expect(ended).toHaveLength(1);
      expect(ended[0]).toMatchObject({ error: null, interrupts: [], result: { messages: expect.any(Array) } });
    }
    expect((started[2]!["input"] as { messages: unknown[] }).messages).toHaveLength(3);
  });

  it("debug: checkpoints and tasks with their step and time", () => {
    const debug = dataOf(frames, "debug");
    expect(new Set(debug.map(({ type }) => type))).toEqual(new Set(["checkpoint", "task", "task_result"]));
    for (const each of debug) {
      expect(typeof each["step"]).toBe("number");
      expect(Number.isNaN(Date.parse(each["timestamp"] as string))).toBe(false);
    }
    const payloads = (type: string) => debug.filter((each) => each["type"] === type).map(({ payload }) => payload);
    expect(payloads("checkpoint")).toEqual(dataOf(frames, "checkpoints"));
    expect([...payloads("task"), ...payloads("task_result")]).toEqual(expect.arrayContaining(dataOf(frames, "tasks")));
  });

  it("events: those of the chain, its model and its tokens, in the form v2", () => {
    const events = dataOf(frames, "events");
    const names = events.map(({ event }) => event);
    expect(names[0]).toBe("on_chain_start");
    expect(names.at(-1)).toBe("on_chain_end");
    expect(names).toContain("on_chat_model_start");
    expect(names.filter((name) => name === "on_chat_model_stream").length).toBeGreaterThan(20);
    expect(names).toContain("on_chat_model_end");
    for (const event of events) {
      expect(event).toMatchObject({ name: expect.any(String), run_id: expect.any(String), tags: expect.any(Array) });
      expect(event["metadata"]).toBeTypeOf("object");
    }
    const root = events.find(({ event }) => event === "on_chain_start")!;
    expect(root["run_id"]).toBe(runIdOf(frames));
  });

  it("messages, the legacy form: metadata once, text that grows, whole messages once the state has them", () => {
    const [metadata] = dataOf(frames, "messages/metadata");
    const [[id, told]] = Object.entries(metadata!) as [[string, { metadata: Json }]];
    expect(told.metadata["langgraph_node"]).toBe("model");
    const partials = dataOf(frames, "messages/partial") as unknown as [Json][];
    const answers = [...new Set(partials.map(([message]) => message["id"]))];
    expect(answers).toHaveLength(2);
    expect(answers[0]).toBe(id);
    const texts = partials
      .filter(([message]) => message["id"] === answers[1])
      .map(([message]) => message["content"] as string);
    for (const [place, text] of texts.entries()) expect(text.startsWith(texts[place - 1] ?? "")).toBe(true);
    expect(texts.at(-1)).toBe(`${LONG} 42`);
    const complete = (dataOf(frames, "messages/complete") as unknown as Json[][]).flat();
    expect(complete.map(({ type }) => type)).toEqual(["human", "ai", "tool", "ai"]);
    expect(complete.at(-1)!["content"]).toBe(`${LONG} 42`);
    const called = partials.filter(([message]) => message["id"] === answers[0]).at(-1)![0];
    expect(called["tool_calls"]).toMatchObject([{ name: "bash", args: { command: "echo 42" } }]);
  });

  it("replays byte for byte after the object's memory is gone", async () => {
    await abortAllDurableObjects();
    const replayed = await send("GET", `/threads/${threadId}/runs/${runIdOf(frames)}/stream`);
    expect(await replayed.text()).toBe(live);
  });

  it("resumes in the middle of a growing text with that text whole", async () => {
    const at = frames.findLastIndex(({ event }) => event === "messages/partial");
    const path = `/threads/${threadId}/runs/${runIdOf(frames)}/stream`;
    await abortAllDurableObjects();
    expect(await join(path, { "last-event-id": frames[at - 1]!.id! })).toEqual(frames.slice(at));
  });

  it("replays from the start behind an id that no frame of the run can have", async () => {
    const path = `/threads/${threadId}/runs/${runIdOf(frames)}/stream`;
    for (const forged of ["-1", "-7", "0", "1.5", "1e300", "NaN", "junk", `${runIdOf(frames)}:3`, "9007199254740991"]) {
      expect([forged, (await join(path, { "last-event-id": forged })).length]).toEqual([forged, frames.length]);
    }
  });

  it("a join shows the modes it asks for, each as it was recorded", async () => {
    const path = `/threads/${threadId}/runs/${runIdOf(frames)}/stream`;
    for (const mode of ALL) {
      const events = mode === "messages-tuple" ? ["messages"] : [mode];
      const wanted = (frame: Frame) =>
        frame.event === "metadata" ||
        (mode === "messages" ? frame.event.startsWith("messages/") : events.includes(frame.event));
      expect(await join(`${path}?stream_mode=${mode}`)).toEqual(frames.filter(wanted));
    }
  });

  it("a new run on the thread says nothing of older messages in the legacy form", async () => {
    const next = await streamRun(threadId, asking("@ say next", { stream_mode: "messages" }));
    expect(modesOf(next)).toEqual(["messages/complete", "messages/metadata", "messages/partial", "metadata"]);
    const complete = (dataOf(next, "messages/complete") as unknown as Json[][]).flat();
    expect(complete.map(({ type }) => type)).toEqual(["human", "ai"]);
  });
});

describe("what nobody asked for", () => {
  it("is in no stream: one mode gives that mode's frames, with subgraphs too", async () => {
    for (const mode of ALL.filter((each) => each !== "custom" && each !== "messages")) {
      const body = asking("@ say one", { stream_mode: mode, stream_subgraphs: true });
      const name = mode === "messages-tuple" ? "messages" : mode;
      expect(modesOf(await streamRun(await newThread(), body))).toEqual([name, "metadata"].toSorted());
    }
  });

  it("is refused by name: modes that no graph of ours has frames for", async () => {
    for (const stream_mode of ["tools", "lifecycle"]) {
      const response = await send("POST", "/runs/stream", asking("@ say x", { stream_mode }));
      expect(response.status).toBe(422);
      expect(await response.json()).toMatchObject({ code: "unsupported_option", details: { value: stream_mode } });
    }
  });
});

describe("frames that repeat the state", () => {
  /** A thread with much in it, and a run of two turns on it. */
  async function recorded(stream_mode: readonly string[]): Promise<{ replayed: number; stored: number }> {
    const threadId = await newThread();
    const messages = Array.from({ length: 40 }, () => ({ type: "human", content: LONG }));
    await sendJson("POST", `/threads/${threadId}/state`, { values: { messages } });
    const frames = await streamRun(threadId, asking(SCRIPT, { stream_mode }));
    const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName("alice", threadId)));
    const stored = await runInDurableObject(
      stub,
      (_instance, state) =>
        state.storage.sql.exec<{ bytes: number }>("SELECT sum(bytes) AS bytes FROM frame_blocks").one().bytes,
    );
    return { replayed: JSON.stringify(frames).length, stored };
  }

  it("cost a fraction of what they show: values, checkpoints, tasks and debug name the state", async () => {
    for (const modes of [["values"], ["checkpoints"], ["tasks"], ["debug"]]) {
      const { replayed, stored } = await recorded(modes);
      expect(replayed).toBeGreaterThan(100_000);
      expect(stored).toBeLessThan(replayed / 8);
    }
  });
});

describe("joins", () => {
  const DELEGATING = ["@ delegate general-purpose :: one :: <<'ONE'", "@ say from the child", "ONE", "@ say done"].join(
    "\n",
  );

  it("by namespace: the run's own graph, or one of its subgraphs, on create and on join alike", async () => {
    const threadId = await newThread();
    const body = asking(DELEGATING, { stream_mode: ["updates", "messages-tuple"], stream_subgraphs: true });
    const all = await streamRun(threadId, body);
    const inner = all
      .find(({ event }) => event.includes("|"))!
      .event.split("|")
      .slice(1);
    const path = `/threads/${threadId}/runs/${runIdOf(all)}/stream`;
    const root = all.filter(({ event }) => !event.includes("|"));
    expect(await join(`${path}?namespace=`)).toEqual(root);
    const child = await join(`${path}?namespace=${encodeURIComponent(inner.join("|"))}`);
    expect(child.slice(1).length).toBeGreaterThan(0);
    expect(child).toEqual(
      all.filter(({ event }) => event === "metadata" || event.split("|").slice(1).join("|") === inner.join("|")),
    );
    const byNode = inner.map((segment) => segment.split(":", 1)[0]).join("|");
    expect(await join(`${path}?namespace=${encodeURIComponent(byNode)}&namespace=`)).toEqual(
      all.filter(({ event }) => event.split("|").length <= inner.length + 1),
    );
    const created = await send("POST", `/threads/${await newThread()}/runs/stream?namespace=`, body);
    const own = parseFrames(await created.text());
    expect(own.map(({ event }) => event)).toEqual(root.map(({ event }) => event));
  });

  it("values of a run that recorded none: those it ended with; of another mode: nothing", async () => {
    const threadId = await newThread();
    const frames = await streamRun(threadId, asking("@ say hello", { stream_mode: "updates" }));
    const path = `/threads/${threadId}/runs/${runIdOf(frames)}/stream`;
    const joined = await join(`${path}?stream_mode=values`);
    expect(joined.map(({ event, id }) => [event, id])).toEqual([
      ["metadata", "1"],
      ["values", undefined],
    ]);
    expect((joined[1]!.data as { messages: unknown[] }).messages).toHaveLength(2);
    expect((await join(`${path}?stream_mode=debug`)).map(({ event }) => event)).toEqual(["metadata"]);
  });

  it("of a stateless run by its id alone, at once; of a thread's run once the log has it; of another owner's never", async () => {
    const created = await send("POST", "/runs/stream", asking("@ say stateless"));
    const runId = created.headers.get("content-location")!.split("/").at(-1)!;
    const beside = join(`/runs/${runId}/stream`);
    expect(await beside).toEqual(parseFrames(await created.text()));
    const threadId = await newThread();
    const frames = await streamRun(threadId, asking("@ say stateful"));
    await sendJson("GET", `/threads/${threadId}/runs/${runIdOf(frames)}/events`);
    expect(await join(`/runs/${runIdOf(frames)}/stream`)).toEqual(frames);
    const answers = await Promise.all(
      [runId, runIdOf(frames), crypto.randomUUID()].map(async (id) => {
        const response = await send("GET", `/runs/${id}/stream`, undefined, BOB);
        const { message, code } = await response.json<Json>();
        return [response.status, code, String(message).replace(id, "id")];
      }),
    );
    expect(answers).toEqual([answers[2], answers[2], [404, "not_found", expect.any(String)]]);
  });
});

describe("a thread's stream", () => {
  async function* events(response: Response): AsyncGenerator<Frame> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
        yield* parseFrames(text.slice(0, end + 2));
        text = text.slice(end + 2);
      }
    }
  }

  /** Up to the end of the run that is the last. */
  async function follow(
    threadId: string,
    lastRunId: () => string,
    more: { query?: string; after?: string } = {},
  ): Promise<Frame[]> {
    const headers = more.after === undefined ? ALICE : { ...ALICE, "last-event-id": more.after };
    const response = await send("GET", `/threads/${threadId}/stream${more.query ?? ""}`, undefined, headers);
    expect(response.status).toBe(200);
    const seen: Frame[] = [];
    for await (const frame of events(response)) {
      seen.push(frame);
      const end = seen.findIndex(({ id }) => id === `${lastRunId()}:end`);
      if (end !== -1) return seen.slice(0, end + 1);
    }
    return seen;
  }

  it("follows the runs one behind another from when it was opened, and resumes where it was left", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say before"));
    let last = "";
    const following = follow(threadId, () => last);
    const first = await streamRun(threadId, asking("@ say first"));
    const second = await streamRun(threadId, asking("@ say second"));
    const third = await streamRun(threadId, asking("@ say third"));
    last = runIdOf(third);
    // Its first event tells the follower that it has all of the third.
    await streamRun(threadId, asking("@ say fourth"));
    const seen = await following;
    const told = (frames: readonly Frame[]) => [
      ...frames.map((frame) => ({ ...frame, id: `${runIdOf(frames)}:${frame.id}` })),
      { event: "metadata", data: { status: "run_done", run_id: runIdOf(frames) }, id: `${runIdOf(frames)}:end` },
    ];
    const expected = [first, second, third].flatMap(told);
    expect(seen).toEqual(expected);
    const place = told(first).length + 2;
    expect(await follow(threadId, () => last, { after: expected[place]!.id })).toEqual(expected.slice(place + 1));
    const all = await follow(threadId, () => last, { after: "-" });
    expect(all.slice(-expected.length)).toEqual(expected);
    expect(all.length).toBeGreaterThan(expected.length);
    const lifecycle = await follow(threadId, () => last, { after: "-", query: "?stream_mode=lifecycle" });
    expect(lifecycle).toEqual(all.filter(({ event }) => event === "metadata"));
  });

  it("does not tell a run again that waited for an answer and was cancelled; a place nobody gave out is the start", async () => {
    const threadId = await newThread();
    const asks = asking('@ call bash {"command": "echo 42"}', { interrupt_before: ["tools"] });
    const waiting = await streamRun(threadId, asks);
    const runId = runIdOf(waiting);
    let last = "";
    const following = follow(threadId, () => last, { after: `${runId}:${Number.MAX_SAFE_INTEGER}` });
    // A tick: the second end must not share the first one's time.
    await scheduler.wait(2);
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`)).status).toBe(204);
    const next = await streamRun(threadId, asking("@ say next"));
    last = runIdOf(next);
    await streamRun(threadId, asking("@ say after"));
    const ids = (frames: readonly Frame[]) => frames.map(({ id }) => `${runIdOf(frames)}:${id}`);
    expect((await following).map(({ id }) => id)).toEqual(
      [waiting, next].flatMap((frames) => [...ids(frames), `${runIdOf(frames)}:end`]),
    );
  });

  it("goes on behind a run that was deleted or rolled back since: what ended meanwhile is told, what was told is not", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say before"));
    const gone = runIdOf(await streamRun(threadId, asking("@ say gone")));
    // A tick: each end has a time of its own.
    await scheduler.wait(2);
    const missed = await streamRun(threadId, asking("@ say missed"));
    expect((await send("DELETE", `/threads/${threadId}/runs/${gone}`)).status).toBe(204);
    for (const place of ["2", "end"]) {
      let last = "";
      const following = follow(threadId, () => last, { after: `${gone}:${place}` });
      const next = await streamRun(threadId, asking("@ say next"));
      last = runIdOf(next);
      await streamRun(threadId, asking("@ say after"));
      const runs = [...new Set((await following).map(({ id }) => id!.split(":")[0]))];
      expect(runs[0]).toBe(runIdOf(missed));
      expect(runs.at(-1)).toBe(runIdOf(next));
    }
    // Nothing ended behind it: what comes next is told whole.
    const newest = runIdOf(await streamRun(threadId, asking("@ say newest")));
    expect((await send("DELETE", `/threads/${threadId}/runs/${newest}`)).status).toBe(204);
    let last = "";
    const following = follow(threadId, () => last, { after: `${newest}:1` });
    const next = await streamRun(threadId, asking("@ say next"));
    last = runIdOf(next);
    await streamRun(threadId, asking("@ say after"));
    expect((await following).map(({ id }) => id)).toEqual([...next.map(({ id }) => `${last}:${id}`), `${last}:end`]);
  });

  it("refuses what it cannot give, and a foreign thread is a missing one", async () => {
    const threadId = await newThread();
    const refused = await send("GET", `/threads/${threadId}/stream?stream_mode=state_update`);
    expect(refused.status).toBe(422);
    expect((await send("GET", `/threads/${threadId}/stream`, undefined, BOB)).status).toBe(404);
  });
});
