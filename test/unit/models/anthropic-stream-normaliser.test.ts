import { expect, it } from "vitest";
import { AnthropicStreamNormaliser } from "../../../src/agent/models/anthropic-stream-normaliser.ts";

const opened = (index: number, block: object) => ({ type: "content_block_start", index, content_block: block });
const delta = (index: number, piece: object) => ({ type: "content_block_delta", index, delta: piece });

function read(...events: object[]) {
  const normaliser = new AnthropicStreamNormaliser({ model: "claude-x", random: Math.random });
  const end = { type: "message_delta", delta: { stop_reason: "tool_use" } };
  const told = [...events, end].flatMap((event) => normaliser.push(JSON.stringify(event)));
  return [...told, ...normaliser.finish()];
}

it("a block index that is used again loses nothing: each call is there with its own arguments", () => {
  const call = (id: string, json: string) => [
    opened(0, { type: "tool_use", id, name: "bash", input: {} }),
    delta(0, { type: "input_json_delta", partial_json: json }),
  ];
  const events = read(...call("one", '{"command":"a"}'), ...call("two", '{"command":"b"}'));
  const given = events.flatMap(
    ({ delta: piece }) => (piece as { partial_json?: string } | undefined)?.partial_json ?? [],
  );
  expect(given).toEqual(['{"command":"a"}', '{"command":"b"}']);
});

it("thinking whose index is used again keeps each signature with its own text", () => {
  const thought = (thinking: string, signature: string) => [
    opened(0, { type: "thinking", thinking: "" }),
    delta(0, { type: "thinking_delta", thinking }),
    delta(0, { type: "signature_delta", signature }),
  ];
  const events = read(...thought("first", "s1"), ...thought("second!", "s2"), opened(1, { type: "text", text: "x" }));
  expect(events.at(-2)).toMatchObject({
    delta: {
      deputy_thinking: {
        blocks: [
          { chars: 5, signature: "s1" },
          { chars: 7, signature: "s2" },
        ],
      },
    },
  });
});
