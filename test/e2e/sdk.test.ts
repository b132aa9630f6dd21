import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client } from "@langchain/langgraph-sdk";
import { v5 as uuidV5 } from "uuid";
import { parseDays, rainOfYear } from "../../demo/direct-computation.ts";
import { DATA_PATH, leadScript } from "../../demo/prompts.ts";
import { DeputyServer, eventually } from "../support/deputy-server.ts";
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
  type WireMessage,
} from "../support/sdk.ts";

const deputy = new DeputyServer();
let client: Client;

beforeAll(async () => {
  await deputy.start();
  client = sdkClient(deputy.url);
});
afterAll(() => deputy.close());

const SLOW = "@ delay 2000\n@ say one two three four five six seven eight";

/** Two children that compute, then an answer made of what they found. */
const DELEGATION = [
  "@ & delegate bash :: Sum the north :: <<'NORTH'",
  '@ call bash {"command": "echo $((20 + 22))"}',
  "@ say north total: {{result:1:line 1}}",
  "NORTH",
  "@ & delegate bash :: Sum the south :: <<'SOUTH'",
  '@ call bash {"command": "echo $((3 + 4))"}',
  "@ say south total: {{result:1:line 1}}",
  "SOUTH",
  "@ say North {{result:1:word after north total: }}, south {{result:2:word after south total: }}.",
].join("\n");

async function newThread(): Promise<string> {
  return (await client.threads.create()).thread_id;
}

async function statusOf(call: Promise<unknown>): Promise<number | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => (error as { status?: number }).status,
  );
}

function isToken({ event, data }: Part): boolean {
  return event === "messages" && (data as [WireMessage])[0].content.startsWith("word");
}

function pairsOf(messages: readonly WireMessage[]): [string, string][] {
  return messages.map((message) => [message.type, message.content]);
}

describe("threads", () => {
  it("creates, reads, merges metadata, finds, counts and deletes; a deleted thread is a 404", async () => {
    const mark = crypto.randomUUID();
    const created = await client.threads.create({ metadata: { mark, kept: 1 }, graphId: LEAD });
    expect(created).toMatchObject({ status: "idle", metadata: { mark, kept: 1, graph_id: LEAD } });
    expect(created.thread_id).toMatch(/^[0-9a-f-]{36}$/);
    const updated = await client.threads.update(created.thread_id, { metadata: { added: [2] } });
    expect(updated.metadata).toEqual({ mark, kept: 1, graph_id: LEAD, added: [2] });
    expect(
      await client.threads.update(created.thread_id, { metadata: { kept: 3 }, returnMinimal: true }),
    ).toBeUndefined();
    expect((await client.threads.get(created.thread_id)).metadata).toMatchObject({ kept: 3 });

    const other = await client.threads.create({ metadata: { mark } });
    const found = await client.threads.search({ metadata: { mark } });
    expect(found.map((thread) => thread.thread_id)).toEqual([other.thread_id, created.thread_id]);
    const second = await client.threads.search({ metadata: { mark }, limit: 1, offset: 1 });
    expect(second.map((thread) => thread.thread_id)).toEqual([created.thread_id]);
    expect(await client.threads.count({ metadata: { mark } })).toBe(2);
    expect(await client.threads.search({ metadata: { mark }, status: "busy" })).toEqual([]);

    await client.threads.delete(created.thread_id);
    expect(await statusOf(client.threads.get(created.thread_id))).toBe(404);
    expect(await client.threads.count({ metadata: { mark } })).toBe(1);
  });

  it("answers 409 to a taken id, and the thread itself with ifExists do_nothing", async () => {
    const threadId = `mine-${crypto.randomUUID()}`;
    await client.threads.create({ threadId, metadata: { first: true } });
    expect(await statusOf(client.threads.create({ threadId }))).toBe(409);
    const again = await client.threads.create({ threadId, ifExists: "do_nothing", metadata: { first: false } });
    expect(again.metadata).toEqual({ first: true });
  });

  it("shows a thread as busy while its run is active, and its values behind it", async () => {
    const threadId = await newThread();
    const run = await client.runs.create(threadId, LEAD, human(SLOW));
    expect((await client.threads.get(threadId)).status).toBe("busy");
    await client.runs.cancel(threadId, run.run_id, true);
    const thread = await client.threads.get<LeadValues>(threadId);
    expect(thread.status).not.toBe("busy");
    expect(thread.values.messages[0]).toMatchObject({ type: "human" });
  });
});

