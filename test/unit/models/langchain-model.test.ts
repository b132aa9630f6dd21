import { ChatAnthropic } from "@langchain/anthropic";
import { AIMessageChunk, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { ChatGenerationChunk } from "@langchain/core/outputs";
import { tool } from "@langchain/core/tools";
import { FakeStreamingChatModel } from "@langchain/core/utils/testing";
import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI, ChatOpenAICompletions } from "@langchain/openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createDeputyAgent, SubagentRuntime } from "../../../src/agent/embedding.ts";
import { fromLangChainModel } from "../../../src/agent/models/langchain-model.ts";
import { ModelFailure } from "../../../src/agent/models/model.ts";
import { startAnthropicServer, type AnthropicServer } from "../../support/anthropic-server.ts";
import { startModelServer, type ModelServer } from "../../support/model-server.ts";

let openai: ModelServer;
let anthropic: AnthropicServer;
beforeAll(async () => {
  [openai, anthropic] = await Promise.all([startModelServer(), startAnthropicServer()]);
});
afterAll(() => Promise.all([openai.close(), anthropic.close()]));

const now = tool(async () => "noon", { name: "now", description: "The time.", schema: z.object({}) });
const input = (text: string) => ({ messages: [new HumanMessage(text)] });
const fields = () => ({
  model: "gpt-4.1-mini",
  apiKey: "k",
  maxRetries: 0,
  configuration: { baseURL: openai.url },
});
const claude = (more: object = {}) =>
  new ChatAnthropic({ model: "claude-x", apiKey: "k", maxRetries: 0, anthropicApiUrl: anthropic.url, ...more });

const DELEGATES = `@ & delegate general-purpose :: One :: <<'ONE'
@ call now {}
@ say one at {{result:1}}
ONE
@ & delegate general-purpose :: Two :: @ say two
@ say done: {{result:1:word after one }}`;

describe("real adapters of LangChain's against strict servers", () => {
  it.each([
    ["ChatOpenAI", () => new ChatOpenAI(fields())],
    ["ChatOpenAICompletions", () => new ChatOpenAICompletions(fields())],
    ["ChatAnthropic", () => claude()],
  ])("R34 %s delegates, and no request of it or of its children is one a provider refuses", async (_name, create) => {
    const model = create();
    const agent = createDeputyAgent({
      model,
      tools: [now],
      subagentRuntime: new SubagentRuntime(),
      checkpointer: new MemorySaver(),
    });
    const thread = { configurable: { thread_id: "t" } };
    const { messages, delegations } = await agent.invoke(input(DELEGATES), thread);
    expect(messages.at(-1)?.text).toBe("done: at");
    expect(delegations?.map(({ status }) => status)).toEqual(["completed", "completed"]);
    expect((await agent.invoke(input("@ say again"), thread)).messages.at(-1)?.text).toBe("again");
    expect([...openai.violations, ...anthropic.violations]).toEqual([]);
    expect(agent.descriptor.model).toBe(model.model);
  });

  it("an answer that only calls goes out without a text, not with an empty one", async () => {
    await createDeputyAgent({ model: new ChatOpenAI(fields()), tools: [now] }).invoke(input("@ call now {}\n@ say ok"));
    const sent = openai.requests.at(-1)?.messages as readonly { role: string; content: unknown }[];
    expect(sent.map(({ role, content }) => [role, content])).toContainEqual(["assistant", null]);
  });

  it("thinking that Anthropic signed comes back with its calls, and is no part of an answer", async () => {
    const model = claude({ maxTokens: 4_000, thinking: { type: "enabled", budget_tokens: 2_000 } });
    const script = "@ quirk thinking\n@ call now {}\n@ call now {}\n@ say it is {{result:1}}";
    const { messages } = await createDeputyAgent({ model, tools: [now] }).invoke(input(script));
    expect(messages.at(-1)?.content).toBe("it is noon");
    expect(anthropic.violations).toEqual([]);
    const [, called] = anthropic.requests.at(-1)?.messages ?? [];
    expect(called?.content).toMatchObject([{ type: "thinking" }, { type: "tool_use" }]);
  });
});

const ports = { newId: () => "ours", random: () => 0.5 };
/** LangChain's own fake leaves ids and metadata out. */
const streaming = (...chunks: AIMessageChunk[]) => {
  class Streaming extends FakeStreamingChatModel {
    override async *_streamResponseChunks() {
      for (const message of chunks) yield new ChatGenerationChunk({ message, text: message.text });
    }
  }
  return fromLangChainModel(new Streaming({}), ports);
};
const ask = (model: ReturnType<typeof fromLangChainModel>, ...more: BaseMessage[]) =>
  model.generate({ messages: [new HumanMessage("go"), ...more], tools: [] }, {});

describe("what a LangChain model leaves open", () => {
  it("P1 an id that a message of the conversation has is not taken again: the earlier answer would be replaced", async () => {
    const same = () => streaming(new AIMessageChunk({ id: "chatcmpl-same", content: "text" }));
    const first = await ask(same());
    expect(first.id).toBe("chatcmpl-same");
    expect((await ask(same(), first, new HumanMessage("on"))).id).toBe("ours");
  });

  it("a call without arguments has none; one that was cut is not run with none", async () => {
    const calling = (stop_reason: string) =>
      streaming(
        new AIMessageChunk({
          content: "",
          tool_call_chunks: [{ name: "now", args: "", id: "a", index: 0 }],
          response_metadata: { stop_reason },
        }),
      );
    expect((await ask(calling("tool_use"))).additional_kwargs["deputy_invalid_tool_calls"]).toBeUndefined();
    expect((await ask(calling("max_tokens"))).additional_kwargs["deputy_invalid_tool_calls"]).toBeDefined();
  });

  it("an answer without end is cut off (P8)", async () => {
    const chunk = new AIMessageChunk({ content: "x".repeat(1_500_000) });
    await expect(ask(streaming(chunk, chunk, chunk))).rejects.toMatchObject({ reason: "stream_error" });
  });

  it("what it throws is a failure of the model, with how long its provider asks to wait", async () => {
    const throwing = (error: unknown) => {
      class Throwing extends FakeStreamingChatModel {
        // oxlint-disable-next-line require-yield -- it fails before its first chunk
        override async *_streamResponseChunks(): AsyncGenerator<never> {
          throw error;
        }
      }
      return ask(fromLangChainModel(new Throwing({}), ports));
    };
    await expect(throwing("plain words")).rejects.toBeInstanceOf(ModelFailure);
    const busy = Object.assign(new Error("busy"), { status: 429, headers: new Headers({ "retry-after": "7" }) });
    await expect(throwing(busy)).rejects.toMatchObject({ status: 429, retryAfterMs: 7_000 });
  });
});
