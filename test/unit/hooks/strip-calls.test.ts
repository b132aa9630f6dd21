import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { stripCalls } from "../../../src/agent/hooks/strip-calls.ts";

const call = (id: string, name: string) => ({ id, name, args: {}, type: "tool_call" as const });

interface AnswerParts {
  readonly content?: AIMessage["content"];
  readonly response_metadata?: Record<string, unknown>;
}

function answer(more: AnswerParts = {}): AIMessage {
  return new AIMessage({
    id: "m1",
    content: "text",
    tool_calls: [call("a", "task"), call("b", "look"), call("c", "task")],
    additional_kwargs: {
      tool_calls: ["pa", "b", "pc"].map((id) => ({ id, type: "function", function: { name: "x", arguments: "{}" } })),
      function_call: { name: "x", arguments: "{}" },
      deputy_provider_call_ids: { a: "pa", c: "pc" },
      deputy_invalid_tool_calls: { c: { raw: "{", error: "cut" } },
    },
    response_metadata: { finish_reason: "tool_calls" },
    ...more,
  });
}

describe("strip", () => {
  test("a cut call leaves every copy, by our id and by the provider's; the others keep their order", () => {
    const stripped = stripCalls(answer(), new Set(["a", "c"]), "note");
    expect(stripped.id).toBe("m1");
    expect(stripped.text).toBe("text\n\nnote");
    expect(stripped.tool_calls?.map((each) => each.id)).toEqual(["b"]);
    expect(stripped.additional_kwargs.tool_calls?.map((each) => each.id)).toEqual(["b"]);
    expect(stripped.additional_kwargs).toMatchObject({ deputy_provider_call_ids: {}, deputy_invalid_tool_calls: {} });
    expect(stripped.additional_kwargs).toHaveProperty("function_call");
    expect(stripped.response_metadata).toEqual({ finish_reason: "tool_calls" });
  });

  test("with no call left the raw copies go and only `tool_calls` becomes `stop`", () => {
    const all = new Set(["a", "b", "c"]);
    const stripped = stripCalls(answer(), all);
    expect(stripped.tool_calls).toEqual([]);
    expect(stripped.additional_kwargs).not.toHaveProperty("tool_calls");
    expect(stripped.additional_kwargs).not.toHaveProperty("function_call");
    expect(stripped.response_metadata).toEqual({ finish_reason: "stop" });
    const length = stripCalls(answer({ response_metadata: { finish_reason: "length" } }), all);
    expect(length.response_metadata).toEqual({ finish_reason: "length" });
  });

  test("content blocks of a cut call go, the note becomes a block", () => {
    const content = [
      { type: "text" as const, text: "text" },
      { type: "tool_use" as const, id: "a", name: "task", input: {} },
      { type: "tool_use" as const, id: "b", name: "look", input: {} },
    ];
    const stripped = stripCalls(answer({ content }), new Set(["a"]), "note");
    expect(stripped.content).toEqual([content[0], content[2], { type: "text", text: "note" }]);
  });

  test("the given message is not changed", () => {
    const given = answer();
    const before = JSON.stringify(given.toDict());
    stripCalls(given, new Set(["a"]), "note");
    expect(JSON.stringify(given.toDict())).toBe(before);
  });
});
