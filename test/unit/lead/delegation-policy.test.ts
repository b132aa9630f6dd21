/** R12–R21, R170: the surfaces of one run tell one policy. Each is read as the model gets it, from an assembled lead. */
import { describe, expect, test } from "vitest";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import { POLICY_RULES } from "../../../src/agent/subagents/delegation-policy.ts";
import { HumanMessage } from "@langchain/core/messages";
import { leadFixture, type LeadFixtureOptions } from "../../support/lead-fixture.ts";
import { type Mode, type Surface, violations } from "../../support/policy-meaning.ts";
import { catalogOf, ReplyModel, textAnswer } from "../../support/reply-model.ts";

async function requestOf(options: LeadFixtureOptions): Promise<ModelRequest> {
  const model = new ReplyModel(() => textAnswer("done"));
  const { graph, config } = leadFixture({ ...options, models: catalogOf(model) });
  await graph.invoke({ messages: [new HumanMessage({ id: "h1", content: "go" })] }, config);
  return model.requests[0]!;
}

/** The line of a role in a list of subagent types. */
function roleIn(text: string, name: string): string {
  return text.split("\n").find((line) => line.startsWith(`- ${name}: `)) ?? "";
}

interface Surfaces {
  readonly system: string;
  readonly texts: readonly (readonly [Surface, string, string])[];
}

async function surfacesOf(mode: Mode, options: LeadFixtureOptions = {}): Promise<Surfaces> {
  const one = mode === "single" ? { max_concurrent_subagents: 1 } : {};
  const configurable = { ...one, ...options.configurable };
  const request = await requestOf({ ...options, configurable });
  const system = request.messages[0]?.text ?? "";
  const task = request.tools.find((tool) => tool.name === "task")?.description ?? "";
  const roles = ["general-purpose", "bash"].flatMap((name) => [
    ["role", `${name} in the prompt`, roleIn(system, name)] as const,
    ["role", `${name} in the tool`, roleIn(task, name)] as const,
  ]);
  return { system, texts: [["lead", "lead prompt", system], ["task", "task description", task], ...roles] };
}

const MODES: readonly Mode[] = ["parallel", "single"];

test("a run that may delegate once in all is told of one, however many slots there are", async () => {
  const configurable = { max_concurrent_subagents: 3, max_total_subagents: 1 };
  const { texts } = await surfacesOf("single", { configurable });
  for (const [surface, name, text] of texts) expect([name, violations(text, surface, "single")]).toEqual([name, []]);
});

describe.each(MODES)("the policy in mode %s", (mode) => {
  test("R12 R13 R14 R15 R16 R17 R18 R19 R20 R21 lead prompt, task description and both roles mean the same", async () => {
    const { texts } = await surfacesOf(mode);
    expect(texts.every(([, , text]) => text.length > 80)).toBe(true);
    for (const [surface, name, text] of texts) expect([name, violations(text, surface, mode)]).toEqual([name, []]);
  });

  test("R21 each surface holds each sentence of the one module that is meant for it, and no other surface's", async () => {
    const { texts } = await surfacesOf(mode);
    for (const [surface, name, text] of texts) {
      for (const rule of POLICY_RULES) {
        const sentence = rule[mode];
        const stated = sentence !== null && text.includes(sentence);
        const due = sentence !== null && rule.surfaces.includes(surface);
        // The lead prompt and the tool list the roles, whose sentence is theirs as well.
        expect([name, rule.id, stated]).toEqual([name, rule.id, due]);
      }
    }
  });
});

