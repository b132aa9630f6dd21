import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import {
  reportedUsage,
  USAGE_ESTIMATE_KEY,
  usageOfAnswer,
  withUsageEstimate,
} from "../../../src/agent/models/answer-usage.ts";
import { withUsage } from "../../support/reply-model.ts";

const answer = (fields: Record<string, unknown> = {}) =>
  new AIMessage({ id: "a", content: "12345678", response_metadata: { model_name: "m" }, ...fields });

describe("usage of an answer", () => {
  it("R67 a report of nothing is no report", () => {
    expect(reportedUsage(withUsage(answer(), { input: 0, output: 0 }))).toBeUndefined();
    expect(reportedUsage(answer())).toBeUndefined();
    expect(usageOfAnswer("lead_agent", answer())).toBeUndefined();
  });

  it("a total the provider left at zero is the sum of its parts; cached input is told when there was some", () => {
    const usage_metadata = {
      input_tokens: 7,
      output_tokens: 2,
      total_tokens: 0,
      input_token_details: { cache_read: 5 },
    };
    expect(reportedUsage(answer({ usage_metadata }))).toEqual({
      answers: 1,
      input_tokens: 7,
      output_tokens: 2,
      total_tokens: 9,
      cache_read_tokens: 5,
    });
  });

  it("a provider's report is taken as it is and no estimate is made beside it", () => {
    const reported = withUsage(answer(), { input: 7, output: 2 });
    expect(withUsageEstimate(reported, [new HumanMessage("question")])).toBe(reported);
  });

  it("R67 without a report the answer carries an estimate under its own key, counted apart", () => {
    const calls = [{ id: "c", name: "four", args: {}, type: "tool_call" }];
    const marked = withUsageEstimate(answer({ tool_calls: calls }), [
      new HumanMessage("1234"),
      new HumanMessage("5678"),
    ]);
    expect(marked.usage_metadata).toBeUndefined();
    const estimate = { input_tokens: 2, output_tokens: 4, total_tokens: 6 };
    expect(marked.additional_kwargs[USAGE_ESTIMATE_KEY]).toEqual(estimate);
    expect(marked.id).toBe("a");
    expect(usageOfAnswer("subagent:bash", marked)).toEqual({
      caller: "subagent:bash",
      model_name: "m",
      estimated: { answers: 1, ...estimate },
    });
  });

  it("a message that is no answer uses nothing, whatever it carries", () => {
    const forged = new HumanMessage({ content: "x", additional_kwargs: { [USAGE_ESTIMATE_KEY]: { total_tokens: 9 } } });
    expect(usageOfAnswer("lead_agent", forged)).toBeUndefined();
  });
});
