/** Data of clients and models that LangChain's own reading of stored state refuses: it must stay data, or be refused at the door. */
import { describe, expect, it } from "vitest";
import { asking, newThread, send, sendJson, streamRun } from "../../support/http.ts";

interface State {
  readonly values: {
    readonly title?: unknown;
    readonly messages: readonly {
      readonly content: unknown;
      readonly status?: string;
      readonly additional_kwargs: Record<string, unknown>;
      readonly tool_calls?: readonly { readonly args: unknown }[];
    }[];
  };
}

const stateOf = (threadId: string) => sendJson<State>("GET", `/threads/${threadId}/state`);

function nested(levels: number): unknown {
  return levels === 0 ? "end" : [nested(levels - 1)];
}

function messageForm(kwargs: unknown): unknown {
  return { lc: 1, type: "constructor", id: ["langchain_core", "messages", "HumanMessage"], kwargs };
}

const LOOKALIKES: readonly [string, unknown][] = [
  ["an unknown constructor", { lc: 1, type: "constructor", id: ["nowhere", "module", "Evil"], kwargs: {} }],
  ["a message no class accepts", messageForm(undefined)],
  ["a message with foreign content", messageForm({ content: 5 })],
  ["a set", { lc: 2, type: "constructor", id: ["Set"], args: [[1]] }],
  ["a secret", { lc: 1, type: "secret", id: ["OPENAI_API_KEY"] }],
  ["an escaped object", { __lc_escaped__: { lc: 1 } }],
  ["60 levels", nested(60)],
];

describe("what looks like a stored form of LangChain's is data, and its thread stays readable and usable (P1)", () => {
  async function expectUsable(threadId: string): Promise<State> {
    const before = await stateOf(threadId);
    await streamRun(threadId, asking("@ say alive"));
    const state = await stateOf(threadId);
    expect(state.values.messages.at(-1)!.content).toBe("alive");
    expect(state.values.messages.slice(0, before.values.messages.length)).toEqual(before.values.messages);
    return state;
  }

  it.each(LOOKALIKES)("%s in a client's message", async (_what, value) => {
    const threadId = await newThread();
    const message = { type: "human", content: "@ say hi", additional_kwargs: { given: value } };
    await streamRun(threadId, { ...asking(""), input: { messages: [message] } });
    const [human] = (await expectUsable(threadId)).values.messages;
    expect(human!.additional_kwargs["given"]).toEqual(value);
  });

  it.each(LOOKALIKES)("%s in another channel", async (_what, value) => {
    const threadId = await newThread();
    const messages = [{ type: "human", content: "@ say hi" }];
    await streamRun(threadId, { ...asking(""), input: { messages, title: value } });
    expect((await expectUsable(threadId)).values.title).toEqual(value);
  });

  it.each(LOOKALIKES)("%s in the arguments of a model's call", async (_what, value) => {
    const threadId = await newThread();
    const args = { command: "echo ran", given: value };
    await streamRun(threadId, asking(`@ raw bash ${JSON.stringify(args)}\n@ say hi`));
    const [, call, result] = (await expectUsable(threadId)).values.messages;
    expect(call!.tool_calls![0]!.args).toEqual(args);
    expect(result!.content).toContain("ran");
  });

  it.each(LOOKALIKES)("%s in a run's metadata", async (_what, value) => {
    const threadId = await newThread();
    await streamRun(threadId, asking("@ say hi", { metadata: { given: value } }));
    await expectUsable(threadId);
  });
});

describe("nesting past the bound (P8)", () => {
  it("is refused in a body, and nothing is made of it", async () => {
    const threadId = crypto.randomUUID();
    const body = { ...asking("@ say hi"), if_not_exists: "create", metadata: { given: nested(5_000) } };
    const refused = await send("POST", `/threads/${threadId}/runs`, body);
    expect(refused.status).toBe(422);
    expect(await refused.json()).toMatchObject({ code: "invalid_request", message: expect.stringContaining("100") });
    expect((await send("GET", `/threads/${threadId}`)).status).toBe(404);
  });

  it("in a model's arguments is an error result for the model", async () => {
    const threadId = await newThread();
    const args = JSON.stringify({ command: "echo ran", given: nested(500) });
    await streamRun(threadId, asking(`@ raw bash ${args}\n@ say on`));
    const [, call, result, last] = (await stateOf(threadId)).values.messages;
    expect(call!.tool_calls![0]!.args).toEqual({});
    expect(result).toMatchObject({ status: "error", content: expect.stringContaining("nest deeper than 100") });
    expect(last!.content).toBe("on");
  });
});

it("a client's configurable does not say how deep its delegations stand (P8)", async () => {
  const threadId = await newThread();
  const script = "@ delegate bash :: a job :: <<'JOB'\n@ say done\nJOB\n@ say {{result:1}}";
  await streamRun(threadId, asking(script, { config: { configurable: { deputy_depth: 50 } } }));
  expect((await stateOf(threadId)).values.messages.at(-1)!.content).toBe("Task Succeeded. Result: done");
});

it.each(["__proto__", "constructor"])("a state update as node %s is refused, not a fault", async (node) => {
  const threadId = await newThread();
  await streamRun(threadId, asking("@ say hi"));
  const values = { messages: [{ type: "human", content: "no" }] };
  expect((await send("POST", `/threads/${threadId}/state`, { values, as_node: node })).status).toBe(422);
});

it("a run's create is measured in bytes of UTF-8, as its row is (P8)", async () => {
  const threadId = await newThread();
  expect((await send("POST", `/threads/${threadId}/runs`, asking("\u6f22".repeat(600_000)))).status).toBe(413);
  expect((await send("POST", `/threads/${threadId}/runs`, asking("a".repeat(600_000)))).status).toBe(200);
});
