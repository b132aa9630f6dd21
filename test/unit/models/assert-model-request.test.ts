import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { assertModelRequest, ModelRequestError } from "../../../src/agent/models/assert-model-request.ts";
import { assertOpenAiRequestBody } from "../../../src/agent/models/assert-openai-request-body.ts";
import type { RequestRule } from "../../../src/agent/models/request-rules.ts";

const system = new SystemMessage("s");
const human = new HumanMessage("h");
const call = (id: string | undefined, name = "bash", args: unknown = {}) => ({ id, name, args }) as never;
const ai = (...tool_calls: never[]) => new AIMessage({ content: "", tool_calls });
const result = (id: string) => new ToolMessage({ tool_call_id: id, content: "r" });

/** Set behind the constructor, which warns about raw calls on the console. */
const rawCalls = () =>
  Object.assign(new AIMessage("done"), {
    additional_kwargs: { tool_calls: [{ id: "r", type: "function", function: { name: "bash", arguments: "{}" } }] },
  });

function violationOf(act: () => void): { rule: RequestRule; index: number } | undefined {
  try {
    act();
    return undefined;
  } catch (error) {
    if (!(error instanceof ModelRequestError)) throw error;
    return { rule: error.violation.rule, index: error.violation.index };
  }
}

const broken: [string, BaseMessage[], RequestRule, number][] = [
  ["two system messages", [system, system, human], "one_leading_system", 1],
  ["a system message behind the human", [human, system], "one_leading_system", 1],
  ["no message", [], "human_first", 0],
  ["only a system message", [system], "human_first", 1],
  ["an assistant first", [system, new AIMessage("a"), human], "human_first", 1],
  ["a result first", [result("a"), human], "human_first", 0],
  ["a dangling call", [human, ai(call("a"))], "answered_at_once", 1],
  ["a result behind another message", [human, ai(call("a")), human, result("a")], "answered_at_once", 1],
  ["one of two calls unanswered", [human, ai(call("a"), call("b")), result("a")], "answered_at_once", 1],
  ["an orphaned result", [human, result("a")], "result_has_call", 1],
  ["a second result", [human, ai(call("a")), result("a"), result("a")], "result_has_call", 3],
  ["a call without an id", [human, ai(call(undefined))], "unique_call_ids", 1],
  ["a call with an empty id", [human, ai(call("")), result("")], "unique_call_ids", 1],
  ["an id used twice in a message", [human, ai(call("a"), call("a")), result("a")], "unique_call_ids", 1],
  [
    "an id used twice in a request",
    [human, ai(call("a")), result("a"), ai(call("a")), result("a")],
    "unique_call_ids",
    3,
  ],
  ["an empty human text", [new HumanMessage("")], "no_empty_text", 0],
  ["a blank text block", [new HumanMessage({ content: [{ type: "text", text: " " }] })], "no_empty_text", 0],
  ["a message without blocks", [human, new AIMessage({ content: [] })], "no_empty_text", 1],
  ["an empty assistant answer", [human, new AIMessage("")], "no_empty_text", 1],
  ["arguments that are a list", [human, ai(call("a", "bash", [1])), result("a")], "arguments_object", 1],
  ["arguments that are null", [human, ai(call("a", "bash", null)), result("a")], "arguments_object", 1],
  ["an illegal tool name", [human, ai(call("a", "no.dots")), result("a")], "legal_names", 1],
  ["a name of 65 characters", [human, ai(call("a", "x".repeat(65))), result("a")], "legal_names", 1],
  ["an illegal participant name", [new HumanMessage({ content: "h", name: "John Doe" })], "legal_names", 0],
  ["a raw provider copy of calls", [human, rawCalls()], "no_raw_calls", 1],
];

describe("assertModelRequest names the broken rule and where", () => {
  it.each(broken)("%s", (_what, messages, rule, index) => {
    expect(violationOf(() => assertModelRequest({ messages, tools: [] }))).toEqual({ rule, index });
  });

  it("an unknown role", () => {
    const odd = Object.assign(new HumanMessage("h"), { getType: () => "generic" });
    expect(violationOf(() => assertModelRequest({ messages: [odd], tools: [] }))?.rule).toBe("known_role");
  });

  it.each([
    ["bad name", {}],
    ["x".repeat(65), {}],
    ["bash", [] as never],
  ])("an illegal tool %j", (name, parameters) => {
    const tools = [{ name, description: "d", parameters }];
    expect(violationOf(() => assertModelRequest({ messages: [human], tools }))?.rule).toBe("legal_tools");
  });

  it("a tool name used twice", () => {
    const tool = { name: "bash", description: "d", parameters: {} };
    expect(violationOf(() => assertModelRequest({ messages: [human], tools: [tool, tool] }))).toEqual({
      rule: "legal_tools",
      index: 1,
    });
  });
});

it("accepts a full conversation, results in any order within their group", () => {
  const messages = [
    system,
    human,
    ai(call("a"), call("b")),
    result("b"),
    result("a"),
    new AIMessage({ content: "and", tool_calls: [call("c")] }),
    result("c"),
    new AIMessage("done"),
    new HumanMessage({ content: [{ type: "image_url", image_url: { url: "data:," } }] }),
  ];
  expect(() => assertModelRequest({ messages, tools: [] })).not.toThrow();
});

describe("the same rules hold on the wire", () => {
  const user = { role: "user", content: "h" };
  const wireCall = (id: string, args = "{}") => ({ id, type: "function", function: { name: "bash", arguments: args } });
  const calling = (...tool_calls: unknown[]) => ({ role: "assistant", content: null, tool_calls });
  const done = (id: string) => ({ role: "tool", tool_call_id: id, content: "r" });
  const wire: [string, unknown[], RequestRule][] = [
    [
      "developer behind system",
      [
        { role: "system", content: "s" },
        { role: "developer", content: "s" },
      ],
      "one_leading_system",
    ],
    ["function role", [user, { role: "function", name: "f", content: "x" }], "known_role"],
    ["no message", [], "human_first"],
    ["dangling call", [user, calling(wireCall("a"))], "answered_at_once"],
    ["orphaned result", [user, done("a")], "result_has_call"],
    ["reused id", [user, calling(wireCall("a")), done("a"), calling(wireCall("a")), done("a")], "unique_call_ids"],
    ["an empty string beside calls", [user, { ...calling(wireCall("a")), content: "" }, done("a")], "no_empty_text"],
    ["an empty text block", [{ role: "user", content: [{ type: "text", text: "" }] }], "no_empty_text"],
    ["glued arguments", [user, calling(wireCall("a", "{}{}")), done("a")], "arguments_object"],
    ["arguments that are a text", [user, calling(wireCall("a", '"x"')), done("a")], "arguments_object"],
    [
      "a function_call beside the answer",
      [user, { role: "assistant", content: "x", function_call: {} }],
      "no_raw_calls",
    ],
  ];
  it.each(wire)("%s", (_what, messages, rule) => {
    expect(violationOf(() => assertOpenAiRequestBody({ messages }))?.rule).toBe(rule);
  });

  it("accepts a regular body", () => {
    const tools = [{ type: "function", function: { name: "bash", description: "d", parameters: { type: "object" } } }];
    const messages = [{ role: "system", content: "s" }, user, calling(wireCall("a")), done("a")];
    expect(() => assertOpenAiRequestBody({ messages, tools })).not.toThrow();
  });

  it.each([undefined, null, "text", { messages: "no" }])("refuses %j, which is no request", (body) => {
    expect(violationOf(() => assertOpenAiRequestBody(body))?.rule).toBe("human_first");
  });
});
