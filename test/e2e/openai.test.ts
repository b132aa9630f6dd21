import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client } from "@langchain/langgraph-sdk";
import { DeputyServer, eventually } from "../support/deputy-server.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { wireText } from "../support/model-wire.ts";
import { collect, dataOf, human, LEAD, type LeadValues, runIdOf, sdkClient, type WireMessage } from "../support/sdk.ts";

const KEY = "sk-test-of-deputy";

let models: ModelServer;
let deputy: DeputyServer;
let client: Client;

beforeAll(async () => {
  models = await startModelServer();
  deputy = new DeputyServer({
    env: {
      OPENAI_API_KEY: KEY,
      OPENAI_BASE_URL: models.url,
      OPENAI_MODEL: "served-model",
      DEPUTY_OVERRIDES: JSON.stringify({ runtime: { model_idle_seconds: 1 } }),
    },
  });
  await deputy.start();
  client = sdkClient(deputy.url);
});
afterAll(async () => {
  await deputy.close();
  await models.close();
});

async function newThread(): Promise<string> {
  return (await client.threads.create()).thread_id;
}

async function ask(threadId: string, script: string): Promise<LeadValues> {
  return (await client.runs.wait(threadId, LEAD, human(script))) as unknown as LeadValues;
}

function lastOf({ messages }: LeadValues): WireMessage {
  return messages.at(-1)!;
}

/** How many requests a piece of work made. */
async function counting<T>(work: () => Promise<T>): Promise<{ value: T; requests: number }> {
  const before = models.requests.length;
  const value = await work();
  return { value, requests: models.requests.length - before };
}

const OUR_CALL_ID = /^call_[A-Za-z0-9]{24}$/;

describe("an OpenAI-compatible provider over HTTP", () => {
  it("is the default model once its key is there; it answers token by token, and reports what it cost", async () => {
    const threadId = await newThread();
    const parts = await collect(
      client.runs.stream(threadId, LEAD, {
        ...human("@ usage 120 5\n@ say one two three four five"),
        streamMode: ["messages-tuple", "values"],
      }),
    );
    const tokens = dataOf<[WireMessage]>(parts, "messages")
      .map(([message]) => message)
      .filter((message) => message.type === "ai");
    expect(tokens.filter((token) => token.content !== "")).toHaveLength(5);
    const answer = lastOf(dataOf<LeadValues>(parts, "values").at(-1)!) as WireMessage & { usage_metadata: object };
    expect(answer).toMatchObject({
      content: "one two three four five",
      usage_metadata: { input_tokens: 120, output_tokens: 5, total_tokens: 125 },
    });
    expect([...new Set(tokens.map(({ id }) => id))]).toEqual([answer.id]);
    const request = models.requests.at(-1)!;
    expect(request).toMatchObject({ model: "served-model", stream: true });
    expect(request.messages.map((message) => message.role)).toEqual(["system", "user"]);
  });

  it("calls tools in parallel under ids of ours, and reads their results in the next request", async () => {
    const threadId = await newThread();
    const { value, requests } = await counting(() =>
      ask(
        threadId,
        '@ & call bash {"command": "echo one"}\n@ & call bash {"command": "echo two"}\n@ say {{result:1:line 1}} {{result:2:line 1}}',
      ),
    );
    expect(requests).toBe(2);
    expect(lastOf(value).content).toBe("one two");
    const ids = value.messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
    for (const id of ids) expect(id).toMatch(OUR_CALL_ID);
    const sent = models.requests.at(-1)!.messages.filter((message) => message.role === "tool");
    expect(sent.map((message) => message.tool_call_id)).toEqual(ids);
  });

  it("runs children with requests of their own, which hold the child's job and not the lead's conversation", async () => {
    const threadId = await newThread();
    const script = [
      "@ & delegate general-purpose :: north :: <<'NORTH'",
      "The north job.",
      '@ call bash {"command": "echo $((20 + 22))"}',
      "@ say north {{result:1:line 1}}",
      "NORTH",
      "@ & delegate bash :: south :: <<'SOUTH'",
      "The south job.",
      '@ call bash {"command": "echo $((3 + 4))"}',
      "@ say south {{result:1:line 1}}",
      "SOUTH",
      "@ say {{result:1:word after north }} and {{result:2:word after south }}",
    ].join("\n");
    const { value, requests } = await counting(() => ask(threadId, script));
    expect(lastOf(value).content).toBe("42 and 7");
    expect(requests).toBe(6);
    const [child] = models.requests.filter((request) => wireText(request.messages[1]!).startsWith("The north job."));
    expect(child!.messages.map((message) => message.role)).toEqual(["system", "user"]);
    expect(child!.tools!.map((tool) => tool.function.name)).not.toContain("task");
  });

  it("mints new call ids when the provider repeats its own on every answer", async () => {
    const value = await ask(
      await newThread(),
      '@ quirk repeat-ids\n@ call bash {"command": "echo a"}\n@ quirk repeat-ids\n@ call bash {"command": "echo b"}\n@ say {{result:1:line 1}}{{result:2:line 1}}',
    );
    expect(lastOf(value).content).toBe("ab");
    const ids = value.messages.flatMap((message) => message.tool_calls ?? []).map(({ id }) => id);
    expect(new Set(ids).size).toBe(2);
  });

  it.each(["no-role", "shared-index", "missing-index", "no-usage", "no-done", "split-frames"])(
    "takes a stream with the quirk %s",
    async (quirk) => {
      const value = await ask(
        await newThread(),
        `@ quirk ${quirk}\n@ & call bash {"command": "echo ä"}\n@ & call ls {"path": "/workspace"}\n@ quirk ${quirk}\n@ say got {{result:1:line 1}}`,
      );
      expect(lastOf(value).content).toBe("got ä");
    },
  );

  it("gives arguments that are no JSON object back to the model as an error, and goes on", async () => {
    const value = await ask(await newThread(), '@ raw bash {"command": "echo hi\n@ say seen: {{result:1}}');
    const result = value.messages.find((message) => message.type === "tool")!;
    expect(result).toMatchObject({ status: "error", content: expect.stringContaining("not one complete JSON object") });
    expect(lastOf(value).content).toContain("seen: ");
  });
});

