import { HumanMessage } from "@langchain/core/messages";
import { expect, test } from "vitest";
import { taskCalls } from "../../support/delegation-fixture.ts";
import { leadFixture } from "../../support/lead-fixture.ts";
import { catalogOf, promptOf, ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

const boss = { description: "delegates", system_prompt: "Delegate.", tools: ["task"], disallowed_tools: [] };

/** The lead starts two bosses, each boss two leaves; gives the most leaves that answered at once. */
async function mostLeavesAtOnce(configurable: Record<string, unknown>) {
  const seen = { now: 0, most: 0 };
  const model = new ReplyModel(async (request) => {
    const prompt = promptOf(request);
    if (resultsIn(request).length > 0) return textAnswer("done");
    if (prompt === "go") {
      return taskCalls(
        { id: "call_a", prompt: "boss a", type: "boss" },
        { id: "call_b", prompt: "boss b", type: "boss" },
      );
    }
    if (prompt.startsWith("boss")) {
      return taskCalls({ id: `${prompt} 1`, prompt: "leaf" }, { id: `${prompt} 2`, prompt: "leaf" });
    }
    seen.now += 1;
    seen.most = Math.max(seen.most, seen.now);
    for (let turn = 0; turn < 30; turn += 1) await new Promise((next) => setImmediate(next));
    seen.now -= 1;
    return textAnswer("leaf done");
  });
  const lead = leadFixture({
    deputy: { subagent_runtime: { max_running: 4 }, subagents: { custom_agents: { boss } } },
    models: catalogOf(model),
    configurable,
  });
  const state = await lead.graph.invoke({ messages: [new HumanMessage("go")] }, lead.config);
  expect(state.messages.at(-1)?.text).toBe("done");
  expect(state["delegations"]?.map(({ status }) => status)).toEqual(["completed", "completed"]);
  expect(lead.admission.snapshot()).toMatchObject({ running: 0, queued: 0 });
  return seen.most;
}

test("R38 what the run asked to run at once binds the executor too: children of its children wait for a place", async () => {
  expect(await mostLeavesAtOnce({})).toBe(4);
  expect(await mostLeavesAtOnce({ max_concurrent_subagents: 2 })).toBe(2);
});