describe("state", () => {
  it("gives an empty thread's state and history as the client expects them", async () => {
    const threadId = await newThread();
    expect(await client.threads.getState(threadId)).toMatchObject({
      values: {},
      next: [],
      tasks: [],
      checkpoint: null,
      parent_checkpoint: null,
      created_at: null,
    });
    expect(await client.threads.getHistory(threadId)).toEqual([]);
  });

  it("updates state outside a run: given message ids are kept, missing ones are made once, the next run sees both (R185)", async () => {
    const threadId = await newThread();
    const messages = [
      { type: "human", id: "my-question", content: "what is it?" },
      { type: "ai", content: "forty-two" },
    ];
    const updated = (await client.threads.updateState(threadId, { values: { messages } })) as unknown as {
      checkpoint: { checkpoint_id: string };
    };
    const state = await client.threads.getState<LeadValues>(threadId);
    expect(state.checkpoint.checkpoint_id).toBe(updated.checkpoint.checkpoint_id);
    expect(pairsOf(state.values.messages)).toEqual([
      ["human", "what is it?"],
      ["ai", "forty-two"],
    ]);
    expect(state.values.messages[0]!.id).toBe("my-question");
    const made = state.values.messages[1]!.id;
    expect(made).toBeTruthy();
    const after = (await client.runs.wait(threadId, LEAD, human("@ say and now?"))) as unknown as LeadValues;
    expect(after.messages.map((message) => message.id).slice(0, 2)).toEqual(["my-question", made]);
    expect(after.messages.at(-1)!.content).toBe("and now?");
    // The same id again replaces in place.
    await client.threads.updateState(threadId, { values: { messages: [{ ...messages[0], content: "what was it?" }] } });
    const replaced = (await client.threads.getState<LeadValues>(threadId)).values.messages;
    expect(replaced).toHaveLength(4);
    expect(replaced[0]).toMatchObject({ id: "my-question", content: "what was it?" });
  });

  it("lists history newest first, linked by parent_checkpoint, readable at each checkpoint", async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, LEAD, human('@ call bash {"command": "echo a"}\n@ say done'));
    const history = await client.threads.getHistory<LeadValues>(threadId, { limit: 50 });
    expect(history.length).toBeGreaterThanOrEqual(4);
    for (const [index, state] of history.entries()) {
      const older = history[index + 1];
      expect(state.parent_checkpoint?.checkpoint_id ?? null).toBe(older?.checkpoint.checkpoint_id ?? null);
    }
    const ids = history.map((state) => state.checkpoint.checkpoint_id!);
    expect(ids).toEqual(ids.toSorted((left, right) => right.localeCompare(left)));
    const middle = history[1]!;
    const byId = await client.threads.getState<LeadValues>(threadId, middle.checkpoint.checkpoint_id!);
    expect(byId.values).toEqual(middle.values);
    const byReference = await client.threads.getState<LeadValues>(threadId, middle.checkpoint);
    expect(byReference.values).toEqual(middle.values);
    const paged = await client.threads.getHistory<LeadValues>(threadId, {
      limit: 2,
      before: { configurable: { thread_id: threadId, checkpoint_id: ids[0] } },
    });
    expect(paged.map((state) => state.checkpoint.checkpoint_id)).toEqual(ids.slice(1, 3));
  });
});