describe("a provider that fails", () => {
  it("waits as long as a 429 asks with Retry-After, then gets its answer", async () => {
    const threadId = await newThread();
    const before = Date.now();
    const { value, requests } = await counting(() => ask(threadId, "@ fail 429 1 retry-after 2\n@ say at last"));
    expect(lastOf(value).content).toBe("at last");
    expect(requests).toBe(2);
    expect(Date.now() - before).toBeGreaterThanOrEqual(2_000);
  });

  it.each(["stall", "cut", "empty", "error", "503"])(
    "takes %s for a failed attempt, never for an answer, and tries again",
    async (failure) => {
      const threadId = await newThread();
      const { value, requests } = await counting(() =>
        ask(threadId, `@ fail ${failure} 1\n@ say whole answer of many words`),
      );
      expect(requests).toBe(2);
      expect(value.messages.map((message) => [message.type, message.content])).toEqual([
        ["human", `@ fail ${failure} 1\n@ say whole answer of many words`],
        ["ai", "whole answer of many words"],
      ]);
    },
  );

  it("ends the run as error when every attempt fails, and the thread goes on", async () => {
    const threadId = await newThread();
    const parts = await collect(
      client.runs.stream(threadId, LEAD, { ...human("@ fail 400\n@ say never"), streamMode: "values" }),
    );
    expect(parts.at(-1)!.event).toBe("error");
    expect((await client.runs.get(threadId, runIdOf(parts))).status).toBe("error");
    expect(lastOf(await ask(threadId, "@ say again")).content).toBe("again");
  });

  it("tells a child's provider failure upward as a failed task, not as an answer (P5)", async () => {
    const value = await ask(
      await newThread(),
      "@ delegate general-purpose :: doomed :: <<'CHILD'\nThe doomed job.\n@ fail 400\n@ say never\nCHILD\n@ say went on",
    );
    expect(lastOf(value).content).toBe("went on");
    expect(value.messages.find((message) => message.type === "tool")).toMatchObject({
      status: "error",
      additional_kwargs: { subagent_status: "failed" },
    });
  });
});

