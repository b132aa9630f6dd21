import { describe, expect, it, vi } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { ALICE, asking, newThread, parseFrames, send, sendJson, streamRun } from "../../support/http.ts";

interface Message {
  readonly id: string;
  readonly type: string;
  readonly content: string;
  readonly status?: string;
}
interface State {
  readonly values: { readonly messages: readonly Message[]; readonly delegations?: readonly { status: string }[] };
}

const stateOf = (threadId: string) => sendJson<State>("GET", `/threads/${threadId}/state`);
const runsOf = (threadId: string) =>
  sendJson<{ run_id: string; status: string }[]>("GET", `/threads/${threadId}/runs?limit=50`);

describe("a state update", () => {
  it("that removes an unknown id is refused whole, and the thread stays readable and usable", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say hi"));
    const before = await stateOf(threadId);
    const messages = [
      { type: "human", content: "would be added" },
      { type: "remove", id: "nowhere" },
    ];
    const refused = await send("POST", `/threads/${threadId}/state`, { values: { messages } });
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("nowhere"),
    });
    expect(await stateOf(threadId)).toEqual(before);
    await streamRun(threadId, asking("@ say again"));
    expect((await stateOf(threadId)).values.messages).toHaveLength(4);
  });

  it.each([
    ["a channel of Deputy's", { run_progress: { turns: 99 } }],
    ["the ledger", { delegations: [] }],
    ["an unknown channel", { nothing: 1 }],
    ["messages that are none", { messages: [{ nothing: 1 }] }],
    ["null messages", { messages: [null] }],
  ])("with %s is refused and changes nothing", async (_what, values) => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say hi"));
    const before = await stateOf(threadId);
    expect((await send("POST", `/threads/${threadId}/state`, { values })).status).toBe(422);
    expect(await stateOf(threadId)).toEqual(before);
  });

  it("removes a message by its id, and all of them by the remove-all id", async () => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say hi"));
    const [human] = (await stateOf(threadId)).values.messages;
    await sendJson("POST", `/threads/${threadId}/state`, { values: { messages: [{ type: "remove", id: human!.id }] } });
    expect((await stateOf(threadId)).values.messages.map(({ type }) => type)).toEqual(["ai"]);
    const all = { values: { messages: [{ type: "remove", id: "__remove_all__" }] } };
    await sendJson("POST", `/threads/${threadId}/state`, all);
    expect((await stateOf(threadId)).values.messages ?? []).toEqual([]);
    await streamRun(threadId, asking("@ say fresh"));
    expect((await stateOf(threadId)).values.messages).toHaveLength(2);
  });
});

describe("runs that meet", () => {
  it("of ten creates at once exactly one is accepted, the others are told thread_busy", async () => {
    const threadId = await newThread();
    const body = asking("@ delay 200\n@ say one two three");
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => send("POST", `/threads/${threadId}/runs`, body)),
    );
    expect(answers.map(({ status }) => status).toSorted((left, right) => left - right)).toEqual([
      200,
      ...Array.from({ length: 9 }, () => 409),
    ]);
    const [run, ...others] = await runsOf(threadId);
    expect(others).toEqual([]);
    await (await send("GET", `/threads/${threadId}/runs/${run!.run_id}/join`)).text();
    expect((await stateOf(threadId)).values.messages).toHaveLength(2);
  });

  it("of ten creates at once that make the thread, one makes both", async () => {
    const threadId = `made-${crypto.randomUUID()}`;
    const body = asking("@ delay 200\n@ say one two three", { if_not_exists: "create" });
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => send("POST", `/threads/${threadId}/runs`, body)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    const [run, ...others] = await runsOf(threadId);
    expect(others).toEqual([]);
    await (await send("GET", `/threads/${threadId}/runs/${run!.run_id}/join`)).text();
    expect((await stateOf(threadId)).values.messages).toHaveLength(2);
  });
});

