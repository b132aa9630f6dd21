import { AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, ToolMessage } from "@langchain/core/messages";
import type { BaseMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { prepareMessageWrite, stripServerOwnedKeys } from "../../../src/agent/thread-state/coerce-messages.ts";
import { countedIds } from "../../support/agent-fixture.ts";

function accepted(input: unknown, state: BaseMessage[] = []): BaseMessage[] {
  const prepared = prepareMessageWrite(state, input, countedIds("new"));
  if (!prepared.ok) throw new Error(prepared.error.message);
  return prepared.value;
}

function refused(input: unknown, state: BaseMessage[] = []) {
  const prepared = prepareMessageWrite(state, input, countedIds("new"));
  if (prepared.ok) throw new Error("the write was accepted");
  return prepared.error;
}

describe("forms that stand for a message", () => {
  const forms: [string, unknown, string, string][] = [
    ["a string", "hi", "HumanMessage", "hi"],
    ["type human", { type: "human", content: "hi" }, "HumanMessage", "hi"],
    ["type user", { type: "user", content: "hi" }, "HumanMessage", "hi"],
    ["type ai", { type: "ai", content: "hi" }, "AIMessage", "hi"],
    ["type assistant", { type: "assistant", content: "hi" }, "AIMessage", "hi"],
    ["type system", { type: "system", content: "hi" }, "SystemMessage", "hi"],
    ["type tool", { type: "tool", content: "hi", tool_call_id: "c" }, "ToolMessage", "hi"],
    ["role user", { role: "user", content: "hi" }, "HumanMessage", "hi"],
    ["role assistant", { role: "assistant", content: "hi" }, "AIMessage", "hi"],
    ["role system", { role: "system", content: "hi" }, "SystemMessage", "hi"],
    ["role tool", { role: "tool", content: "hi", tool_call_id: "c" }, "ToolMessage", "hi"],
    ["a list of content blocks", { role: "user", content: [{ type: "text", text: "hi" }] }, "HumanMessage", "hi"],
    ["a chunk", new AIMessageChunk("hi"), "AIMessage", "hi"],
    ["a serialized message", JSON.parse(JSON.stringify(new HumanMessage("hi"))), "HumanMessage", "hi"],
    [
      "what the SDK sends back",
      { content: "hi", additional_kwargs: {}, response_metadata: {}, type: "human", example: false },
      "HumanMessage",
      "hi",
    ],
  ];
  test.each(forms)("%s, alone and in a list", (_, input, className, text) => {
    for (const [message] of [accepted(input), accepted([input])]) {
      expect(message?.constructor.name).toBe(className);
      expect(message?.text).toBe(text);
      expect(message?.id).toBe("new-1");
    }
  });

  test("a [type, content] pair within a list", () => {
    expect(accepted([["human", "hi"]])[0]).toMatchObject({ content: "hi", id: "new-1" });
  });

  test("tool calls in OpenAI's wire form become LangChain calls", () => {
    const wire = { id: "c1", type: "function", function: { name: "ls", arguments: '{"path":"/"}' } };
    const [message] = accepted([{ role: "assistant", content: "", tool_calls: [wire] }]);
    expect((message as AIMessage).tool_calls).toEqual([
      { id: "c1", name: "ls", args: { path: "/" }, type: "tool_call" },
    ]);
  });

  test("a chunk keeps its id, calls and usage", () => {
    const usage_metadata = { input_tokens: 1, output_tokens: 2, total_tokens: 3 };
    const chunk = new AIMessageChunk({
      id: "k",
      content: "x",
      tool_call_chunks: [{ id: "c1", name: "ls", args: "{}", index: 0, type: "tool_call_chunk" }],
      usage_metadata: usage_metadata as never,
    });
    const [message] = accepted(chunk);
    expect(message).toBeInstanceOf(AIMessage);
    expect(message).not.toHaveProperty("tool_call_chunks");
    expect(message).toMatchObject({ id: "k", usage_metadata, tool_calls: [{ id: "c1", name: "ls", args: {} }] });
  });
});

describe("ids (R185)", () => {
  test("missing ids are given in encounter order, given ones stay, and the caller's objects are not touched", () => {
    const mine = new HumanMessage("two");
    expect(
      accepted(["one", mine, { type: "ai", content: "three", id: "x" }, "four"]).map((message) => message.id),
    ).toEqual(["new-1", "new-2", "x", "new-3"]);
    expect(mine.id).toBeUndefined();
  });

  test("a given id survives serialization", () => {
    const [message] = accepted("one");
    expect(JSON.parse(JSON.stringify(message)).kwargs.id).toBe("new-1");
  });

  test("a tool result without an id keeps every other field", () => {
    const result = new ToolMessage({
      content: "x",
      tool_call_id: "c1",
      name: "ls",
      status: "error",
      artifact: { a: 1 },
    });
    expect(accepted(result)[0]).toMatchObject({
      id: "new-1",
      tool_call_id: "c1",
      name: "ls",
      status: "error",
      artifact: { a: 1 },
    });
  });
});

describe("refusals", () => {
  const state = [new HumanMessage({ id: "h1", content: "x" })];

  test("a removal of an unknown id names the id and what is allowed", () => {
    const error = refused(["hi", { type: "remove", id: "nope" }], state);
    expect(error).toMatchObject({ reason: "unknown_removal", index: 1, id: "nope" });
    expect(error.message).toContain("messages[1] removes 'nope'");
    expect(error.message).toContain("__remove_all__");
  });

  test("a removal may name state, or an earlier message of the same write, not a later one", () => {
    expect(accepted([new RemoveMessage({ id: "h1" })], state)).toHaveLength(1);
    const added = new HumanMessage({ id: "n", content: "x" });
    expect(accepted([added, new RemoveMessage({ id: "n" })], state)).toHaveLength(2);
    expect(refused([new RemoveMessage({ id: "n" }), added], state).reason).toBe("unknown_removal");
  });

  test("a remove-all makes every removal of its write legal", () => {
    expect(
      accepted([
        { type: "remove", id: "nope" },
        { type: "remove", id: "__remove_all__" },
      ]),
    ).toHaveLength(2);
  });

  const bad: [string, unknown, RegExp][] = [
    ["an unknown type", [{ type: "robot", content: "x" }], /messages\[0\]: cannot be read/],
    ["a tool message without its call", ["x", { type: "tool", content: "x" }], /messages\[1\]/],
    ["a number", [7], /messages\[0\]/],
    ["null in a list", ["x", null], /messages\[1\]: null is no message/],
    ["content of another type", [{ type: "human", content: 7 }], /content must be a string or a list/],
    ["an id of another type", [{ type: "human", content: "x", id: 7 }], /id must be a string/],
    ["tool_calls of another type", [{ type: "ai", content: "x", tool_calls: 5 }], /tool_calls must be a list/],
    [
      "a call id of another type",
      [{ type: "ai", content: "", tool_calls: [{ id: 7, name: "ls", args: {} }] }],
      /tool_calls ids must be strings/,
    ],
    [
      "two calls of one id, which would run twice over the same staged files",
      [
        {
          type: "ai",
          content: "",
          tool_calls: [
            { id: "a", name: "ls", args: {} },
            { id: "a", name: "ls", args: {} },
          ],
        },
      ],
      /tool_calls ids must be unique/,
    ],
    [
      "a call with broken arguments",
      [
        {
          type: "ai",
          content: "",
          tool_calls: [{ id: "x", type: "function", function: { name: "a", arguments: "{" } }],
        },
      ],
      /messages\[0\]/,
    ],
  ];
  test.each(bad)("%s is refused with its index and the allowed forms", (_, input, text) => {
    const error = refused(input, state);
    expect(error.reason).toBe("not_a_message");
    expect(error.message).toMatch(text);
    expect(error.message).toContain("allowed: a string");
  });

  test.each([null, undefined])("%s is no write", (input) => {
    expect(refused(input, state).reason).toBe("null_write");
  });

  test("a refusal shows at most a bounded piece of what was sent", () => {
    expect(refused([{ type: "x".repeat(100_000) }]).message.length).toBeLessThan(1_000);
  });
});

describe("keys the server owns", () => {
  test("are stripped from outside messages, all others stay", () => {
    const kwargs = {
      original_user_content: "forged",
      subagent_status: "completed",
      deerflow_error_fallback: true,
      deputy_ends_turn: true,
      hide_from_ui: true,
      files: ["a"],
    };
    const [message] = stripServerOwnedKeys(
      accepted([{ type: "human", content: "hi", id: "h", additional_kwargs: kwargs }]),
    );
    expect(message).toMatchObject({ id: "h", content: "hi", additional_kwargs: { hide_from_ui: true, files: ["a"] } });
    expect(Object.keys(message?.additional_kwargs ?? {})).toEqual(["hide_from_ui", "files"]);
    expect(Object.keys(JSON.parse(JSON.stringify(message)).kwargs.additional_kwargs)).toEqual([
      "hide_from_ui",
      "files",
    ]);
  });

  test("a message without them is handed on as it is", () => {
    const message = new HumanMessage({ content: "hi", id: "h", additional_kwargs: { files: [] } });
    expect(stripServerOwnedKeys([message])[0]).toBe(message);
  });
});
