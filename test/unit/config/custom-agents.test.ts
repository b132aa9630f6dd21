import { describe, expect, it } from "vitest";
import { parseDeputyConfig } from "../../../src/config.ts";
import { operatorAgents } from "../../../src/agent/lead/operator-agents.ts";

const AGENT = { description: "Reviews.", instructions: "Review." };
const parse = (custom: Record<string, object>, over: object = {}) => parseDeputyConfig({ agents: { custom }, ...over });

describe("agents.custom", () => {
  it("becomes agents with the fields an assistant is made of", () => {
    const full = { ...AGENT, model: "scripted", allowed_subagents: ["bash", "managed-later"], tools: ["ls"] };
    expect(operatorAgents(parse({ reviewer: AGENT, second: full }).agents)).toEqual([
      { name: "reviewer", description: "Reviews.", instructions: "Review.", allowedSubagents: null, tools: null },
      {
        name: "second",
        description: "Reviews.",
        instructions: "Review.",
        model: "scripted",
        allowedSubagents: ["bash", "managed-later"],
        tools: ["ls"],
      },
    ]);
    expect(operatorAgents(parseDeputyConfig({}).agents)).toEqual([]);
  });

  it.each<[string, () => unknown, RegExp]>([
    ["the lead's id", () => parse({ lead_agent: AGENT }), /agents\.custom\.lead_agent: must not be the id of a graph/],
    [
      "a graph's id",
      () => parse({ echo: AGENT }, { graphs: { echo: () => ({}) } }),
      /agents\.custom\.echo: must not be the id/,
    ],
    [
      "a UUID",
      () => parse({ "01890000-0000-7000-8000-00000000000A": AGENT }),
      /must not look like the id of a stored assistant/,
    ],
    ["a name that is no id", () => parse({ "two words": AGENT }), /two words/],
    [
      "a model nobody has",
      () => parse({ a: { ...AGENT, model: "nope" } }),
      /agents\.custom\.a\.model: must be a name of models: scripted, openai/,
    ],
    ["no instructions", () => parse({ a: { description: "d" } }), /agents\.custom\.a\.instructions/],
    [
      "a subagent that is no name",
      () => parse({ a: { ...AGENT, allowed_subagents: ["a b"] } }),
      /allowed_subagents\.0/,
    ],
    ["a field nobody honours", () => parse({ a: { ...AGENT, system_prompt: "x" } }), /system_prompt/],
  ])("refuses %s, and says where", (_what, make, message) => {
    expect(make).toThrow(message);
  });
});
