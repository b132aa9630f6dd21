import { HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { taskCalls } from "../../support/delegation-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { catalogOf, promptOf, ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

const boss = { description: "delegates", system_prompt: "Delegate.", tools: ["task"], disallowed_tools: [] };

/** The lead starts `bosses`; a boss starts four leaves and another boss, and again, in three answers; leaves are counted. */
async function delegationsOf(bosses: number, configurable: Record<string, unknown>) {
  const seen = { leaves: 0, bosses: 0 };
  const refused = new Set<string>();
  let counted = 0;
  const model = new ReplyModel(async (request) => {
    const prompt = promptOf(request);
    const results = resultsIn(request);
    if (prompt === "go") {
      if (request.messages.at(-1)?.type === "tool") return textAnswer("done");
      return taskCalls(
        ...Array.from({ length: bosses }, (_, index) => ({
          id: `b${(counted += 1)}`,
          prompt: `boss ${index}`,
          type: "boss",
        })),
      );
    }
    if (!prompt.startsWith("boss")) {
      seen.leaves += 1;
      return textAnswer("leaf done");
    }
    if (results.length === 0) seen.bosses += 1;
    for (const { text } of results) if (text.includes("delegation limit")) refused.add(text);
    if (results.length >= 15) return textAnswer("boss done");
    const answer = results.length / 5;
    return taskCalls(
      ...Array.from({ length: 4 }, (_, index) => ({ id: `${prompt} ${answer} ${index}`, prompt: "leaf" })),
      { id: `${prompt} ${answer} b`, prompt: `boss of ${prompt} ${answer}`, type: "boss" },
    );
  });
  const lead = leadFixture({
    deputy: { subagents: { custom_agents: { boss } } },
    models: catalogOf(model),
    configurable,
  });
  const run = async (runId: string) => {
    Object.assign(seen, { leaves: 0, bosses: 0 });
    const config = { configurable: { ...lead.config.configurable, run_id: runId } };
    const state = await lead.graph.invoke({ messages: [new HumanMessage("go")] }, config);
    expect(state.messages.at(-1)?.text).toBe("done");
    return seen.leaves + seen.bosses;
  };
  return { first: await run("run-1"), second: await run("run-2"), refused: [...refused] };
}

test.each([
  [1, 6],
  [2, 6],
  [1, 1],
  [1, 20],
])(
  "R40 R41 P8 %i delegations of the lead and all that its children make are together at most the run's %i, in each run anew",
  async (bosses, cap) => {
    const made = await delegationsOf(bosses, { max_total_subagents: cap });
    expect([made.first, made.second]).toEqual([cap, cap]);
    expect(made.refused).toEqual([
      `Task failed. Error: This run has used its subagent delegation limit of ${cap}; do the rest yourself`,
    ]);
  },
);
