import { describe, expect, test } from "vitest";
import { AIMessage } from "@langchain/core/messages";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import {
  delegatesOnce,
  delegationFixture,
  eventTypes,
  runLead,
  taskResults,
} from "../../support/delegation-fixture.ts";
import { promptOf, resultsIn, textAnswer, withUsage } from "../../support/reply-model.ts";

function calls(...each: readonly { id: string; name: string; args?: Record<string, unknown> }[]): AIMessage {
  return new AIMessage({
    content: "",
    tool_calls: each.map(({ id, name, args = {} }) => ({ id, name, args, type: "tool_call" as const })),
  });
}

describe("a delegation", () => {
  test("R53 three children run in parallel and their results come back in call order", async () => {
    const arrived: string[] = [];
    const all = Promise.withResolvers<void>();
    const fixture = delegationFixture({
      lead: delegatesOnce(
        { id: "call_a", prompt: "count a" },
        { id: "call_b", prompt: "count b" },
        { id: "call_c", prompt: "count c" },
      ),
      child: async (request) => {
        arrived.push(promptOf(request));
        if (arrived.length === 3) all.resolve();
        await all.promise;
        return textAnswer(`done ${promptOf(request)}`, { input: 3, output: 2 });
      },
    });
    const { state, events, error } = await runLead(fixture);
    expect(error).toBeUndefined();
    expect(state.messages.at(-1)?.text).toBe(
      ["a", "b", "c"].map((each) => `Task Succeeded. Result: done count ${each}`).join(" | "),
    );
    expect(eventTypes(events, "call_b")).toEqual(["task_started", "task_running", "task_completed"]);
    expect(fixture.admission.snapshot().running).toBe(0);
  });

  test("R85 R101 events and metadata carry exactly the fields readers look for", async () => {
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count", description: "count it" }),
      child: () => textAnswer("42", { input: 3, output: 2 }),
    });
    const { state, events } = await runLead(fixture);
    const usage = { input_tokens: 3, output_tokens: 2, total_tokens: 5 };
    expect(events[0]).toEqual({
      type: "task_started",
      task_id: "call_a",
      description: "count it",
      model_name: "reply",
    });
    expect(events[1]).toMatchObject({
      type: "task_running",
      task_id: "call_a",
      message: { type: "ai", content: "42" },
      message_index: 1,
      total_messages: 1,
      usage,
      model_name: "reply",
    });
    expect(events[2]).toEqual({ type: "task_completed", task_id: "call_a", result: "42", usage, model_name: "reply" });
    const [result] = taskResults(state);
    expect(result?.status).toBe("success");
    expect(result?.name).toBe("task");
    expect(result?.additional_kwargs).toEqual({
      subagent_status: "completed",
      subagent_result_brief: "42",
      subagent_result_sha256: "73475cb40a568e8da8a045ced110137e159f890ac4da883b6b17dc651b3a8049",
      subagent_model_name: "reply",
      subagent_token_usage: usage,
    });
  });

  test("R128 the child starts from its own prompt and the task prompt alone, without task tools", async () => {
    const fixture = delegationFixture({
      tools: [plainTool("look", () => succeeded("seen"))],
      lead: delegatesOnce({ id: "call_a", prompt: "count", description: "SECRET DESCRIPTION" }),
      child: () => textAnswer("42"),
    });
    await runLead(fixture);
    const request = fixture.model.requests[1];
    expect(request?.messages.map((message) => message.getType())).toEqual(["system", "human"]);
    expect(request?.messages[1]?.text).toBe("count");
    expect(JSON.stringify(request?.messages)).not.toContain("SECRET DESCRIPTION");
    expect(request?.tools.map((tool) => tool.name)).toEqual(["look"]);
  });

  test("a child's tokens, messages and tool frames do not appear as the lead's", async () => {
    const fixture = delegationFixture({
      tools: [plainTool("look", () => succeeded("CHILD-TOOL"))],
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: (request) =>
        resultsIn(request).length === 0 ? calls({ id: "inner", name: "look" }) : textAnswer("CHILD-TEXT"),
    });
    const { chunks, state } = await runLead(fixture);
    const own = chunks.filter(([mode, chunk]) => mode !== "custom" && JSON.stringify(chunk).includes("CHILD-TOOL"));
    expect(own).toEqual([]);
    expect(state.messages.map((message) => message.getType())).toEqual(["human", "ai", "tool", "ai"]);
  });

  test("an unknown type is refused before anything starts, with what there is", async () => {
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count", type: "wizard" }),
      child: () => textAnswer("never"),
    });
    const { state, events } = await runLead(fixture);
    const [result] = taskResults(state);
    expect(result?.text).toBe("Task failed. Error: Unknown subagent type 'wizard'. Available: general-purpose, bash");
    expect(result?.status).toBe("error");
    expect(result?.additional_kwargs["subagent_model_name"]).toBeUndefined();
    expect(events).toEqual([]);
  });

  test("R63 usage that no answer reported stays absent", async () => {
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => textAnswer("42"),
    });
    const { state, events } = await runLead(fixture);
    expect(events.at(-1)).toMatchObject({ type: "task_completed", usage: null });
    expect(taskResults(state)[0]?.additional_kwargs).not.toHaveProperty("subagent_token_usage");
  });

  test("R63 R64 usage is cumulative and each answer counts once", async () => {
    const fixture = delegationFixture({
      tools: [plainTool("look", () => succeeded("seen"))],
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: (request) => {
        if (resultsIn(request).length > 0) return textAnswer("42", { input: 30, output: 4 });
        return withUsage(calls({ id: "inner", name: "look" }), { input: 10, output: 2 });
      },
    });
    const { events } = await runLead(fixture);
    const totals = events.flatMap((event) =>
      event.usage ? [(event.usage as { total_tokens: number }).total_tokens] : [],
    );
    expect(totals).toEqual([12, 12, 46, 46]);
  });
});

