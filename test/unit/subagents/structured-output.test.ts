import { AIMessage, isHumanMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import type { AgentHook } from "../../../src/agent/hooks/hook.ts";
import { toolErrorsHook } from "../../../src/agent/hooks/tool-errors.ts";
import { INVALID_CALLS_KEY } from "../../../src/agent/models/model-answer.ts";
import type { SubagentRequest, SubagentRun } from "../../../src/agent/subagents/provider.ts";
import { forkProvider } from "../../../src/agent/subagents/providers/fork.ts";
import { spawnProvider } from "../../../src/agent/subagents/providers/spawn.ts";
import { SubagentService } from "../../../src/agent/subagents/subagent-service.ts";
import type { Tool } from "../../../src/agent/tools/tool.ts";
import {
  agentFixture,
  countedIds,
  fixtureServices,
  humanInput,
  plainTool,
  runConfig,
  succeeded,
  toolResults,
} from "../../support/agent-fixture.ts";
import { gate } from "../../support/child-plan.ts";
import { callsAnswer, type PlannedCall } from "../../support/fake-chat-model.ts";
import { ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

const SCHEMA = {
  type: "object",
  properties: { answer: { type: "integer" }, why: { type: "string" } },
  required: ["answer"],
  additionalProperties: false,
};
const REPORT = "structured_output";

const reports = (args: Record<string, unknown>, id = "report"): PlannedCall => ({ id, name: REPORT, args });
const calls = (...planned: readonly PlannedCall[]) => callsAnswer(planned);

interface ChildMore extends Partial<SubagentRequest> {
  readonly tools?: readonly Tool[];
  readonly hooks?: readonly AgentHook[];
  readonly maxTurns?: number;
}

/** A child that gives these answers in their order, and fails when it is asked for more. */
function childOf(answers: readonly AIMessage[], more: ChildMore = {}) {
  const { tools = [], hooks = [], maxTurns = 20, ...rest } = more;
  let at = 0;
  const model = new ReplyModel(() => {
    const answer = answers[at];
    at += 1;
    if (answer === undefined) throw new Error(`turn ${at} was not planned`);
    return answer;
  });
  const request: SubagentRequest = {
    id: "child-1",
    prompt: "work",
    agent: { name: "worker", systemPrompt: "You are a worker.", model, tools, hooks, maxTurns },
    parent: { name: "lead", depth: 0, config: {}, services: fixtureServices(), checkpointer: false },
    signal: new AbortController().signal,
    outputSchema: SCHEMA,
    ...rest,
  };
  return { request, asked: model.requests };
}

function seam() {
  const service = new SubagentService({ newId: countedIds("run"), reportFault: () => {} });
  service.register(spawnProvider());
  service.register(forkProvider());
  return service;
}

async function finish(answers: readonly AIMessage[], more: ChildMore = {}, provider = "spawn") {
  const child = childOf(answers, more);
  const run = await seam().start(provider, child.request);
  const result = await run.result;
  await run.dispose();
  return { ...result, asked: child.asked };
}

const ran: string[] = [];
const act = plainTool("act", (_args, { toolCallId }) => (ran.push(toolCallId), succeeded("acted")));

describe("R144 a structured answer", () => {
  test.each(["spawn", "fork"])(
    "of %s is the reported value, and ends the turn without another request",
    async (name) => {
      const end = await finish([calls(reports({ answer: 42 }))], {}, name);
      expect(end).toMatchObject({ stopReason: "completed", structured: { answer: 42 } });
      expect(end.asked).toHaveLength(1);
    },
  );

  test("is asked for by a tool of the schema and a note behind the child's own prompt", async () => {
    const { asked } = await finish([calls(reports({ answer: 42 }))], { tools: [act], toolFilter: { allow: [] } });
    expect(asked[0]?.tools).toEqual([expect.objectContaining({ name: REPORT, parameters: SCHEMA })]);
    expect(asked[0]?.messages[0]?.text).toMatch(/^You are a worker\.\n\n<structured_output>[^]*<\/structured_output>$/);
  });

  test("is asked of nobody else: a child without a schema has neither tool nor note, nor a structured result", async () => {
    const { asked, ...result } = await finish([textAnswer("42")], { outputSchema: undefined, tools: [act] });
    expect(asked[0]?.tools.map(({ name }) => name)).toEqual(["act"]);
    expect(asked[0]?.messages[0]?.text).toBe("You are a worker.");
    expect(Object.keys(result)).not.toContain("structured");
  });

  test("R141 an empty persona leaves the note alone", async () => {
    const { asked } = await finish([calls(reports({ answer: 42 }))], { persona: "" });
    expect(asked[0]?.messages[0]?.text).toMatch(/^<structured_output>/);
  });

  test("that does not fit is an error result with every violation, and the child corrects it in the same run", async () => {
    const end = await finish([calls(reports({ answer: "x", more: 1 })), calls(reports({ answer: 7 }, "again"))]);
    const [refused] = resultsIn(end.asked[1] as never);
    expect(refused?.status).toBe("error");
    expect(refused?.text).toMatch(/\/answer: .*integer.*\/more: /s);
    expect(end).toMatchObject({ stopReason: "completed", structured: { answer: 7 } });
  });

  test("given as prose is an error, after exactly one request and without a nudge", async () => {
    const end = await finish([textAnswer("The answer is 42")]);
    expect(end).toMatchObject({ stopReason: "error", output: [{ text: "The answer is 42" }] });
    expect(end.diagnostic).toMatch(/without reporting an answer/);
    expect(end).not.toHaveProperty("structured");
    expect(end.asked).toHaveLength(1);
    expect(end.asked[0]?.messages.filter(isHumanMessage)).toHaveLength(1);
  });

  test("R138 cannot be asked for by a schema outside of the subset, and its every violation is named", async () => {
    const outputSchema = { type: "object", properties: { a: { type: "string", minLength: 1 }, b: { type: "x" } } };
    const { request, asked } = childOf([calls(reports({}))], { outputSchema });
    await expect(seam().start("spawn", request)).rejects.toMatchObject({
      code: "UNSUPPORTED_SCHEMA",
      message: expect.stringMatching(/\/properties\/a: .*minLength.*\n\/properties\/b: /),
    });
    expect(asked).toHaveLength(0);
  });

  test("R139 cannot be reported where the child has a tool of that name, unless it is filtered away", async () => {
    const own = plainTool(REPORT, () => succeeded("mine"));
    const { request, asked } = childOf([], { tools: [own] });
    await expect(seam().start("spawn", request)).rejects.toThrow(/'worker' has a tool 'structured_output' of its own/);
    expect(asked).toHaveLength(0);
    const end = await finish([calls(reports({ answer: 1 }))], { tools: [own], toolFilter: { deny: [REPORT] } });
    expect(end.structured).toEqual({ answer: 1 });
  });

  test("of two children at once is each one's own, by each one's own schema", async () => {
    const service = seam();
    const other = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const both = [
      childOf([calls(reports({ answer: 1 }))]),
      childOf([calls(reports({ name: "b" }))], { outputSchema: other }),
    ];
    const runs = await Promise.all(both.map(({ request }) => service.start("spawn", request)));
    const results = await Promise.all(runs.map((run) => run.result));
    expect(results.map(({ structured }) => structured)).toEqual([{ answer: 1 }, { name: "b" }]);
    expect(both.map(({ asked }) => asked[0]?.tools[0]?.parameters)).toEqual([SCHEMA, other]);
    await Promise.all(runs.map((run) => run.dispose()));
  });
});

describe("R144 a structured answer and the other calls of its message", () => {
  test("calls before it run, calls after it do not, a second answer included", async () => {
    ran.length = 0;
    const answer = calls(
      { id: "before", name: "act" },
      reports({ answer: 1 }),
      { id: "after", name: "act" },
      reports({ answer: 2 }, "second"),
    );
    const told: ToolMessage[] = [];
    const end = await finish([answer], {
      tools: [act],
      onMessage: (message) => void (ToolMessage.isInstance(message) && told.push(message)),
    });
    expect(end).toMatchObject({ stopReason: "completed", structured: { answer: 1 } });
    expect([ran, end.asked.length]).toEqual([["before"], 1]);
    const statuses = Object.fromEntries(told.map((each) => [each.tool_call_id, each.status ?? "success"]));
    expect(statuses).toEqual({ before: "success", report: "success", after: "error", second: "error" });
  });

  test("calls after one that does not fit, or did not parse, run", async () => {
    ran.length = 0;
    const unparsed = calls(reports({}, "unparsed"), { id: "c", name: "act" });
    unparsed.additional_kwargs[INVALID_CALLS_KEY] = { unparsed: { raw: "{", error: "cut" } };
    const end = await finish(
      [calls(reports({ answer: "x" }, "bad"), { id: "a", name: "act" }), unparsed, calls(reports({ answer: 3 }))],
      { tools: [act], outputSchema: { ...SCHEMA, required: [] } },
    );
    expect(ran).toEqual(["a", "c"]);
    expect(end.structured).toEqual({ answer: 3 });
  });

  test("it does not count before its step commits: a child cancelled while a sibling runs has none", async () => {
    const held = gate();
    const hold = plainTool("hold", async () => (await held.pass(), succeeded("held")));
    const reported = Promise.withResolvers<void>();
    const { request } = childOf([calls({ id: "slow", name: "hold" }, reports({ answer: 1 }))], {
      tools: [hold],
      onMessage: (message) => void (ToolMessage.isInstance(message) && reported.resolve()),
    });
    const run = await seam().start("spawn", request);
    await Promise.all([held.reached, reported.promise]);
    run.cancel();
    const result = await run.result;
    expect(result.stopReason).toBe("aborted");
    expect(result).not.toHaveProperty("structured");
    held.open();
    await run.dispose();
  });
});

/** A policy around the report, as a hook of the child's. */
function policy(
  decide: (attempt: number, execute: () => Promise<ToolMessage>, id: string) => Promise<ToolMessage>,
): AgentHook {
  let attempt = 0;
  return {
    name: "policy",
    wrapToolCall: async (request, next) => {
      if (request.call.name !== REPORT) return next(request);
      attempt += 1;
      return { message: await decide(attempt, async () => (await next(request)).message, request.call.id) };
    },
  };
}

const verdict = (id: string, status: "error" | "success", content = status as string) =>
  new ToolMessage({ tool_call_id: id, name: REPORT, status, content });

describe("R144 a structured answer counts once its call's final result is a success", () => {
  test("one that a policy turns down after it ran is discarded, and the child may answer again", async () => {
    const blockFirst = policy(async (attempt, execute, id) => {
      const result = await execute();
      return attempt === 1 ? verdict(id, "error", "not that one") : result;
    });
    const end = await finish([calls(reports({ answer: 1 })), calls(reports({ answer: 2 }))], { hooks: [blockFirst] });
    expect(end).toMatchObject({ stopReason: "completed", structured: { answer: 2 } });
    expect(resultsIn(end.asked[1] as never)[0]?.text).toBe("not that one");
  });

  test("one that was discarded is never promoted by what comes later", async () => {
    const blockAll = policy(async (_attempt, execute, id) => (await execute(), verdict(id, "error")));
    const end = await finish(
      [
        calls(reports({ answer: 1 }, "first")),
        calls({ id: "between", name: "act" }),
        calls(reports({ answer: "x" }, "unfit")),
        textAnswer("done"),
      ],
      { hooks: [blockAll], tools: [act] },
    );
    expect(end.stopReason).toBe("error");
    expect(end).not.toHaveProperty("structured");
    expect(end.asked).toHaveLength(4);
  });

  test("a hook that throws after the call turns it down too", async () => {
    const throws = () =>
      policy(async (_attempt, execute) => {
        await execute();
        throw new Error("audit is down");
      });
    const errors = toolErrorsHook({ newId: countedIds("error"), discard: () => {} });
    for (const hooks of [[throws()], [errors, throws()]]) {
      const end = await finish([calls(reports({ answer: 1 })), textAnswer("never mind")], { hooks });
      expect([end.stopReason, end.asked.length]).toEqual(["error", 2]);
      expect(end).not.toHaveProperty("structured");
      expect(resultsIn(end.asked[1] as never)[0]?.text).toContain("audit is down");
    }
  });

  test("a success that a hook worded anew still counts; one whose call never ran does not", async () => {
    const reword = policy(async (_attempt, execute, id) => (await execute(), verdict(id, "success", "thanks")));
    expect(await finish([calls(reports({ answer: 1 }))], { hooks: [reword] })).toMatchObject({
      stopReason: "completed",
      structured: { answer: 1 },
    });
    const skip = policy(async (_attempt, _execute, id) => verdict(id, "success"));
    const end = await finish([calls(reports({ answer: 1 })), textAnswer("done")], { hooks: [skip] });
    expect(end.stopReason).toBe("error");
    expect(end).not.toHaveProperty("structured");
  });
});

describe("R147 how the child stopped is told beside its structured answer", () => {
  test("the token limit stays the reason, with the answer or without", async () => {
    const limited = (answer: AIMessage) => Object.assign(answer, { response_metadata: { finish_reason: "length" } });
    const whole = await finish([limited(calls(reports({ answer: 1 })))]);
    expect(whole).toMatchObject({ stopReason: "max-tokens", structured: { answer: 1 } });
    const cut = await finish([limited(textAnswer("The answ"))]);
    expect(cut.stopReason).toBe("max-tokens");
    expect(cut).not.toHaveProperty("structured");
  });

  test("an answer in the last turn there is completes; a budget spent without one is told as such", async () => {
    const end = await finish([calls(reports({ answer: 1 }))], { maxTurns: 1 });
    expect(end).toMatchObject({ stopReason: "completed", structured: { answer: 1 } });
    const spent = await finish([calls({ id: "a", name: "act" })], { maxTurns: 1, tools: [act] });
    expect(spent.stopReason).toBe("max-turns");
    expect(spent).not.toHaveProperty("structured");
  });

  test("a child that failed stays failed, and one that was cancelled after its answer keeps both", async () => {
    const failed = await finish([]);
    expect(failed).toMatchObject({ stopReason: "error", diagnostic: expect.stringContaining("not planned") });
    const held = gate();
    const lingers: AgentHook = { name: "lingers", afterAgent: () => held.pass().then(() => undefined) };
    const run = await seam().start("spawn", childOf([calls(reports({ answer: 1 }))], { hooks: [lingers] }).request);
    await held.reached;
    await new Promise((resolve) => setImmediate(resolve));
    run.cancel();
    expect(await run.result).toMatchObject({ stopReason: "aborted", structured: { answer: 1 } });
    held.open();
    await run.dispose();
  });

  test("R152 a resumed child owes an answer of its own", async () => {
    const { request } = childOf([
      calls(reports({ answer: 1 })),
      textAnswer("as before"),
      calls(reports({ answer: 2 })),
    ]);
    const run = (await seam().start("fork", request)) as Required<SubagentRun>;
    expect((await run.result).structured).toEqual({ answer: 1 });
    const second = (await run.resume("again")) as Required<SubagentRun>;
    expect((await second.result).stopReason).toBe("error");
    const third = await second.resume("report it");
    expect(await third.result).toMatchObject({ stopReason: "completed", structured: { answer: 2 } });
    await Promise.all([run.dispose(), second.dispose(), third.dispose()]);
  });
});

test("P2 R144 after a crash the answer is read from the child's own state: its model is not asked again", async () => {
  const crash = new AbortController();
  const child = childOf([calls(reports({ answer: 42 }))]);
  const results: unknown[] = [];
  const ask = plainTool("ask", async (_args, { config }) => {
    const { checkpointer: _none, ...parent } = child.request.parent;
    const run = await seam().start("spawn", { ...child.request, parent: { ...parent, config } });
    const { stopReason, structured } = await run.result;
    await run.dispose();
    results.push([stopReason, structured]);
    if (results.length === 1) crash.abort();
    return succeeded(JSON.stringify(structured));
  });
  const { graph } = agentFixture([calls({ id: "call_a", name: "ask" }), new AIMessage("done")], { tools: [ask] });
  const first = graph.invoke(humanInput("go", "h1"), { ...runConfig(), signal: crash.signal });
  await expect(first).rejects.toThrow();
  const state = await graph.invoke(null, runConfig());
  expect(results).toEqual([
    ["completed", { answer: 42 }],
    ["completed", { answer: 42 }],
  ]);
  expect(toolResults(state as never).map(({ text }) => text)).toEqual(['{"answer":42}']);
  expect(child.asked).toHaveLength(1);
});
