/** The question before a named tool runs, through the real graph: what is asked, and what each answer does. */
import { AIMessage, type ToolMessage } from "@langchain/core/messages";
import { Command } from "@langchain/langgraph";
import { describe, expect, it, test } from "vitest";
import { z } from "zod";
import { HumanInputError } from "../../../src/agent/graph/human-input.ts";
import { APPROVAL_QUESTIONS_MAX, toolApproval } from "../../../src/agent/hooks/tool-approval.ts";
import { APPROVAL_DECISIONS, type ToolApproval } from "../../../src/agent/tools/approval.ts";
import { askClarificationTool, askNobodyTool } from "../../../src/agent/tools/ask-clarification.ts";
import { agentFixture, countedIds, plainTool, succeeded } from "../../support/agent-fixture.ts";

const calls = (...args: object[]) =>
  new AIMessage({
    content: "",
    tool_calls: args.map((each, at) => ({
      id: `call_${at}`,
      name: "send",
      args: { ...each },
      type: "tool_call" as const,
    })),
  });

const config = { configurable: { thread_id: "t", run_id: "r" } };

interface Question {
  readonly id: string;
  readonly value: {
    readonly actionRequests: readonly { name: string; args: unknown; description: string }[];
    readonly reviewConfigs: readonly unknown[];
  };
}

function asking(approval: ToolApproval = { decisions: APPROVAL_DECISIONS }, ...args: object[]) {
  const sent: unknown[] = [];
  const send = plainTool(
    "send",
    (given) => (sent.push(given), succeeded(`sent ${String(given["to"])}`)),
    z.object({ to: z.string() }),
  );
  const hooks = [toolApproval({ approvals: { send: approval }, newId: countedIds("approval") })];
  const answers = [calls(...(args.length === 0 ? [{ to: "bob" }] : args)), new AIMessage("done")];
  const { graph } = agentFixture(answers, { tools: [send], hooks });
  const questions = async () => (await graph.getState(config)).tasks.flatMap((task) => task.interrupts) as Question[];
  const results = async () => {
    const { messages } = (await graph.getState(config)).values as { messages: AIMessage[] };
    return messages.filter((message) => message.getType() === "tool") as unknown as ToolMessage[];
  };
  return {
    sent,
    questions,
    results,
    start: () => graph.invoke({ messages: [{ type: "human", content: "go", id: "h" }] }, config),
    answer: (resume: unknown) => graph.invoke(new Command({ resume }), config),
  };
}

