/** The limit in the real chain: R41, R42, R48–R51, R56, R190. The lead's model says what the test plans. */
import { AIMessage, HumanMessage, isToolMessage } from "@langchain/core/messages";
import { z } from "zod";
import { describe, expect, test } from "vitest";
import { countRunDelegations } from "../../../src/domain/delegation/ledger.ts";
import { RUN_STOP_REASON_KEY } from "../../../src/domain/run/stop-reason.ts";
import { subagentLimit } from "../../../src/agent/hooks/subagent-limit.ts";
import { PRE_RUN_MESSAGE_IDS_KEY } from "../../../src/agent/graph/pre-run-messages.ts";
import { assembleLeadAgent } from "../../../src/agent/lead/assemble-lead-agent.ts";
import type { ThreadState } from "../../../src/agent/thread-state/thread-state.ts";
import type { BatchService } from "../../../src/agent/tools/batch-tools.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";
import { taskCalls } from "../../support/delegation-fixture.ts";
import { leadFixture, type LeadFixtureOptions } from "../../support/lead-fixture.ts";
import { catalogOf, promptOf, ReplyModel, textAnswer } from "../../support/reply-model.ts";

type Answers = readonly (() => AIMessage)[];

/** A lead that gives these answers, one a turn, then "done"; children answer at once. */
function planned(answers: Answers): ReplyModel {
  let turn = 0;
  return new ReplyModel((request) =>
    promptOf(request).startsWith("go") ? (answers[turn++] ?? (() => textAnswer("done")))() : textAnswer("found"),
  );
}

const tasks = (...ids: string[]) => taskCalls(...ids.map((id) => ({ id, prompt: `job ${id}` })));

interface RunOptions extends LeadFixtureOptions {
  readonly runId?: string | undefined;
}

function fixture(answers: Answers, options: RunOptions = {}) {
  const model = planned(answers);
  const lead = leadFixture({ ...options, models: catalogOf(model) });
  let runs = 0;
  return {
    ...lead,
    model,
    async run(runId: string | undefined): Promise<ThreadState> {
      const configurable = { ...lead.config.configurable, run_id: runId };
      const human = new HumanMessage({ id: `h${++runs}`, content: "go" });
      return lead.graph.invoke({ messages: [human] }, { configurable });
    },
  };
}

const answersOf = ({ messages }: ThreadState) => messages.filter((message) => AIMessage.isInstance(message));
const entriesOf = ({ delegations = [] }: ThreadState) => delegations.map(({ id, status }) => [id, status]);
const resultsOf = ({ messages }: ThreadState) => messages.filter(isToolMessage).map((message) => message.tool_call_id);

/** An answer as an OpenAI-like provider gives it: each call has a raw copy, and the finish reason names calls. */
function rawAnswer(calls: readonly { id: string; name: string; args: Record<string, unknown> }[], finish: string) {
  return new AIMessage({
    content: "I will look.",
    tool_calls: calls.map((call) => ({ ...call, type: "tool_call" as const })),
    additional_kwargs: {
      tool_calls: calls.map(({ id, name, args }) => ({
        id,
        type: "function" as const,
        function: { name, arguments: JSON.stringify(args) },
      })),
      function_call: { name: "task", arguments: "{}" },
    },
    response_metadata: { finish_reason: finish },
  });
}

const task = (id: string) => ({
  id,
  name: "task",
  args: { description: `do ${id}`, prompt: `job ${id}`, subagent_type: "general-purpose" },
});
const look = (id: string) => ({ id, name: "look", args: {} });

const looking = plainTool("look", (_args, { toolCallId }) => succeeded(`seen ${toolCallId}`), z.object({}));

