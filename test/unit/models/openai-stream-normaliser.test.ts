import { describe, expect, it } from "vitest";
import { CALL_ID_PATTERN, mintCallId } from "../../../src/agent/models/call-id.ts";
import { OpenAiStreamNormaliser } from "../../../src/agent/models/openai-stream-normaliser.ts";
import { splitGlued } from "../../../src/agent/models/tool-call-assembler.ts";

const normaliser = () => new OpenAiStreamNormaliser({ messageId: "ours", random: Math.random });
const event = (delta: object, finish_reason: string | null = null, more: object = {}) =>
  JSON.stringify({ id: "theirs", model: "m", choices: [{ index: 0, delta, finish_reason }], ...more });
const piece = (fields: object, name?: string, args?: string) => ({
  tool_calls: [
    { ...fields, function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) } },
  ],
});

function callsOf(deltas: object[]): { name: string; arguments: string }[] {
  const stream = normaliser();
  for (const delta of deltas) stream.push(event(delta));
  stream.push(event({}, "tool_calls"));
  const [last] = stream.finish() as { choices: { delta: { tool_calls: { function: never }[] } }[] }[];
  return last?.choices[0]?.delta.tool_calls.map((call) => call.function) ?? [];
}

describe("calls", () => {
  it("are told apart by id when they share an index", () => {
    expect(
      callsOf([
        piece({ index: 0, id: "1" }, "a", '{"x":'),
        piece({ index: 0 }, undefined, "1}"),
        piece({ index: 0, id: "2" }, "b", "{}"),
      ]),
    ).toEqual([
      { name: "a", arguments: '{"x":1}' },
      { name: "b", arguments: "{}" },
    ]);
  });

  it("are told apart by name when they share an index and have no id", () => {
    expect(callsOf([piece({ index: 0 }, "a", "{}"), piece({ index: 0 }, "b", '{"y":2}')])).toEqual([
      { name: "a", arguments: "{}" },
      { name: "b", arguments: '{"y":2}' },
    ]);
  });

  it("interleave by index", () => {
    expect(
      callsOf([
        piece({ index: 0, id: "1" }, "a", '{"x":'),
        piece({ index: 1, id: "2" }, "b", '{"y":'),
        piece({ index: 0 }, undefined, "1}"),
        piece({ index: 1 }, undefined, "2}"),
      ]),
    ).toEqual([
      { name: "a", arguments: '{"x":1}' },
      { name: "b", arguments: '{"y":2}' },
    ]);
  });

  it("survive an id and name repeated in every delta, a name in pieces and arguments given as an object", () => {
    expect(callsOf([piece({ index: 0, id: "1" }, "a", '{"x":'), piece({ index: 0, id: "1" }, "a", "1}")])).toEqual([
      { name: "a", arguments: '{"x":1}' },
    ]);
    expect(callsOf([piece({ index: 0, id: "1" }, "ba"), piece({ index: 0 }, "sh", "{}")])).toEqual([
      { name: "bash", arguments: "{}" },
    ]);
    expect(callsOf([{ tool_calls: [{ index: 0, function: { name: "a", arguments: { x: 1 } } }, null] }])).toEqual([
      { name: "a", arguments: '{"x":1}' },
    ]);
  });

  it.each([
    ['{"a":"}{"}{"b":1}', ['{"a":"}{"}', '{"b":1}']],
    ['{"a":"\\""} \n {}', ['{"a":"\\""}', "{}"]],
    ["{}", ["{}"]],
    ['{"a":{}}{"b":', ['{"a":{}}', '{"b":']],
    ["{} tail", ["{} tail"]],
    ['{"a"', ['{"a"']],
    ["[1]{}", ["[1]{}"]],
    ["", [""]],
    ["x{}{}", ["x{}{}"]],
    ["}{", ["}{"]],
  ])("split glued arguments %j only into whole objects", (text, parts) => {
    expect(splitGlued(text)).toEqual(parts);
  });
});

it("gives every delta the assistant role and our message id", () => {
  const [chunk] = normaliser().push(event({ content: "hi" }));
  expect(chunk).toMatchObject({ id: "ours", choices: [{ delta: { role: "assistant", content: "hi" } }] });
});

it("sends usage once, at the end, and only whole records (R67)", () => {
  const usageAfter = (usage: unknown) => {
    const stream = normaliser();
    expect(stream.push(event({ content: "x" }, null, { usage }))[0]).not.toHaveProperty("usage");
    stream.push(event({}, "stop"));
    return stream
      .finish()
      .map((chunk) => chunk.usage)
      .filter((found) => found !== undefined);
  };
  expect(usageAfter({ prompt_tokens: 3, completion_tokens: 4 })).toEqual([
    { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
  ]);
  for (const bad of [null, {}, { prompt_tokens: 3 }, { prompt_tokens: -1, completion_tokens: 1 }]) {
    expect(usageAfter(bad)).toEqual([]);
  }
});

it("reads the finish reason once even when a provider repeats it, and only of the first choice", () => {
  const stream = normaliser();
  stream.push(event({}, "stop"));
  stream.push(event({}, "stop"));
  expect(stream.push(JSON.stringify({ choices: [{ index: 1, delta: { content: "other" } }] }))).toEqual([]);
  expect(stream.finish()).toMatchObject([{ choices: [{ finish_reason: "stop" }] }]);
});

describe("failures inside a 200", () => {
  it.each([
    ['{"error":{"message":"quota","code":"429"}}', "quota", 429],
    ['{"error":"overloaded"}', "overloaded", undefined],
    ['{"error":"{\\"error\\":{\\"message\\":\\"nested\\",\\"status\\":503}}"}', "nested", 503],
    ["not json", "not a JSON object", undefined],
    ["[1]", "not a JSON object", undefined],
  ])("%s", (data, message, status) => {
    expect(() => normaliser().push(data)).toThrow(expect.objectContaining({ reason: "stream_error", status }) as Error);
    expect(() => normaliser().push(data)).toThrow(message);
  });

  it("no finish reason", () => {
    const stream = normaliser();
    stream.push(event({ content: "half" }));
    expect(() => stream.finish()).toThrow(expect.objectContaining({ reason: "truncated" }) as Error);
  });
});

it("mints call ids of the contract's form at both ends of the random range", () => {
  for (const random of [() => 0, () => 0.999_999_999, Math.random]) expect(mintCallId(random)).toMatch(CALL_ID_PATTERN);
});
