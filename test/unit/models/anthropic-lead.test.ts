/** A whole lead with a child over Anthropic's API: who thinks, and where the thinking is not. */
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { DeputyConfigInput } from "../../../src/config.ts";
import { parseDeputyConfig } from "../../../src/config.ts";
import { createModelCatalog } from "../../../src/agent/models/catalog.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import { countedIds } from "../../support/agent-fixture.ts";
import { THINKING_MARK } from "../../support/anthropic-frames.ts";
import { type AnthropicServer, startAnthropicServer } from "../../support/anthropic-server.ts";
import { leadFixture } from "../../support/lead-fixture.ts";

let server: AnthropicServer;

beforeEach(async () => {
  server = await startAnthropicServer();
});

afterEach(async () => {
  await server.close();
  expect(server.violations).toEqual([]);
});

const SCRIPT = [
  '@ & call bash {"command": "echo $((20 + 22))"}',
  "@ & delegate general-purpose :: north :: <<'NORTH'",
  "The north job.",
  '@ call bash {"command": "echo $((3 + 4))"}',
  "@ say north {{result:1:line 1}}",
  "NORTH",
  "@ say {{result:1:line 1}} and {{result:2:word after north }}",
].join("\n");

async function run(configurable: Record<string, unknown>, model: object = { thinking: true }) {
  const models = [{ name: "claude", provider: "anthropic", vision: true, ...model }] as DeputyConfigInput["models"];
  const catalog = createModelCatalog({
    models: parseDeputyConfig({ models }).models,
    credentials: { anthropicApiKey: "k", anthropicBaseUrl: server.url, anthropicModel: "claude-test" },
    newId: countedIds("message"),
    random: Math.random,
    now: Date.now,
    modelIdleMs: 5_000,
  });
  const lead = leadFixture({ deputy: { models }, models: catalog, configurable });
  const input = { messages: [new HumanMessage({ id: "h1", content: SCRIPT })] };
  const stream = await lead.graph.stream(input, { ...lead.config, streamMode: ["custom", "messages"] });
  const events: string[] = [];
  const shown: string[] = [];
  for await (const [mode, chunk] of stream as AsyncIterable<[string, unknown]>) {
    if (mode === "custom") events.push(JSON.stringify(chunk));
    else shown.push((chunk as [AIMessage])[0].text);
  }
  const { messages } = (await lead.graph.getState(lead.config)).values as ThreadState;
  return { messages, events, shown, descriptor: lead.descriptor };
}

const isChild = ({ messages }: AnthropicServer["requests"][number]) =>
  JSON.stringify(messages[0]!.content).includes('"The north job.');
const modesOf = (requests: readonly AnthropicServer["requests"][number][]) =>
  requests.map(({ thinking }) => thinking?.type);

describe("a lead over Anthropic", () => {
  test.each([{ thinking_enabled: true }, {}])(
    "R186 thinks, with %j; its child never does, and no thinking is an answer or a result",
    async (asked) => {
      const { messages, events, shown, descriptor } = await run(asked);
      expect(messages.at(-1)!.text).toBe("42 and 7");
      expect(modesOf(server.requests.filter((request) => !isChild(request)))).toEqual(["adaptive", "adaptive"]);
      expect(modesOf(server.requests.filter(isChild))).toEqual(["disabled", "disabled"]);
      expect(descriptor.thinking).toBe(true);
      expect(messages.map((message) => message.text).join()).not.toContain(THINKING_MARK);
      expect([...events, ...shown].join()).not.toContain(THINKING_MARK);
      const thought = messages.filter((message) => AIMessage.isInstance(message));
      expect(thought.map((message) => message.additional_kwargs["reasoning_content"])).toEqual([
        expect.stringContaining(THINKING_MARK),
        expect.stringContaining(THINKING_MARK),
      ]);
    },
  );

  test.each([
    ["is asked not to", { thinking_enabled: false }, { thinking: true }],
    ["is not asked, with a model without the flag", {}, { thinking: false }],
    ["is asked to with a model without the flag", { thinking_enabled: true }, { thinking: false }],
  ])("R186 does not think when it %s, and its descriptor says so", async (_what, configurable, model) => {
    const { messages, descriptor } = await run(configurable, model);
    expect(messages.at(-1)!.text).toBe("42 and 7");
    expect(new Set(modesOf(server.requests))).toEqual(new Set(["disabled"]));
    expect(descriptor.thinking).toBe(false);
  });
});