describe("R41 the cap of a run", () => {
  test("counts the run's own delegations, whatever became of them; those of earlier runs do not count", async () => {
    const lead = fixture(
      [
        () => tasks("a1", "a2"),
        () => textAnswer("first run done"),
        () => taskCalls({ id: "b1", prompt: "job", type: "no-such-type" }),
        () => tasks("b2", "b3"),
      ],
      { configurable: { max_total_subagents: 2 } },
    );
    expect(entriesOf(await lead.run("run-1"))).toEqual([
      ["a1", "completed"],
      ["a2", "completed"],
    ]);
    const state = await lead.run("run-2");
    // b1 was refused before it ran and counts all the same; b2 is the second; b3 is cut and named.
    expect(entriesOf(state).slice(2)).toEqual([
      ["b1", "failed"],
      ["b2", "completed"],
    ]);
    expect(answersOf(state).find((answer) => answer.text.includes("NOT RUN"))?.text).toContain('"do b3"');
    expect(countRunDelegations(state.delegations ?? [], "run-2")).toBe(2);
  });

  test("concurrency: each cut call leaves every copy and the ledger, is named in one note, and uses no budget", async () => {
    const wide = ["c1", "c2", "c3", "c4", "c5"];
    const lead = fixture(
      [() => rawAnswer(wide.map(task), "tool_calls"), () => tasks("d1", "d2", "d3"), () => tasks("e1")],
      { configurable: { max_total_subagents: 6 } },
    );
    const state = await lead.run("run-1");
    const [first] = answersOf(state);
    expect(first?.tool_calls?.map((call) => call.id)).toEqual(["c1", "c2", "c3"]);
    expect(first?.additional_kwargs.tool_calls?.map((call) => call.id)).toEqual(["c1", "c2", "c3"]);
    expect(first?.response_metadata).toMatchObject({ finish_reason: "tool_calls" });
    expect(first?.text.match(/\[SUBAGENT CALLS NOT RUN\]/g)).toHaveLength(1);
    expect(first?.text).toContain('"do c4", "do c5"');
    expect(first?.text).not.toContain("do c3");
    expect(first?.additional_kwargs).not.toHaveProperty(RUN_STOP_REASON_KEY);
    // Three of six are used: the next three run, the seventh finds nothing left.
    expect(entriesOf(state).map(([id]) => id)).toEqual(["c1", "c2", "c3", "d1", "d2", "d3"]);
    expect(resultsOf(state)).toEqual(["c1", "c2", "c3", "d1", "d2", "d3"]);
    expect(answersOf(state).at(-1)?.text).toContain("[SUBAGENT LIMIT REACHED]");
  });
});

test("a cut call's name in the note never ends in half a character, which storage would replace", async () => {
  const hook = subagentLimit({ maxConcurrent: 1, maxTotal: 1 }, () => undefined);
  const long = { ...task("b"), args: { description: `${"x".repeat(79)}\u{1f600}\u{1f600}`, prompt: "p" } };
  const answer = rawAnswer([task("a"), long], "tool_calls");
  const outcome = await hook.afterModel?.(answer, { messages: [] }, { config: {}, runId: "r", agentName: "lead" });
  expect(outcome?.answer?.text).toContain(`"${"x".repeat(79)}\u{1f600}"`);
});

describe("R48 R49 R50 R51 no slots left", () => {
  const spent = { configurable: { max_total_subagents: 1 } };

  test("calls are stripped from every copy, the answer ends with `stop`, a note says why, the run's reason is marked", async () => {
    const state = await fixture([() => tasks("a"), () => rawAnswer([task("b"), task("c")], "tool_calls")], spent).run(
      "r",
    );
    const last = answersOf(state).at(-1);
    expect(last?.tool_calls).toEqual([]);
    expect(last?.additional_kwargs).not.toHaveProperty("tool_calls");
    expect(last?.additional_kwargs).not.toHaveProperty("function_call");
    expect(last?.response_metadata).toMatchObject({ finish_reason: "stop" });
    expect(last?.text).toMatch(/^I will look\.\n\n\[SUBAGENT LIMIT REACHED\].*subagent delegation limit of 1/);
    expect(last?.text).toContain('"do b", "do c"');
    expect(last?.additional_kwargs[RUN_STOP_REASON_KEY]).toBe("subagent_limit_capped");
    expect(entriesOf(state)).toEqual([["a", "completed"]]);
    expect(resultsOf(state)).toEqual(["a"]);
  });

  test("ordinary tools of the same answer still run, in their order, and the answer goes on", async () => {
    const mixed = () => rawAnswer([look("l1"), task("b"), look("l2"), task("c")], "tool_calls");
    const model = planned([() => tasks("a"), mixed]);
    const { options, config } = leadFixture({ ...spent, models: catalogOf(model) });
    const { graph } = assembleLeadAgent(config, { ...options, tools: [...options.tools, looking] });
    const human = new HumanMessage({ id: "h1", content: "go" });
    const state = (await graph.invoke({ messages: [human] }, config)) as unknown as ThreadState;
    const [, answer, last] = answersOf(state);
    expect(answer?.tool_calls?.map((call) => call.id)).toEqual(["l1", "l2"]);
    expect(answer?.additional_kwargs.tool_calls?.map((call) => call.id)).toEqual(["l1", "l2"]);
    expect(answer?.response_metadata).toMatchObject({ finish_reason: "tool_calls" });
    expect(answer?.additional_kwargs[RUN_STOP_REASON_KEY]).toBe("subagent_limit_capped");
    expect(state.messages.filter(isToolMessage).map((message) => message.text)).toEqual([
      expect.stringContaining("found"),
      "seen l1",
      "seen l2",
    ]);
    expect(last?.text).toBe("done");
  });

  test.each(["stop", "length", "content_filter", "TOOL_CALLS"])(
    "R50 a finish reason that was not exactly `tool_calls` stays: %s",
    async (finish) => {
      const state = await fixture([() => tasks("a"), () => rawAnswer([task("b")], finish)], spent).run("r");
      expect(answersOf(state).at(-1)?.response_metadata).toMatchObject({ finish_reason: finish });
    },
  );

  test("the next run has its own budget and no mark", async () => {
    const lead = fixture([() => tasks("a"), () => tasks("b"), () => tasks("c")], spent);
    await lead.run("run-1");
    const state = await lead.run("run-2");
    expect(entriesOf(state)).toEqual([
      ["a", "completed"],
      ["c", "completed"],
    ]);
    const [, capped, ...later] = answersOf(state);
    expect(capped?.additional_kwargs[RUN_STOP_REASON_KEY]).toBe("subagent_limit_capped");
    expect(later.every((answer) => answer.additional_kwargs[RUN_STOP_REASON_KEY] === undefined)).toBe(true);
  });
});

