import * as fc from "fast-check";
import { AIMessage } from "@langchain/core/messages";
import { describe, expect, test } from "vitest";
import { agentFixture, humanInput, plainTool, runConfig, succeeded } from "../../support/agent-fixture.ts";
import { delegatesOnce, delegationFixture, runLead, taskResults } from "../../support/delegation-fixture.ts";
import { callsAnswer } from "../../support/fake-chat-model.ts";

const step = plainTool("step", () => succeeded("done"));
const callsForEver = (from = 0) => {
  let turn = from;
  return () => callsAnswer([{ id: `call-${(turn += 1)}`, name: "step" }]);
};

/** The ends of the range and a few of what lies between: 200 turns of a real graph take their time. */
const TURNS = [1, 2, 3, 12, 13, 25, 60, 200];
const anyTurns = fc.integer({ min: 1, max: 40 });

describe("LangGraph's recursion limit", () => {
  test.each(TURNS)("R89 never fires before a lead's budget of %d turns", async (maxTurns) => {
    await leadSpends(maxTurns);
  });

  test("R89 never fires before a lead's budget, whatever it is", async () => {
    await fc.assert(fc.asyncProperty(anyTurns, leadSpends), { numRuns: 10 });
  });

  test.each(TURNS)("R89 R97 never fires before a child's budget of %d turns", async (maxTurns) => {
    const answer = callsForEver();
    let asked = 0;
    const fixture = delegationFixture({
      tools: [step],
      subagents: { agents: { "general-purpose": { max_turns: maxTurns } } },
      lead: delegatesOnce({ id: "call_a", prompt: "count" }),
      child: () => {
        asked += 1;
        return answer();
      },
    });
    const [result] = taskResults((await runLead(fixture)).state);
    expect(asked).toBe(maxTurns);
    expect(result?.text).toBe(`Task failed (capped: turn budget). Error: Reached max_turns=${maxTurns}`);
    expect(result?.additional_kwargs).toMatchObject({ subagent_status: "failed", subagent_stop_reason: "turn_capped" });
  });

  test("a run that ends in its last turn is no capped one", async () => {
    const answers = [...Array.from({ length: 4 }, callsForEver()), new AIMessage("done")];
    const fixture = agentFixture(answers, { tools: [step], maxTurns: 5 });
    const state = await fixture.graph.invoke(humanInput("go", "h1"), runConfig());
    expect(state.messages.at(-1)?.text).toBe("done");
  });
});

async function leadSpends(maxTurns: number): Promise<void> {
  const fixture = agentFixture(Array.from({ length: maxTurns + 1 }, callsForEver()), { tools: [step], maxTurns });
  const spent = fixture.graph.invoke(humanInput("go", "h1"), runConfig());
  await expect(spent).rejects.toThrow(`has used its ${maxTurns} model turns`);
  expect(fixture.model.requests).toHaveLength(maxTurns);
}