describe("a run that is cancelled", () => {
  const JOB = "A job of the cancelled run";
  const CHILDREN = [
    '@ call bash {"command": "sleep 6"}\n@ call bash {"command": "sleep 6"}',
    "@ fail 429 3 retry-after 6\n@ say never",
    `@ delay 200\n@ say${" word".repeat(32)}`,
    "@ say was never started",
  ];

  it.each(["interrupt", "rollback"] as const)(
    "by %s: its children at a tool, waiting to try again, in an answer and waiting for a slot make no further request",
    async (action) => {
      const threadId = await newThread();
      const job = `${JOB} by ${action}.`;
      const tasks = CHILDREN.map(
        (work, at) => `@ & delegate general-purpose :: ${at} :: <<'C${at}'\n${job}\n${work}\nC${at}`,
      );
      const asked = () => models.requests.filter((request) => wireText(request.messages[1]!).startsWith(job)).length;
      const { run_id: runId } = await client.runs.create(threadId, LEAD, human([...tasks, "@ say never"].join("\n")));
      // Three have their slots, the fourth waits for one.
      await eventually(asked, (count) => count >= 3, 20_000);
      const gone = models.aborted();
      await client.runs.cancel(threadId, runId, true, action);
      const total = models.requests.length;
      expect(asked()).toBe(3);
      // Longer than each of them would have been before its next request: by this run's end they would have asked.
      const { value, requests } = await counting(() =>
        ask(threadId, '@ call bash {"command": "sleep 8"}\n@ say after'),
      );
      expect(lastOf(value).content).toBe("after");
      expect(requests).toBe(2);
      expect(asked()).toBe(3);
      expect(models.requests.length).toBe(total + 2);
      // The answer that was under way was given up, not read to its end.
      expect(models.aborted()).toBeGreaterThan(gone);
    },
  );
});

describe("stored history that no provider would take", () => {
  const POISON: readonly [string, readonly Record<string, unknown>[]][] = [
    [
      "a call without its result",
      [
        { type: "human", content: "earlier" },
        { type: "ai", content: "", tool_calls: [{ id: "call_dangling", name: "bash", args: { command: "ls" } }] },
      ],
    ],
    [
      "a result without its call",
      [
        { type: "human", content: "earlier" },
        { type: "tool", content: "orphan", tool_call_id: "call_nobody" },
        { type: "ai", content: "said" },
      ],
    ],
    [
      "a result far from its call, and given twice",
      [
        { type: "human", content: "earlier" },
        { type: "ai", content: "", tool_calls: [{ id: "call_late", name: "ls", args: { path: "/workspace" } }] },
        { type: "human", content: "between" },
        { type: "tool", content: "late", tool_call_id: "call_late" },
        { type: "tool", content: "again", tool_call_id: "call_late" },
      ],
    ],
    [
      "an empty text block, an empty answer and a blank question",
      [
        { type: "human", content: [{ type: "text", text: "" }] },
        { type: "ai", content: [{ type: "text", text: "" }] },
        { type: "human", content: "" },
        { type: "ai", content: "" },
      ],
    ],
    [
      "calls with a foreign name, no id, and one id in two answers",
      [
        { type: "human", content: "earlier" },
        {
          type: "ai",
          content: "",
          tool_calls: [
            { id: "call_same", name: "no such tool!", args: {} },
            { id: "", name: "bash", args: { command: "ls" } },
          ],
        },
        { type: "tool", content: "first", tool_call_id: "call_same" },
        { type: "ai", content: "", tool_calls: [{ id: "call_same", name: "bash", args: { command: "ls" } }] },
      ],
    ],
    [
      "system messages of a client in the middle, and an answer first",
      [
        { type: "ai", content: "I was first" },
        { type: "system", content: "obey me" },
        { type: "human", content: "earlier" },
        { type: "system", content: "and me" },
      ],
    ],
  ];

  it.each(POISON)("%s: the next run's requests are valid, and its tools work", async (_what, messages) => {
    const threadId = await newThread();
    await client.threads.updateState(threadId, { values: { messages } });
    const value = await ask(threadId, '@ call bash {"command": "echo alive"}\n@ say {{result:1:line 1}}');
    expect(lastOf(value).content).toBe("alive");
    // Repaired in the request, not in what is stored.
    expect(value.messages.slice(0, messages.length).map((message) => message.type)).toEqual(
      messages.map((message) => message.type),
    );
  });
});

describe("after all of this", () => {
  it("the model server saw no request a strict provider would refuse", () => {
    expect(models.requests.length).toBeGreaterThan(40);
    expect(models.violations).toEqual([]);
  });

  it("the key stands in no state, no event and no line of the log (P7)", async () => {
    expect(deputy.lines.join("\n")).not.toContain(KEY);
    const [row] = deputy.query<{ n: number }>(`SELECT count(*) AS n FROM run_events WHERE content LIKE '%${KEY}%'`);
    expect(row!.n).toBe(0);
  });
});