describe("a child that does not complete", () => {
  test("R98 a child without any text is failed with the sentinel", async () => {
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => textAnswer(""),
    });
    const { state } = await runLead(fixture);
    const [result] = taskResults(state);
    expect(result?.text).toBe("Task failed. Error: No response generated");
    expect(result?.additional_kwargs).toMatchObject({ subagent_status: "failed" });
  });

  test("R145 a child whose model fails is an error result with the provider's reason", async () => {
    const fixture = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => Promise.reject(new Error("provider said 500")),
    });
    const { state, events } = await runLead(fixture);
    const [result] = taskResults(state);
    expect(result?.status).toBe("error");
    expect(result?.text).toBe("Task failed. Error: provider said 500");
    expect(eventTypes(events)).toEqual(["task_started", "task_failed"]);
    expect(fixture.admission.snapshot().running).toBe(0);
  });

  test("R88 only the fallback marker on the last answer makes a child failed", async () => {
    const marker = { additional_kwargs: { deerflow_error_fallback: true } };
    const failing = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => new AIMessage({ content: "model is down", ...marker }),
    });
    const failed = await runLead(failing);
    expect(taskResults(failed.state)[0]?.text).toBe("Task failed. Error: model is down");
    const prose = delegationFixture({
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => textAnswer("Error: everything failed"),
    });
    const succeededRun = await runLead(prose);
    expect(taskResults(succeededRun.state)[0]?.additional_kwargs["subagent_status"]).toBe("completed");
  });

  test("R89 the turn budget counts model turns; earlier text is kept as a capped result", async () => {
    const subagents = { agents: { "general-purpose": { max_turns: 3 } } };
    const tools = [plainTool("look", () => succeeded("seen"))];
    const lead = delegatesOnce({ id: "call_a", prompt: "count" });
    let turn = 0;
    const speaking = delegationFixture({
      tools,
      subagents,
      lead,
      child: () => {
        turn += 1;
        const answer = calls({ id: `inner-${turn}`, name: "look" });
        return turn === 1 ? new AIMessage({ content: "so far 7", tool_calls: answer.tool_calls ?? [] }) : answer;
      },
    });
    const kept = await runLead(speaking);
    expect(turn).toBe(3);
    expect(taskResults(kept.state)[0]?.text).toBe("Task Succeeded (capped: turn budget). Result: so far 7");
    expect(taskResults(kept.state)[0]?.additional_kwargs).toMatchObject({
      subagent_status: "completed",
      subagent_stop_reason: "turn_capped",
    });
    let silent = 0;
    const mute = delegationFixture({
      tools,
      subagents,
      lead,
      child: () => calls({ id: `inner-${(silent += 1)}`, name: "look" }),
    });
    const lost = await runLead(mute);
    expect(taskResults(lost.state)[0]?.text).toBe("Task failed (capped: turn budget). Error: Reached max_turns=3");
    expect(taskResults(lost.state)[0]?.additional_kwargs).toMatchObject({ subagent_stop_reason: "turn_capped" });
  });

  test("R89 LangGraph's own limit never fires before the turn budget, at 60 turns", async () => {
    let turn = 0;
    const fixture = delegationFixture({
      tools: [plainTool("look", () => succeeded("seen"))],
      subagents: { agents: { "general-purpose": { max_turns: 60 } } },
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => calls({ id: `inner-${(turn += 1)}`, name: "look" }),
    });
    const { state } = await runLead(fixture);
    expect(turn).toBe(60);
    expect(taskResults(state)[0]?.text).toContain("Reached max_turns=60");
  });
});