describe("runs.stream", () => {
  it("values: metadata and full states only, no end event; Content-Location names the run", async () => {
    const threadId = await newThread();
    const created: unknown[] = [];
    const parts = await collect(
      client.runs.stream(threadId, LEAD, {
        ...human("@ say one two three"),
        streamMode: "values",
        onRunCreated: (run) => created.push(run),
      }),
    );
    expect(eventNames(parts)).toEqual(["metadata", "values"]);
    expect(parts[0]).toMatchObject({ event: "metadata", data: { attempt: 1 } });
    expect(created).toEqual([{ run_id: runIdOf(parts), thread_id: threadId }]);
    const values = dataOf<LeadValues>(parts, "values");
    expect(pairsOf(values.at(-1)!.messages)).toEqual([
      ["human", "@ say one two three"],
      ["ai", "one two three"],
    ]);
    expect((await client.threads.getState<LeadValues>(threadId)).values).toEqual(values.at(-1));
    const ids = parts.map((part) => Number(part.id));
    expect(ids).toEqual(ids.map((_, index) => index + 1));
  });

  it("messages-tuple: tokens under one id that is the state's, with the node they come from", async () => {
    const threadId = await newThread();
    const parts = await collect(
      client.runs.stream(threadId, LEAD, { ...human("@ say one two three four"), streamMode: "messages-tuple" }),
    );
    expect(eventNames(parts)).toEqual(["messages", "metadata"]);
    const tuples = dataOf<[WireMessage, Record<string, unknown>]>(parts, "messages");
    const answer = tuples.filter(([message]) => message.type === "ai");
    expect(answer.length).toBeGreaterThan(2);
    expect(answer.map(([message]) => message.content).join("")).toBe("one two three four");
    for (const [, metadata] of answer) expect(metadata).toMatchObject({ langgraph_node: "model" });
    const state = await client.threads.getState<LeadValues>(threadId);
    expect([...new Set(answer.map(([message]) => message.id))]).toEqual([state.values.messages[1]!.id]);
  });

  it("updates: what each node wrote, and never Deputy's own bookkeeping", async () => {
    const parts = await collect(
      client.runs.stream(await newThread(), LEAD, {
        ...human('@ call bash {"command": "echo hi"}\n@ say {{result:1}}'),
        streamMode: "updates",
      }),
    );
    expect(eventNames(parts)).toEqual(["metadata", "updates"]);
    const updates = dataOf<Record<string, { messages?: WireMessage[] }>>(parts, "updates");
    expect(updates.map((update) => Object.keys(update))).toEqual([["model"], ["tools"], ["model"]]);
    const [call, result, answer] = updates.map((update) => Object.values(update)[0]!.messages!);
    expect(call![0]!.tool_calls).toMatchObject([{ name: "bash", args: { command: "echo hi" } }]);
    expect(result![0]).toMatchObject({ type: "tool", tool_call_id: call![0]!.tool_calls![0]!.id });
    expect(answer![0]!.content).toContain("hi");
    expect(JSON.stringify(parts)).not.toContain("run_progress");
  });

  it("custom: a delegation's life, each step in order, the terminal event last (R85)", async () => {
    const threadId = await newThread();
    const parts = await collect(
      client.runs.stream(threadId, LEAD, { ...human(DELEGATION), streamMode: ["custom", "values"] }),
    );
    expect(eventNames(parts)).toEqual(["custom", "metadata", "values"]);
    const events = dataOf<{
      type: string;
      task_id: string;
      description?: string;
      message_index?: number;
      result?: string;
    }>(parts, "custom");
    const tasks = Map.groupBy(events, (event) => event.task_id);
    expect(tasks.size).toBe(2);
    const ends = [...tasks.values()].map((own) => {
      expect(own.map((event) => event.type)).toEqual([
        "task_started",
        "task_running",
        "task_running",
        "task_running",
        "task_completed",
      ]);
      expect(own.map((event) => event.message_index)).toEqual([undefined, 1, 2, 3, undefined]);
      return `${own[0]!.description}: ${own.at(-1)!.result}`;
    });
    expect(ends.toSorted()).toEqual(["Sum the north: north total: 42", "Sum the south: south total: 7"]);
    const final = dataOf<LeadValues>(parts, "values").at(-1)!;
    expect(final.messages.at(-1)!.content).toBe("North 42, south 7.");
    expect(final.delegations!.map((entry) => entry.status)).toEqual(["completed", "completed"]);
    expect(final.delegations!.map((entry) => entry.id).toSorted()).toEqual([...tasks.keys()].toSorted());
    // A child's own messages are not the lead's.
    expect(final.messages.map((message) => message.type)).toEqual(["human", "ai", "tool", "tool", "ai"]);
  });

  it("all four modes at once: the exact event set, and no bookkeeping anywhere (run_progress)", async () => {
    const threadId = await newThread();
    const streamMode = ["values", "messages-tuple", "updates", "custom"] as const;
    const parts = await collect(
      client.runs.stream(threadId, LEAD, { ...human(DELEGATION), streamMode: [...streamMode] }),
    );
    expect(eventNames(parts)).toEqual(["custom", "messages", "metadata", "updates", "values"]);
    const tokens = dataOf<[WireMessage]>(parts, "messages").map(([message]) => message);
    const state = await client.threads.getState<LeadValues>(threadId);
    const own = new Set(state.values.messages.map((message) => message.id));
    expect(tokens.filter((message) => !own.has(message.id))).toEqual([]);
    const history = await client.threads.getHistory(threadId, { limit: 100 });
    for (const seen of [parts, state, history]) expect(JSON.stringify(seen)).not.toContain("run_progress");
  });

  it("streamSubgraphs: a child's frames are named mode|namespace, the root's stay bare", async () => {
    const parts = await collect(
      client.runs.stream(await newThread(), LEAD, {
        ...human(DELEGATION),
        streamMode: ["values", "updates"],
        streamSubgraphs: true,
      }),
    );
    const names = eventNames(parts);
    expect(names.filter((name) => !name.includes("|"))).toEqual(["metadata", "updates", "values"]);
    const nested = names.filter((name) => name.includes("|"));
    for (const name of nested) expect(name).toMatch(/^(values|updates)\|tools:[0-9a-f-]{36}$/);
    // Two children, two modes.
    expect(nested).toHaveLength(4);
    const inner = nested
      .filter((name) => name.startsWith("values|"))
      .map((name) => dataOf<LeadValues>(parts, name).at(-1)!.messages.at(-1)!.content);
    expect(inner.toSorted()).toEqual(["north total: 42", "south total: 7"]);
  });

  it("two threads in parallel: each stream has its own run and answer only", async () => {
    const threads = await Promise.all([newThread(), newThread()]);
    const streams = await Promise.all(
      threads.map((threadId, index) =>
        collect(
          client.runs.stream(threadId, LEAD, {
            ...human(`@ delay 5\n@ say thread ${index} ${"word ".repeat(30)}`),
            streamMode: ["values", "messages-tuple"],
          }),
        ),
      ),
    );
    for (const [index, parts] of streams.entries()) {
      expect(new Set(dataOf<{ run_id: string }>(parts, "metadata").map((data) => data.run_id)).size).toBe(1);
      const answer = dataOf<LeadValues>(parts, "values").at(-1)!.messages.at(-1)!.content;
      expect(answer).toMatch(new RegExp(`^thread ${index} word`));
      expect(JSON.stringify(parts)).not.toContain(`thread ${1 - index} `);
    }
    expect(runIdOf(streams[0]!)).not.toBe(runIdOf(streams[1]!));
  });
});