describe("R42 R56 batches", () => {
  function batches(submitted: unknown[]): BatchService {
    return {
      submit: async (submission: unknown) => {
        submitted.push(submission);
        return { ok: false, error: { code: "invalid_request", message: "not in this test" } };
      },
    } as unknown as BatchService;
  }

  const batchCall = (id: string) =>
    new AIMessage({
      content: "",
      tool_calls: [
        {
          id,
          name: "batch_task",
          type: "tool_call",
          args: { title: "t", subagent_type: "bash", items: [{ key: "k", prompt: "p" }] },
        },
      ],
    });

  test("R42 batch_task uses no delegation and gives none back", async () => {
    const submitted: unknown[] = [];
    const lead = fixture([() => batchCall("x1"), () => tasks("a"), () => batchCall("x2"), () => tasks("b")], {
      batches: batches(submitted),
      configurable: { max_total_subagents: 1 },
    });
    const state = await lead.run("r");
    expect(submitted).toHaveLength(2);
    expect(entriesOf(state)).toEqual([["a", "completed"]]);
    expect(answersOf(state).at(-1)?.text).toContain("[SUBAGENT LIMIT REACHED]");
  });

  test("R56 no number of task calls makes a batch", async () => {
    const submitted: unknown[] = [];
    const many = Array.from({ length: 40 }, (_, at) => `t${at}`);
    const state = await fixture([() => tasks(...many)], { batches: batches(submitted) }).run("r");
    expect(submitted).toEqual([]);
    expect(entriesOf(state)).toHaveLength(3);
  });
});

describe("R190 a run that nobody named", () => {
  test("counts everything the ledger holds, and says so once for each answer that asks", async () => {
    const told: unknown[] = [];
    const model = planned([() => tasks("a", "b"), () => textAnswer("over"), () => tasks("c", "d")]);
    const { options, config } = leadFixture({ models: catalogOf(model), configurable: { max_total_subagents: 3 } });
    const report = (what: string) => void told.push(what);
    const { graph } = assembleLeadAgent(config, { ...options, services: { ...options.services, report } });
    const run = async (id: string, runId: string | undefined) => {
      const human = new HumanMessage({ id, content: "go" });
      return (await graph.invoke(
        { messages: [human] },
        { configurable: { ...config.configurable, run_id: runId } },
      )) as unknown as ThreadState;
    };
    await run("h1", "run-1");
    expect(told).toEqual([]);
    const state = await run("h2", undefined);
    expect(told).toEqual([expect.stringMatching(/without a run_id.*all delegations/)]);
    expect(entriesOf(state).map(([id]) => id)).toEqual(["a", "b", "c"]);
    expect(state.delegations?.at(-1)).not.toHaveProperty("run_id");
  });

  test("an answer without `task` calls warns of nothing", async () => {
    let warnings = 0;
    const hook = subagentLimit({ maxConcurrent: 1, maxTotal: 1 }, () => (warnings += 1));
    const context = { config: {}, runId: undefined, agentName: "lead" };
    await hook.afterModel?.(rawAnswer([look("l")], "tool_calls"), { messages: [] }, context);
    expect(warnings).toBe(0);
  });
});

test("the key for what stood before a run is one that no client can set", () => {
  expect(PRE_RUN_MESSAGE_IDS_KEY.startsWith("deputy_")).toBe(true);
});
