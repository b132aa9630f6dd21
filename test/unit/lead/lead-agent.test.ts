import { HumanMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import { catalogOf, ReplyModel, textAnswer } from "../../support/reply-model.ts";
import { leadFixture, type LeadFixtureOptions } from "../../support/lead-fixture.ts";

const BACK_QUOTE = "`";

async function ask(prompt: string, options: LeadFixtureOptions = {}) {
  const lead = leadFixture(options);
  const input = { messages: [new HumanMessage({ id: "h1", content: prompt })] };
  const state = (await lead.graph.invoke(input, {
    ...lead.config,
    recursionLimit: 2 * lead.descriptor.maxTurns + 2,
  })) as unknown as ThreadState;
  return { ...lead, state, answer: state.messages.at(-1)?.text ?? "" };
}

describe("the assembled lead", () => {
  test("delegates to two subagents that really compute, and answers from their results", async () => {
    const script = [
      "@ & delegate bash :: Sum the north :: <<'NORTH'",
      "Sum the sales of the north.",
      '@ call bash {"command": "echo $((20 + 22))"}',
      "@ say north total: {{result:1}}",
      "NORTH",
      "@ & delegate general-purpose :: Sum the south :: <<'SOUTH'",
      "Sum the sales of the south.",
      '@ call bash {"command": "echo $((3 + 4))"}',
      "@ say south total: {{result:1}}",
      "SOUTH",
      "@ say {{result:1:word after total: }} and {{result:2:word after total: }}",
    ].join("\n");
    const { answer, state, admission } = await ask(script);
    expect(answer).toBe("42 and 7");
    expect(state.delegations).toMatchObject([
      { subagent_type: "bash", status: "completed", run_id: "run-1", description: "Sum the north" },
      { subagent_type: "general-purpose", status: "completed", run_id: "run-1" },
    ]);
    expect(state.delegations?.[0]?.result_brief).toContain("north total: 42");
    expect(state.delegations?.[0]?.result_sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(admission.snapshot().running).toBe(0);
  });

  test("R167 has workspace tools and task; the descriptor tells what the graph has", () => {
    const { descriptor } = leadFixture();
    expect(descriptor.tools).toEqual([
      "bash",
      "ls",
      "read_file",
      "write_file",
      "str_replace",
      "ask_clarification",
      "task",
    ]);
    expect(descriptor.hooks).toEqual([
      "tool_errors",
      "request_repair",
      "model_errors",
      "authorization",
      "delegation_ledger",
      "system_coalescer",
      "subagent_limit",
    ]);
    expect(descriptor).toMatchObject({
      model: "scripted",
      subagents: ["general-purpose", "bash"],
      limits: { maxConcurrent: 3, maxTotal: 6 },
      maxTurns: 100,
    });
  });

  test("gives a graph that answers", async () => {
    const { config, options } = leadFixture();
    const graph = assembleLeadAgent(config, options).graph;
    const input = { messages: [new HumanMessage({ id: "h1", content: "@ say plain" })] };
    const state = (await graph.invoke(input, config)) as unknown as ThreadState;
    expect(state.messages.at(-1)?.text).toBe("plain");
  });

  test("a run's options are clamped to what the deployment can do", () => {
    const wide = { max_concurrent_subagents: 500, max_total_subagents: 500 };
    expect(leadFixture({ configurable: wide }).descriptor.limits).toEqual({ maxConcurrent: 3, maxTotal: 50 });
    const narrow = { max_concurrent_subagents: 0, max_total_subagents: 2 };
    expect(leadFixture({ configurable: narrow }).descriptor.limits).toEqual({ maxConcurrent: 1, maxTotal: 2 });
    expect(leadFixture({ recursionLimit: 25 }).descriptor.maxTurns).toBe(12);
    expect(leadFixture({ recursionLimit: 5_000 }).descriptor.maxTurns).toBe(100);
  });

  test("with one call an answer the task tool, too, speaks of nothing parallel", async () => {
    const requests: ModelRequest[] = [];
    const model = new ReplyModel((request) => {
      requests.push(request);
      return textAnswer("done");
    });
    const models = catalogOf(model);
    await ask("go", { models, configurable: { max_concurrent_subagents: 1 } });
    await ask("go", { models });
    const [single, several] = requests.map((each) => JSON.stringify([each.tools, each.messages[0]?.text]));
    expect(single).not.toMatch(/parallel|first group|next group|same time/i);
    expect(several).toMatch(/parallel/);
  });

  test("delegation switched off, or nothing allowed, leaves neither tool nor guidance", () => {
    for (const options of [{ configurable: { subagent_enabled: false } }, { allowedSubagents: [] }]) {
      const { descriptor } = leadFixture(options);
      expect(descriptor.tools).not.toContain("task");
      expect(descriptor.hooks).not.toContain("subagent_limit");
    }
  });

  test("an operator's deny list holds for the lead and its children", async () => {
    const deputy = { tools: { deny: ["write_file"] } };
    expect(leadFixture({ deputy }).descriptor.tools).not.toContain("write_file");
    const script = [
      "@ delegate general-purpose :: Write it :: <<'JOB'",
      '@ call write_file {"path": "a.txt", "content": "x"}',
      "@ say {{result:1}}",
      "JOB",
      "@ say {{result:1}}",
    ].join("\n");
    expect((await ask(script, { deputy })).answer).toContain("you may not use the tool 'write_file'");
  });
});

describe("limits in the real chain", () => {
  const delegate = (count: number) =>
    Array.from({ length: count }, (_, at) => `@ & delegate bash :: job ${at} :: say nothing ${at}`);

  test("calls past one answer's limit are cut, named in a note, and never reach ledger or children", async () => {
    const { state } = await ask([...delegate(5), "@ say done"].join("\n"));
    const first = state.messages.find((message) => message.getType() === "ai");
    expect(first?.text).toContain("[SUBAGENT CALLS NOT RUN]");
    expect(first?.text).toContain('"job 3", "job 4"');
    expect(state.messages.filter((message) => message.getType() === "tool")).toHaveLength(3);
    expect(state.delegations?.map((entry) => entry.description)).toEqual(["job 0", "job 1", "job 2"]);
  });

  test("a spent run ends with the note that readers look for", async () => {
    const { state, answer } = await ask([...delegate(3), "@ say between", ...delegate(3), ...delegate(1)].join("\n"), {
      configurable: { max_total_subagents: 3 },
    });
    expect(answer).toBe("between");
    const again = await ask(
      [...delegate(3), `@ & delegate bash :: one more :: too much`].map((line) => line.replace("& ", "")).join("\n"),
      { configurable: { max_total_subagents: 3 } },
    );
    expect(again.answer).toContain("[SUBAGENT LIMIT REACHED]");
    expect(again.answer).toContain("subagent delegation limit");
    expect(again.answer).toContain('"one more"');
    expect(again.state.delegations).toHaveLength(3);
    expect(state.delegations).toHaveLength(3);
  });
});

test("a `task` call with bad arguments is a failed delegation with metadata, not a dangling ledger entry", async () => {
  const { state } = await ask(`@ call task {"description": "half"}\n@ say ${BACK_QUOTE}done${BACK_QUOTE}`);
  const [result] = state.messages.filter((message) => message.getType() === "tool");
  expect(result?.additional_kwargs).toMatchObject({ subagent_status: "failed" });
  expect(state.delegations).toMatchObject([{ description: "half", status: "failed" }]);
});