/** From a wording that is right to one that is not: the meaning must notice, on the surface it is done to. */
const WEAKENED: readonly (readonly [string, Mode, Surface, RegExp, string])[] = [
  ["delegating becomes the default", "parallel", "lead", /Direct work is the default/, "Delegation is the default"],
  ["complexity becomes a reason", "parallel", "task", /is no reason to delegate/, "is a reason to delegate"],
  ["'clearly exceeds' is weakened", "parallel", "lead", /clearly exceeds/g, "exceeds"],
  ["'clearly exceeds' is weakened in the tool", "parallel", "task", /clearly exceeds/g, "may exceed"],
  ["'clearly exceeds' is weakened in a role", "single", "role", /clearly exceeds/, "outweighs"],
  ["'only' goes", "parallel", "role", /Delegate only for/, "Delegate for"],
  ["a cost goes: start-up", "parallel", "role", /start-up, /, ""],
  ["a cost goes: duplicate discovery", "single", "task", /: start-up, duplicate discovery,/g, ": start-up,"],
  ["a cost goes: synthesis", "parallel", "lead", /synthesis of results, /g, ""],
  ["a cost goes: conflicts", "parallel", "task", /conflicts over shared state, /g, ""],
  ["a cost goes: side effects", "single", "lead", /, and side effects you do not see/g, ""],
  ["a cost becomes a veto", "parallel", "lead", /are costs to weigh; neither of them forbids/, "forbid"],
  ["a cost becomes a veto in the tool", "single", "task", /are costs to weigh; neither of them forbids/, "forbid"],
  ["a veto is added", "parallel", "task", /nothing else forbids it/, "a cheap direct path forbids it too"],
  ["the veto of outputs goes", "parallel", "lead", /where one task needs another's output, or /, ""],
  ["the veto of shared state goes", "parallel", "task", /, or where tasks change the same mutable state/, ""],
  ["a veto becomes advice", "parallel", "lead", /NEVER dispatch/, "Usually do not dispatch"],
  ["a chain may not be given away", "single", "lead", /may go to one subagent/, "must not go to one subagent"],
  ["many subagents", "parallel", "task", /the fewest subagents/, "as many subagents"],
  ["scopes may overlap", "parallel", "lead", /with independent scopes that do not overlap/, "whose scopes may overlap"],
  ["later batches are not judged", "parallel", "lead", /judge each later batch again by these rules/, "start the next"],
  ["batches lose their parallelism", "parallel", "lead", /stays parallel within it/, "is done one after the other"],
  ["latency counts with one call", "single", "role", /a material specialist/, "a latency, specialist"],
  ["any gain counts with one call", "single", "lead", /a material specialist or isolation benefit/g, "a benefit"],
  ["parallel talk with one call", "single", "task", /There|The result/, "Several calls run in parallel. The result"],
  ["batches with one call", "single", "lead", /Use the fewest/, "After each batch judge again. Use the fewest"],
  ["polling", "single", "task", /there is nothing to poll/, "poll for it"],
];

test.each(WEAKENED)("R21 a text in which %s is noticed (%s, %s)", async (...[, mode, surface, from, to]) => {
  const { texts } = await surfacesOf(mode);
  const text = texts.find(([each]) => each === surface)?.[2] ?? "";
  const weakened = text.replace(from, to);
  expect(weakened).not.toBe(text);
  expect(violations(weakened, surface, mode)).not.toEqual([]);
});

describe("R170 the numbers", () => {
  test.each([
    [{}, "AT MOST 3 `task` CALLS IN ONE ANSWER", "AT MOST 6 `task` CALLS IN THIS RUN"],
    [{ max_concurrent_subagents: 2, max_total_subagents: 4 }, "AT MOST 2 `task` CALLS IN ONE", "AT MOST 4 `task`"],
    [{ max_concurrent_subagents: 99, max_total_subagents: 99 }, "AT MOST 3 `task` CALLS IN ONE", "AT MOST 50 `task`"],
    [{ max_concurrent_subagents: 1 }, "AT MOST ONE `task` CALL IN ONE ANSWER", "AT MOST 6 `task`"],
  ])("%j: policy, thinking style and reminder carry the same effective limits", async (configurable, each, all) => {
    const { messages } = await requestOf({ configurable });
    const system = messages[0]?.text ?? "";
    for (const tag of ["subagent_system", "thinking_style", "critical_reminders"]) {
      const section = new RegExp(`<${tag}>(.*?)</${tag}>`, "s").exec(system)?.[1] ?? "";
      expect([tag, section.includes(each), section.includes(all)]).toEqual([tag, true, true]);
      expect(section).toMatch(/calls past a limit are discarded and lost/i);
    }
  });
});

describe("R21 bash", () => {
  test("a routine command is not enough for the role, wherever it stands", async () => {
    for (const mode of MODES) {
      const { texts } = await surfacesOf(mode);
      const roles = texts.filter(([, name]) => name.startsWith("bash"));
      expect(roles.length).toBe(2);
      for (const [, , text] of roles) expect(text).toMatch(/routine git, build, test or deploy command is not enough/);
    }
  });

  test.each<[string, LeadFixtureOptions]>([
    ["the role is not allowed", { allowedSubagents: ["general-purpose"] }],
    ["the tool is denied", { deputy: { tools: { deny: ["bash"] } } }],
  ])("no example of it where %s", async (_why, options) => {
    const example = /Example: a command/;
    expect((await surfacesOf("parallel")).system).toMatch(example);
    expect((await surfacesOf("single")).system).toMatch(example);
    expect((await surfacesOf("parallel", options)).system).not.toMatch(example);
    expect((await surfacesOf("single", options)).system).not.toMatch(example);
  });
});