describe("runs.joinStream", () => {
  it("lastEventId -1 twice equals the first list, a middle id gives the rest, a mode filter its own", async () => {
    const threadId = await newThread();
    const streamMode = ["values" as const, "messages-tuple" as const, "updates" as const];
    const first = await collect(client.runs.stream(threadId, LEAD, { ...human(DELEGATION), streamMode }));
    const runId = runIdOf(first);
    const replay = (options: object) => collect(client.runs.joinStream(threadId, runId, options));
    expect(await replay({ lastEventId: "-1" })).toEqual(first);
    // As a page that is loaded again asks for it.
    const [head] = await client.threads.getHistory(threadId, { limit: 1 });
    expect(await replay({ lastEventId: "-1", checkpointId: head!.checkpoint.checkpoint_id! })).toEqual(first);
    const middle = Math.floor(first.length / 2);
    expect(await replay({ lastEventId: first[middle]!.id })).toEqual(first.slice(middle + 1));
    expect(await replay({ lastEventId: "-1", streamMode: "values" })).toEqual(
      first.filter((part) => part.event === "metadata" || part.event === "values"),
    );
    expect(await replay({ lastEventId: first.at(-1)!.id })).toEqual([]);
  });

  it("joins a live run from its start beside its first reader, and both lists are equal", async () => {
    const threadId = await newThread();
    let join: Promise<unknown> | undefined;
    const first = await collect(
      client.runs.stream(threadId, LEAD, {
        ...human(`@ delay 20\n@ say ${"word ".repeat(40)}`),
        streamMode: ["messages-tuple", "values"],
        onRunCreated: ({ run_id }) => {
          join = collect(client.runs.joinStream(threadId, run_id, { lastEventId: "-1" }));
        },
      }),
    );
    expect(await join).toEqual(first);
  });
});

