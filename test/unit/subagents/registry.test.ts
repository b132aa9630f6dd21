import { describe, expect, test } from "vitest";
import { parseDeputyConfig, type DeputyConfigInput } from "../../../src/config.ts";
import { BUILT_IN_SUBAGENTS } from "../../../src/agent/subagents/built-ins.ts";
import { selectChildTools } from "../../../src/agent/subagents/child-tools.ts";
import { SubagentRegistry } from "../../../src/agent/subagents/registry.ts";
import { plainTool, succeeded } from "../../support/agent-fixture.ts";

function registry(subagents: DeputyConfigInput["subagents"] = {}, allowed: readonly string[] | null = null) {
  return new SubagentRegistry(parseDeputyConfig({ subagents }).subagents, allowed);
}

const CUSTOM = { description: "audits", system_prompt: "Audit." };

describe("definitions", () => {
  test("R1 R2 R52 the built-ins and their numbers", () => {
    expect(registry().names()).toEqual(["general-purpose", "bash"]);
    expect(registry().find("general-purpose")).toMatchObject({ tools: null, maxTurns: 150, timeoutSeconds: 1_800 });
    expect(registry().find("bash")).toMatchObject({
      tools: ["bash", "ls", "read_file", "write_file", "str_replace"],
      maxTurns: 60,
      timeoutSeconds: 1_800,
    });
    for (const each of BUILT_IN_SUBAGENTS) {
      for (const tag of [
        "guidelines",
        "tool_restrictions",
        "file_editing_workflow",
        "output_format",
        "working_directory",
      ]) {
        expect(each.systemPrompt).toContain(`<${tag}>`);
      }
      expect(each.systemPrompt).toContain("`task` tool does not exist");
    }
  });

  test("an override of one agent wins over the global value, the global one over a built-in's, never over a custom's", () => {
    const resolved = registry({
      timeout_seconds: 100,
      max_turns: 9,
      agents: { bash: { max_turns: 7, model: "small" } },
      custom_agents: { auditor: CUSTOM },
    });
    expect(resolved.find("bash")).toMatchObject({ maxTurns: 7, timeoutSeconds: 100, model: "small" });
    expect(resolved.find("general-purpose")).toMatchObject({ maxTurns: 9, timeoutSeconds: 100, model: "inherit" });
    expect(resolved.find("auditor")).toMatchObject({ maxTurns: 50, timeoutSeconds: 900, provider: "spawn" });
  });

  test("a built-in is never shadowed and never changed", () => {
    const before = structuredClone(BUILT_IN_SUBAGENTS);
    const resolved = registry({ agents: { bash: { max_turns: 1 } }, custom_agents: { bash: CUSTOM } });
    expect(resolved.find("bash")?.description).not.toBe("audits");
    expect(BUILT_IN_SUBAGENTS).toEqual(before);
  });

  test("a caller's list filters, an empty one allows nothing", () => {
    expect(registry({ custom_agents: { auditor: CUSTOM } }, ["auditor", "ghost"]).names()).toEqual(["auditor"]);
    expect(registry({}, []).names()).toEqual([]);
  });
});

describe("a child's tools", () => {
  const tool = (name: string) => plainTool(name, () => succeeded(""));
  const parent = ["bash", "ls", "look", "task", "batch_task", "batch_status", "cancel_batch"].map(tool);
  const names = (tools: string[] | null, disallowedTools: string[]) =>
    selectChildTools(parent, { tools, disallowedTools }).map((each) => each.name);

  test("R1 all of the parent's without those that delegate, even when the deny list is empty", () => {
    expect(names(null, [])).toEqual(["bash", "ls", "look"]);
  });

  test("the allow list narrows, then the deny list; only an allow list brings a delegation tool back", () => {
    expect(names(["bash", "ls"], ["ls"])).toEqual(["bash"]);
    expect(names(["task", "bash"], [])).toEqual(["bash", "task"]);
    expect(names(["task", "bash"], ["task"])).toEqual(["bash"]);
  });
});
