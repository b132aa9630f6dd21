/** Every request the repair can make, over the real adapter, against Anthropic's rules as `anthropic-rules.ts` has them. */
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { repairMessages } from "../../../src/agent/hooks/request-repair.ts";
import { createAnthropicModel } from "../../../src/agent/models/anthropic.ts";
import { HeaderGates } from "../../../src/agent/models/header-gate.ts";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import { THINKING_KEY } from "../../../src/agent/models/stored-thinking.ts";
import type { AnthropicRequest } from "../../support/anthropic-server.ts";
import { findAnthropicViolation } from "../../support/anthropic-rules.ts";
import { anyHistory, validHistory } from "../../support/message-arbitraries.ts";

const MODEL = "claude-test";
const events = [
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ok"}}',
  '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
].map((data) => `data: ${data}\n\n`);

const bodies: AnthropicRequest[] = [];
const model = createAnthropicModel({
  name: "claude",
  apiKey: "k",
  model: MODEL,
  thinking: true,
  modelIdleMs: 1_000,
  newId: () => "m",
  random: Math.random,
  now: Date.now,
  gates: new HeaderGates(),
  fetch: (_url, init) => {
    bodies.push(JSON.parse(init?.body as string) as AnthropicRequest);
    return Promise.resolve(new Response(events.join(""), { headers: { "content-type": "text/event-stream" } }));
  },
});

async function bodyOf(request: ModelRequest): Promise<AnthropicRequest> {
  await model.generate(request, {});
  return bodies.at(-1)!;
}

/** How an answer's thinking is stored: whole, another model's, damaged, or not at all. */
const stored = fc.constantFrom("whole", "other model", "cut", "garbage", "none");
const tools = fc.constantFrom(
  [],
  [{ name: "bash", description: "run", parameters: { type: "object", properties: {} } }],
);

function withThinking(history: readonly BaseMessage[], kinds: readonly string[]): BaseMessage[] {
  return history.map((message, at) => {
    const kind = kinds[at % kinds.length];
    if (!AIMessage.isInstance(message) || kind === "none") return message;
    const blocks = kind === "garbage" ? [{ type: "thinking" }] : [{ type: "thinking", chars: 4, signature: "signed" }];
    const signed = { v: 1, model: kind === "other model" ? "claude-else" : MODEL, blocks };
    const said = kind === "cut" ? "tho" : "thou";
    Object.assign(message.additional_kwargs, { reasoning_content: said, [THINKING_KEY]: signed });
    return message;
  });
}

const issued = new Map([["signed", "thou"]]);

describe("a request of whatever is stored", () => {
  it.each([false, true])("is one Anthropic takes, thinking %s", async (thinking) => {
    const kinds = fc.array(stored, { minLength: 1, maxLength: 4 });
    const history = fc.oneof(anyHistory, validHistory);
    const seen = { replayed: 0, on: 0, off: 0 };
    await fc.assert(
      fc.asyncProperty(history, kinds, tools, async (messages, thoughts, given) => {
        const repaired = repairMessages(withThinking(messages, thoughts));
        const body = await bodyOf({ messages: repaired, tools: given, thinking });
        expect(findAnthropicViolation(body, issued)).toBeUndefined();
        seen[body.thinking?.type === "adaptive" ? "on" : "off"] += 1;
        if (JSON.stringify(body.messages).includes("signed")) seen.replayed += 1;
      }),
      { numRuns: 200 },
    );
    if (thinking) expect(Math.min(seen.replayed, seen.on, seen.off)).toBeGreaterThan(5);
    else expect([seen.on, seen.replayed]).toEqual([0, 0]);
  });

  const human = new HumanMessage("go");
  const called = (id: string) =>
    new AIMessage({ content: "", tool_calls: [{ id, name: "bash", args: {}, type: "tool_call" }] });

  it("gives ids of other origin one that passes, the same for the call and its result", async () => {
    const since = [called("no id!"), new ToolMessage("a", "no id!"), called("töol"), new ToolMessage("b", "töol")];
    const body = await bodyOf({ messages: [human, ...since], tools: [] });
    expect(findAnthropicViolation(body, issued)).toBeUndefined();
    const ids = JSON.stringify(body.messages).match(/deputy-wire-id-\d/g);
    expect(ids).toEqual([1, 1, 2, 2].map((n) => `deputy-wire-id-${n}`));
  });

  it("joins what the user said in a row, and asks to go on where an answer stands last", async () => {
    const messages = [new SystemMessage("s"), human, new HumanMessage("and"), new AIMessage("done")];
    expect((await bodyOf({ messages, tools: [] })).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "go" },
          { type: "text", text: "and" },
        ],
      },
      { role: "assistant", content: [{ type: "text", text: "done" }] },
      { role: "user", content: "Go on." },
    ]);
  });

  it.each([
    [
      { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
      { media_type: "image/png", data: "AA==" },
    ],
    [
      { type: "image_url", image_url: "https://x.example/a.png" },
      { type: "url", url: "https://x.example/a.png" },
    ],
    [{ type: "image", mimeType: "image/gif", data: "AA==" }, { media_type: "image/gif" }],
    [{ type: "image", source: { type: "url", url: "https://x.example/b" } }, { url: "https://x.example/b" }],
  ])("sends the image %j", async (block, source) => {
    const body = await bodyOf({ messages: [new HumanMessage({ content: [block] })], tools: [] });
    expect(body.messages[0]!.content).toMatchObject([{ type: "image", source }]);
  });

  it.each([
    { type: "image_url", image_url: { url: "file:///etc/passwd" } },
    { type: "image", source: { type: "file", file_id: "f" } },
    { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
  ])("names what it cannot show, so that nothing stored poisons a thread: %j", async (block) => {
    const body = await bodyOf({ messages: [new HumanMessage({ content: [block] })], tools: [] });
    expect(body.messages[0]!.content).toEqual([
      { type: "text", text: expect.stringContaining(`"${block.type}"`) as string },
    ]);
  });
});