describe("runs in the background", () => {
  it("creates, gets, lists, joins and deletes; the run's state stays", async () => {
    const threadId = await newThread();
    const created = await client.runs.create(threadId, LEAD, { ...human("@ say first"), metadata: { tag: "a" } });
    expect(created).toMatchObject({ thread_id: threadId, metadata: { tag: "a" }, multitask_strategy: "reject" });
    const values = (await client.runs.join(threadId, created.run_id)) as unknown as LeadValues;
    expect(values.messages.at(-1)!.content).toBe("first");
    expect((await client.runs.get(threadId, created.run_id)).status).toBe("success");
    const second = await client.runs.create(threadId, LEAD, human("@ say second"));
    await client.runs.join(threadId, second.run_id);
    const listed = await client.runs.list(threadId);
    expect(listed.map((run) => run.run_id)).toEqual([second.run_id, created.run_id]);
    expect((await client.runs.list(threadId, { limit: 1, offset: 1 })).map((run) => run.run_id)).toEqual([
      created.run_id,
    ]);
    expect(await client.runs.list(threadId, { status: "error" })).toEqual([]);
    await client.runs.delete(threadId, created.run_id);
    expect(await statusOf(client.runs.get(threadId, created.run_id))).toBe(404);
    expect((await client.runs.list(threadId)).map((run) => run.run_id)).toEqual([second.run_id]);
    expect((await client.threads.getState<LeadValues>(threadId)).values.messages).toHaveLength(4);
  });

  it("joining an older run gives that run's values, not the newest state", async () => {
    const threadId = await newThread();
    const first = await client.runs.create(threadId, LEAD, human("@ say older answer"));
    const before = await client.runs.join(threadId, first.run_id);
    await client.runs.wait(threadId, LEAD, human("@ say newer answer"));
    expect(await client.runs.join(threadId, first.run_id)).toEqual(before);
  });

  it("waits for a run's last values", async () => {
    const threadId = await newThread();
    const created: unknown[] = [];
    const values = (await client.runs.wait(threadId, LEAD, {
      ...human("@ say waited for"),
      onRunCreated: (run: unknown) => created.push(run),
    })) as unknown as LeadValues;
    expect(values.messages.at(-1)!.content).toBe("waited for");
    expect(created).toMatchObject([{ thread_id: threadId }]);
  });

  it("cancels a live run: its stream ends, its status is interrupted, cancelling again is no error", async () => {
    const threadId = await newThread();
    let runId = "";
    const reading = collect(
      client.runs.stream(threadId, LEAD, {
        ...human(SLOW),
        streamMode: ["messages-tuple", "values"],
        onRunCreated: (run) => {
          runId = run.run_id;
        },
      }),
    );
    await eventually(
      () => runId,
      (seen) => seen !== "",
      10_000,
    );
    await client.runs.cancel(threadId, runId, false);
    const parts = await reading;
    expect(parts.map((part) => part.event)).not.toContain("error");
    expect((await client.runs.get(threadId, runId)).status).toBe("interrupted");
    await client.runs.cancel(threadId, runId, true);
    const next = (await client.runs.wait(threadId, LEAD, human("@ say usable"))) as unknown as LeadValues;
    expect(next.messages.at(-1)!.content).toBe("usable");
  });
});

