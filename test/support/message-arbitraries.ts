/** Generated message histories for fast-check: everything a thread may hold, valid or not. */
import {
  AIMessage,
  type BaseMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import * as fc from "fast-check";

/** Few ids, so that duplicates, orphans and matches are all common. */
const callId = fc.constantFrom("a", "b", "c", "call_000000000000000000000001", "");
const messageId = fc.option(fc.uuid(), { nil: undefined });
const name = fc.option(fc.constantFrom("bash", "loop_warning", "John Doe", "", "é", "x".repeat(65)), {
  nil: undefined,
});
const text = fc.constantFrom("", " ", "\n", "hello", "two words", "{}");
const block = fc.oneof(
  text.map((value) => ({ type: "text", text: value })),
  fc.constant({ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }),
  fc.constant({ type: "tool_use", id: "x", name: "bash", input: {} }),
  fc.constant({ type: "thinking", thinking: "hm" }),
);
const content = fc.oneof(text, fc.array(block, { maxLength: 3 }));
const args = fc.oneof(
  fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
  fc.constantFrom(undefined, null, "text", 3, [1]),
);
const call = fc.record({
  id: fc.oneof(callId, fc.constant(undefined)),
  name: fc.constantFrom("bash", "task", "no.dots", "", "x".repeat(65)),
  args,
});
const rawCall = { id: "raw", type: "function", function: { name: "bash", arguments: "{}" } };
const kwargs = fc.constantFrom<Record<string, unknown>>(
  {},
  { hide_from_ui: true },
  { tool_calls: [rawCall] },
  { function_call: { name: "bash", arguments: "{}" } },
  { audio: { id: "a1" } },
);

const fields = fc.record({ id: messageId, name, content, additional_kwargs: kwargs });

function make(Class: new (given: never) => BaseMessage, extra: object = {}) {
  return fields.map((given) => new Class({ ...given, ...extra } as never));
}

/** Set behind the constructor, which warns about raw calls on the console. */
const assistant = fc
  .tuple(fields, fc.array(call, { maxLength: 3 }))
  .map(([{ additional_kwargs, ...given }, tool_calls]) =>
    Object.assign(new AIMessage({ ...given, tool_calls } as never), { additional_kwargs }),
  );
const tool = fc
  .tuple(fields, callId)
  .map(([given, tool_call_id]) => new ToolMessage({ ...given, tool_call_id } as never));

export const anyMessage: fc.Arbitrary<BaseMessage> = fc.oneof(
  { weight: 4, arbitrary: assistant },
  { weight: 5, arbitrary: tool },
  { weight: 3, arbitrary: make(HumanMessage) },
  { weight: 2, arbitrary: make(SystemMessage) },
  make(ChatMessage, { role: "assistant" }),
  make(ChatMessage, { role: "developer" }),
  make(FunctionMessage, { name: "f" }),
  fc.uuid().map((id) => new RemoveMessage({ id })),
);

export const anyHistory = fc.array(anyMessage, { maxLength: 12 });

/** Turns a strict provider accepts: human, then answers whose calls are answered in any order within their group. */
export const validHistory = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.boolean()), { minLength: 1, maxLength: 5 })
  .map((turns) => {
    let ids = 0;
    const newId = () => `id${(ids += 1)}`;
    return turns.flatMap(([count, reversed]): BaseMessage[] => {
      const calls = Array.from({ length: count }, () => ({
        id: newId(),
        name: "bash",
        args: {},
        type: "tool_call" as const,
      }));
      const results = calls.map((one) => new ToolMessage({ id: newId(), content: "done", tool_call_id: one.id }));
      return [
        new HumanMessage({ id: newId(), content: "do" }),
        new AIMessage({ id: newId(), content: count === 0 ? "done" : "", tool_calls: calls }),
        ...(reversed ? results.toReversed() : results),
      ];
    });
  });
