import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { TokenCollector } from "../../../src/agent/subagents/token-collector.ts";
import { ReplyModel, textAnswer } from "../../support/reply-model.ts";

test("R63 an answer of a fallback model is counted under its own name, once, also when it comes back by the state", async () => {
  const answer = () => textAnswer("fine", { input: 3, output: 2 });
  const second = new ReplyModel(answer, "second");
  const asked = Object.assign(new ReplyModel(answer, "first"), { fallbacks: [second] });
  const tokens = new TokenCollector("child", "first");
  const [watched] = tokens.watch(asked).fallbacks ?? [];
  const given = await watched?.generate({ messages: [new HumanMessage("go")], tools: [] }, {});
  tokens.record(given ?? new AIMessage("none"));
  expect(tokens.records()).toEqual([
    {
      source_run_id: "second-1",
      caller: "subagent:child",
      model_name: "second",
      input_tokens: 3,
      output_tokens: 2,
      total_tokens: 5,
    },
  ]);
});