describe("cancel", () => {
  it("of a run whose delegations partly wait for a slot ends all of them, and the slots are free again", async () => {
    const threadId = await newThread();
    const child = (name: string, step: string) =>
      `@ & delegate general-purpose :: ${name} :: <<'CHILD'\n@ call ls {"path": "/workspace"}\n@ ${step}\n@ say ${name} done\nCHILD`;
    const slow = 'call bash {"command": "sleep 15"}';
    const names = ["a", "b", "c", "d", "e"];
    const options = { stream_mode: ["values", "custom"], config: { configurable: { max_concurrent_subagents: 5 } } };
    const script = `${names.map((name) => child(name, slow)).join("\n")}\n@ say never`;
    const { run_id: runId } = await sendJson<{ run_id: string }>(
      "POST",
      `/threads/${threadId}/runs`,
      asking(script, options),
    );
    await eventually(
      () => sendJson<{ event_type: string }[]>("GET", `/threads/${threadId}/runs/${runId}/events`),
      (rows) => rows.filter((row) => row.event_type === "subagent.step").length >= 6,
    );
    expect((await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`)).status).toBe(204);
    const { values } = await stateOf(threadId);
    const results = values.messages.filter((message) => message.type === "tool");
    expect(new Set(results.map(({ status }) => status))).toEqual(new Set(["error"]));
    const statuses = new Set(values.delegations!.map(({ status }) => status));
    expect(statuses).not.toContain("in_progress");
    expect(statuses).toContain("cancelled");

    const again = `${names
      .slice(0, 3)
      .map((name) => child(name, "say quick"))
      .join("\n")}\n@ say all three`;
    const frames = await streamRun(threadId, asking(again, options));
    const last = frames.findLast((frame) => frame.event === "values")!.data as State["values"];
    expect(last.messages.at(-1)!.content).toBe("all three");
  });

  it("right behind the create leaves a thread that goes on", async () => {
    const threadId = await newThread();
    const { run_id: runId } = await sendJson<{ run_id: string }>(
      "POST",
      `/threads/${threadId}/runs`,
      asking("@ say a b"),
    );
    const cancelled = await send("POST", `/threads/${threadId}/runs/${runId}/cancel?wait=1`);
    expect([204, 409]).toContain(cancelled.status);
    const [run] = await runsOf(threadId);
    expect(["interrupted", "success"]).toContain(run!.status);
    const frames = await streamRun(threadId, asking("@ say still here"));
    expect((frames.at(-1)!.data as State["values"]).messages.at(-1)!.content).toBe("still here");
  });
});

describe("readers", () => {
  it("that never read do not hold the run up", async () => {
    const threadId = await newThread();
    const response = await send(
      "POST",
      `/threads/${threadId}/runs/stream`,
      asking(`@ say ${"word ".repeat(2_000)}`, { stream_mode: ["messages-tuple", "values"] }),
    );
    await eventually(
      () => runsOf(threadId),
      ([run]) => run?.status === "success",
    );
    await response.body!.cancel();
  });

  it.each(["0", "-5", "abc", "999999", "1.5"])(
    "with the Last-Event-ID %s are answered, never with a fault",
    async (id) => {
      const threadId = await newThread();
      const first = await streamRun(threadId, asking("@ say hi"));
      const runId = (first[0]!.data as { run_id: string }).run_id;
      const headers = { ...ALICE, "last-event-id": id };
      const again = await send("GET", `/threads/${threadId}/runs/${runId}/stream`, undefined, headers);
      expect(again.status).toBe(200);
      const frames = parseFrames(await again.text());
      expect(frames).toEqual(first);
    },
  );
});

describe("what leaves the Worker", () => {
  it("is nothing, for a run with tools and a child on the scripted model: no tracing, no tokenizer, no telemetry", async () => {
    const outbound = vi.spyOn(globalThis, "fetch");
    try {
      const script = `@ delegate general-purpose :: look :: <<'CHILD'\n@ call ls {"path": "/workspace"}\n@ say seen\nCHILD\n@ say {{result:1}}`;
      const frames = await streamRun(await newThread(), asking(script));
      expect((frames.at(-1)!.data as State["values"]).messages.at(-1)!.content).toContain("seen");
      expect(outbound).not.toHaveBeenCalled();
    } finally {
      outbound.mockRestore();
    }
  });
});