describe("stateless runs", () => {
  it("streams and waits without a thread of the client's", async () => {
    const created: { run_id: string; thread_id?: string }[] = [];
    const parts = await collect(
      client.runs.stream(null, LEAD, {
        ...human("@ say nobody's thread"),
        streamMode: "values",
        onRunCreated: (run) => created.push(run),
      }),
    );
    expect(eventNames(parts)).toEqual(["metadata", "values"]);
    expect(created).toMatchObject([{ run_id: runIdOf(parts) }]);
    const values = (await client.runs.wait(null, LEAD, human("@ say waited"))) as unknown as LeadValues;
    expect(values.messages.at(-1)!.content).toBe("waited");
  });
});

describe("assistants", () => {
  it("finds lead_agent; its graph id and its uuid5 name the same assistant, and either starts a run", async () => {
    const expected = uuidV5(LEAD, "6ba7b821-9dad-11d1-80b4-00c04fd430c8");
    const found = await client.assistants.search({ graphId: LEAD });
    expect(found.map((assistant) => assistant.assistant_id)).toEqual([expected]);
    expect(await client.assistants.get(LEAD)).toEqual(found[0]);
    expect(await client.assistants.get(expected)).toEqual(found[0]);
    const values = (await client.runs.wait(
      await newThread(),
      expected,
      human("@ say by uuid"),
    )) as unknown as LeadValues;
    expect(values.messages.at(-1)!.content).toBe("by uuid");
    expect(await statusOf(client.assistants.get("nobody"))).toBe(404);
  });
});

describe("the demo's answer", () => {
  const CSV = readFileSync("demo/data/seattle-weather.csv", "utf8");

  async function answerOver(csv: string): Promise<string[]> {
    const threadId = await newThread();
    const put = await fetch(`${deputy.url}/threads/${threadId}/files/${DATA_PATH}`, { method: "PUT", body: csv });
    expect(put.status).toBe(201);
    const values = (await client.runs.wait(threadId, LEAD, human(leadScript()))) as unknown as LeadValues;
    return values.messages.at(-1)!.content.split("\n");
  }

  it("is computed from the data: one number changed in the file changes that number in the answer, and no other", async () => {
    const before = await answerOver(CSV);
    // The rain of one day of 2013, a hundred millimetres more.
    const changed = CSV.replace(
      /^(2013-06-01,)([\d.]+)/m,
      (_line, date: string, rain: string) => `${date}${Number(rain) + 100}`,
    );
    expect(changed).not.toBe(CSV);
    const after = await answerOver(changed);
    const rain = (lines: string[]) => lines.find((line) => line.startsWith("Rain: "))!;
    const [was, is] = [CSV, changed].map((csv) => `2013 ${rainOfYear(parseDays(csv), "2013")} mm`);
    expect(is).not.toBe(was);
    expect(rain(before)).toContain(was);
    expect(after).toEqual(before.map((line) => line.replace(was!, is!)));
  });
});