describe("tool_approval", () => {
  it("asks in LangChain's shape before the tool runs", async () => {
    const { start, questions, sent } = asking({
      decisions: ["approve", "reject"],
      description: "Mail leaves the house.",
    });
    await start();
    const [question] = await questions();
    expect(question?.value).toEqual({
      actionRequests: [{ name: "send", args: { to: "bob" }, description: "Mail leaves the house." }],
      reviewConfigs: [{ actionName: "send", allowedDecisions: ["approve", "reject"] }],
      tool_call_id: "call_0",
    });
    expect(sent).toEqual([]);
  });

  it.each([
    ["approve", { decisions: [{ type: "approve" }] }, [{ to: "bob" }], "sent bob", "success"],
    ["the decision alone", { type: "approve" }, [{ to: "bob" }], "sent bob", "success"],
    [
      "edit",
      { decisions: [{ type: "edit", editedAction: { name: "send", args: { to: "eve" } } }] },
      [{ to: "eve" }],
      'A person changed the arguments of this call before it ran: {"to":"eve"}\n\nsent eve',
      "success",
    ],
    [
      "edit, in Python's spelling",
      { decisions: [{ type: "edit", edited_action: { name: "send", args: { to: "eve" } } }] },
      [{ to: "eve" }],
      'A person changed the arguments of this call before it ran: {"to":"eve"}\n\nsent eve',
      "success",
    ],
    [
      "reject",
      { decisions: [{ type: "reject", message: "not him" }] },
      [],
      "rejected this call of 'send': not him",
      "error",
    ],
    ["reject without a word", { decisions: [{ type: "reject" }] }, [], "rejected this call of 'send'\n", "error"],
  ])("%s", async (_name, ...row) => {
    const [answer, ran, content, status] = row;
    const { start, answer: resume, sent, results } = asking();
    await start();
    await resume(answer);
    expect(sent).toEqual(ran);
    const [result] = await results();
    expect([result?.status ?? "success", result?.text]).toEqual([status, expect.stringContaining(content as string)]);
  });

  it.each([
    "yes",
    true,
    { decisions: [] },
    { decisions: [{ type: "approve" }, { type: "approve" }] },
    { decisions: [{ type: "edit", editedAction: { name: "other", args: {} } }] },
    { decisions: [{ type: "edit" }] },
    { decisions: [{ type: "respond", message: "hi" }] },
  ])("asks again when the answer cannot be read, and runs nothing: %j", async (answer) => {
    const { start, answer: resume, sent, questions } = asking();
    await start();
    const [first] = await questions();
    await resume(answer);
    const [second] = await questions();
    expect([sent, second?.id === first?.id]).toEqual([[], false]);
    expect(second?.value.actionRequests[0]?.description).toMatch(/\(.+\)$/);
    await resume({ decisions: [{ type: "approve" }] });
    expect(sent).toEqual([{ to: "bob" }]);
  });

  it("P8: takes a call for rejected after so many answers that cannot be read; a decision not offered is one", async () => {
    const { start, answer, sent, results } = asking({ decisions: ["reject"] });
    await start();
    for (let asked = 0; asked < APPROVAL_QUESTIONS_MAX; asked += 1) await answer({ type: "approve" });
    expect(sent).toEqual([]);
    expect((await results())[0]?.text).toContain("no readable decision");
  });

  it("asks for each call by itself, and each answer is its own", async () => {
    const { start, answer, questions, sent } = asking({ decisions: APPROVAL_DECISIONS }, { to: "bob" }, { to: "eve" });
    await start();
    const asked = await questions();
    const to = (name: string) =>
      asked.find(({ value }) => JSON.stringify(value.actionRequests[0]?.args).includes(name))!.id;
    await answer({ [to("eve")]: { type: "approve" }, [to("bob")]: { type: "reject" } });
    expect(sent).toEqual([{ to: "eve" }]);
  });
});

describe("ask_clarification", () => {
  const ask = (args: object) =>
    new AIMessage({
      content: "",
      tool_calls: [{ id: "call_q", name: "ask_clarification", args: { ...args }, type: "tool_call" }],
    });
  const QUESTION = {
    question: "Which one?",
    clarification_type: "approach_choice",
    options: ["red", "blue"],
    context: "Two fit.",
  };

  it("ends the lead's turn with the question, and the next message goes on", async () => {
    const { graph, model } = agentFixture([ask(QUESTION), new AIMessage("blue it is")], {
      tools: [askClarificationTool],
    });
    const say = (content: string, id: string) => graph.invoke({ messages: [{ type: "human", content, id }] }, config);
    const first = (await say("paint it", "h1")) as unknown as { messages: ToolMessage[] };
    expect(first.messages.at(-1)?.text).toBe("Two fit.\n\nWhich one?\n\n1. red\n2. blue");
    expect(model.requests).toHaveLength(1);
    const second = (await say("blue", "h2")) as unknown as { messages: ToolMessage[] };
    expect(second.messages.at(-1)?.text).toBe("blue it is");
  });

  test("a child's call ends it with the named reason instead of a result that its model works around", async () => {
    const { graph } = agentFixture([ask(QUESTION), new AIMessage("I guessed")], { tools: [askNobodyTool] });
    const run = graph.invoke({ messages: [{ type: "human", content: "go", id: "h" }] }, config);
    await expect(run).rejects.toThrow(HumanInputError);
  });
});
