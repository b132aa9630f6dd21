import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { describe, expect, it } from "vitest";
import { createScriptedModel } from "../../../src/agent/models/scripted.ts";

let nextId = 0;
const model = () => createScriptedModel({ newId: () => `id-${(nextId += 1)}`, random: Math.random, modelIdleMs: 20 });

const ask = (prompt: string, ...since: (AIMessage | ToolMessage)[]) =>
  model().generate(
    { messages: [new SystemMessage("be brief"), new HumanMessage({ content: prompt, id: "h" }), ...since], tools: [] },
    {},
  );

it("answers without a script by a notice and a quote of the prompt, never by an answer of its own", async () => {
  const answer = await ask("What is 2 + 2?");
  expect(answer.text).toContain("no intelligence");
  expect(answer.text).toContain("> What is 2 + 2?");
  expect(answer.response_metadata.finish_reason).toBe("stop");
});

describe("steps", () => {
  it("takes one step a model turn, counted by the assistant messages behind the prompt", async () => {
    const script = 'Do it.\n```script\ncall bash {"command": "wc -l data.csv"}\nsay There are {{result:1}} lines.\n```';
    const first = await ask(script);
    expect(first.tool_calls).toMatchObject([{ name: "bash", args: { command: "wc -l data.csv" } }]);
    expect(first.tool_calls?.[0]?.id).toMatch(/^call_[A-Za-z0-9]{24}$/);
    const result = new ToolMessage({ content: "42", tool_call_id: first.tool_calls?.[0]?.id ?? "" });
    expect((await ask(script, first, result)).text).toBe("There are 42 lines.");
  });
});