describe("errors", () => {
  it("HTTPError.status tells a missing thread, run and assistant, a busy thread and a bad body apart", async () => {
    const threadId = await newThread();
    const missing = crypto.randomUUID();
    expect(await statusOf(client.threads.getState(missing))).toBe(404);
    expect(await statusOf(client.threads.getHistory(missing))).toBe(404);
    expect(await statusOf(client.runs.create(missing, LEAD, human("hi")))).toBe(404);
    expect(await statusOf(collect(client.runs.stream(missing, LEAD, human("hi"))))).toBe(404);
    expect(await statusOf(client.runs.get(threadId, missing))).toBe(404);
    expect(await statusOf(collect(client.runs.joinStream(threadId, missing)))).toBe(404);
    expect(await statusOf(client.runs.create(threadId, "nobody", human("hi")))).toBe(404);
    expect(await statusOf(client.runs.create(threadId, LEAD, { ...human("hi"), streamMode: "bogus" as never }))).toBe(
      422,
    );
    expect(await statusOf(client.runs.create(threadId, LEAD, { ...human("hi"), webhook: "http://x.test" }))).toBe(422);
    expect(
      await statusOf(
        client.threads.updateState(threadId, { values: { messages: [{ type: "remove", id: "nowhere" }] } }),
      ),
    ).toBe(422);

    const run = await client.runs.create(threadId, LEAD, human(SLOW));
    expect(await statusOf(client.runs.create(threadId, LEAD, human("too early")))).toBe(409);
    expect(await statusOf(client.threads.updateState(threadId, { values: { messages: [] } }))).toBe(409);
    expect(await statusOf(client.runs.delete(threadId, run.run_id))).toBe(409);
    await client.runs.cancel(threadId, run.run_id, true);
  });

  it("a failed run: wait throws its reason, the stream ends with error, the run and thread say error", async () => {
    const threadId = await newThread();
    const failing = human("@ fail 400\n@ say never");
    await expect(client.runs.wait(threadId, LEAD, failing)).rejects.toThrow(/ModelFailure|400/);
    const parts = await collect(client.runs.stream(threadId, LEAD, { ...failing, streamMode: "values" }));
    expect(eventNames(parts)).toEqual(["error", "metadata", "values"]);
    expect(parts.at(-1)).toMatchObject({
      event: "error",
      data: { error: expect.any(String), message: expect.any(String) },
    });
    const run = await client.runs.get(threadId, runIdOf(parts));
    expect(run.status).toBe("error");
    expect((await client.threads.get(threadId)).status).toBe("error");
    const next = (await client.runs.wait(threadId, LEAD, human("@ say recovered"))) as unknown as LeadValues;
    expect(next.messages.at(-1)!.content).toBe("recovered");
  });
});

describe("a server that dies under a stream", () => {
  // Last: it kills the server.
  it("is met again by the same SDK stream: a second attempt's frames with new ids, no id twice, the whole answer (P1)", async () => {
    // As the SDK retries by itself.
    const outside = sdkClient(deputy.url, { maxRetries: 4 });
    const threadId = await newThread();
    const script = `@ call bash {"command": "echo once >> marks.txt"}\n@ delay 100\n@ say ${"word ".repeat(30)}`;
    const parts: Part[] = [];
    let restarted: Promise<void> | undefined;
    const stream = outside.runs.stream(threadId, LEAD, {
      ...human(script),
      streamMode: ["messages-tuple", "values"],
      streamResumable: true,
    });
    for await (const part of stream) {
      parts.push(part);
      if (restarted === undefined && isToken(part)) {
        restarted = deputy.kill().then(() => deputy.start());
      }
    }
    await restarted;
    const attempts = dataOf<{ attempt: number; run_id: string }>(parts, "metadata");
    expect(attempts.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const ids = parts.map((part) => Number(part.id));
    expect(ids).toEqual([...new Set(ids)].toSorted((left, right) => left - right));
    const final = dataOf<LeadValues>(parts, "values").at(-1)!;
    expect(final.messages.at(-1)!.content.trim()).toBe("word ".repeat(30).trim());
    expect((await client.runs.get(threadId, attempts[0]!.run_id)).status).toBe("success");
    expect(await (await fetch(`${deputy.url}/threads/${threadId}/files/marks.txt`)).text()).toBe("once\n");
  });
});
