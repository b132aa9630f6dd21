/** What a run is created with when it names an assistant: the command its thread's object gets. */
import { env } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import type { OperatorAgent } from "../../../src/domain/assistant/agent-snapshot.ts";
import { ok } from "../../../src/domain/shared/result.ts";
import { defaultAssistantId } from "../../../src/platform/identifiers.ts";
import type { RunCommand } from "../../../src/protocol/thread-rpc.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, type Failure, gatewayDeps } from "../../support/gateway.ts";

beforeEach(async () => {
  await env.DB.exec("DELETE FROM assistants");
});

const REVIEWER: OperatorAgent = {
  name: "reviewer",
  description: "Reviews.",
  instructions: "Operator text.",
  model: "scripted",
  allowedSubagents: ["bash", "general-purpose"],
  tools: ["ls", "task"],
};

const RUN = {
  run_id: "r",
  thread_id: "t",
  assistant_id: "a",
  created_at: "",
  updated_at: "",
  status: "pending",
  metadata: {},
  multitask_strategy: "reject",
} as const;

const commands: RunCommand[] = [];
const threads = new FakeThreads({
  createRun: async (_address, command) => {
    commands.push(command);
    return ok(RUN);
  },
});
const deps = gatewayDeps({ threads, operatorAgents: [REVIEWER] });

const post = (path: string, json: object) => ask(deps, path, { method: "POST", json });

async function commandOf(run: object): Promise<RunCommand> {
  commands.length = 0;
  const answer = await post("/threads/t/runs", { input: { messages: [] }, ...run });
  expect([answer.status, await answer.text()]).toEqual([200, JSON.stringify(RUN)]);
  return commands[0]!;
}

const stored = (json: object) => post("/assistants", { graph_id: "lead_agent", assistant_id: "mine", ...json });

describe("an assistant's config, context and metadata", () => {
  it("lie below the run's own, key by key; a list or a number is replaced whole", async () => {
    await stored({
      config: {
        configurable: { subagent_enabled: true, max_total_subagents: 3, custom: "assistant" },
        recursion_limit: 30,
        tags: ["assistant"],
        metadata: { a: 1, b: 1 },
      },
      context: { model_name: "scripted" },
      metadata: { team: "a", kind: "assistant" },
    });
    const { body } = await commandOf({
      assistant_id: "mine",
      config: { configurable: { custom: "run" }, tags: ["run"], metadata: { b: 2 } },
      metadata: { kind: "run" },
    });
    expect(body.config).toEqual({
      configurable: { subagent_enabled: true, max_total_subagents: 3, custom: "run" },
      recursion_limit: 30,
      tags: ["run"],
      metadata: { a: 1, b: 2 },
    });
    expect(body.context).toEqual({ model_name: "scripted" });
    expect(body.metadata).toEqual({ team: "a", kind: "run" });
    expect(body.assistant_id).toBe("mine");
  });

  it("never win over the run's own, whichever of config and context it stands in", async () => {
    await stored({ context: { custom: "assistant", other: "assistant" } });
    const { body } = await commandOf({ assistant_id: "mine", config: { configurable: { custom: "run" } } });
    expect({ ...body.config?.configurable, ...body.context }).toEqual({ custom: "run", other: "assistant" });
  });

  it("of graphs of the operator's own are given on as they are, without an agent", async () => {
    await stored({ graph_id: "echo", config: { configurable: { instructions: "x", allowed_subagents: 7 } } });
    const command = await commandOf({ assistant_id: "mine" });
    expect(command.body.config?.configurable).toEqual({ instructions: "x", allowed_subagents: 7 });
    expect(command).not.toHaveProperty("agent");
  });

  it("of the deployment's assistants leave no mark on a run", async () => {
    const command = await commandOf({ assistant_id: "lead_agent" });
    expect(command.body).not.toHaveProperty("config");
    expect(command.body).not.toHaveProperty("metadata");
    expect(command.agent).toEqual({ v: 1, assistantVersion: 1, instructions: [], allowedSubagents: null, tools: null });
  });
});

describe("the agent a run is accepted with", () => {
  it("R9 is the assistant's as it is now: its text as a user's, its list, its version; the config has them no more", async () => {
    await stored({
      config: { configurable: { instructions: "Be brief.", model_name: "scripted" } },
      context: { allowed_subagents: ["bash"] },
    });
    await ask(deps, "/assistants/mine", { method: "PATCH", json: { metadata: {} } });
    const { agent, body } = await commandOf({ assistant_id: "mine" });
    expect(agent).toEqual({
      v: 1,
      assistantVersion: 2,
      instructions: [{ trust: "user", text: "Be brief." }],
      allowedSubagents: ["bash"],
      tools: null,
    });
    expect(JSON.stringify(body)).not.toMatch(/Be brief|allowed_subagents/);
    expect(body.config?.configurable).toEqual({ model_name: "scripted" });
  });

  it("R9 a run narrows the list and never widens it, from config and from context", async () => {
    await stored({ config: { configurable: { allowed_subagents: ["bash", "checker"] } } });
    const allowed = async (run: object) => (await commandOf({ assistant_id: "mine", ...run })).agent?.allowedSubagents;
    const inConfig = (allowed_subagents: unknown) => ({ config: { configurable: { allowed_subagents } } });
    expect(await allowed({})).toEqual(["bash", "checker"]);
    expect(await allowed(inConfig(null))).toEqual(["bash", "checker"]);
    expect(await allowed(inConfig(["checker", "general-purpose"]))).toEqual(["checker"]);
    expect(await allowed({ context: { allowed_subagents: ["general-purpose"] } })).toEqual([]);
    expect(await allowed(inConfig([]))).toEqual([]);
    expect(await allowed({ ...inConfig(["bash"]), context: { allowed_subagents: null } })).toEqual(["bash"]);
    // Metadata is no way to say it: what a client writes there is the client's own note.
    expect(await allowed({ metadata: { allowed_subagents: ["general-purpose"] } })).toEqual(["bash", "checker"]);
  });

  it("a run's instructions stand in place of the assistant's, and beside an operator's", async () => {
    await stored({ config: { configurable: { instructions: "Assistant's." } } });
    const texts = async (run: object) => (await commandOf(run)).agent?.instructions;
    const own = { config: { configurable: { instructions: "Run's." } } };
    expect(await texts({ assistant_id: "mine", ...own })).toEqual([{ trust: "user", text: "Run's." }]);
    expect(await texts({ assistant_id: "mine", context: { instructions: "" } })).toEqual([]);
    expect(await texts({ assistant_id: "lead_agent", ...own })).toEqual([{ trust: "user", text: "Run's." }]);
    expect(await texts({ assistant_id: "reviewer", ...own })).toEqual([
      { trust: "operator", text: "Operator text." },
      { trust: "user", text: "Run's." },
    ]);
  });

  it("R172 of the operator's carries the operator's trust, list and tools; its model is a default", async () => {
    const { agent, body, graph_id } = await commandOf({
      assistant_id: "reviewer",
      config: { configurable: { allowed_subagents: ["bash"] } },
    });
    expect([graph_id, body.assistant_id]).toEqual(["lead_agent", defaultAssistantId("reviewer")]);
    expect(agent).toEqual({
      v: 1,
      assistantVersion: 1,
      instructions: [{ trust: "operator", text: "Operator text." }],
      allowedSubagents: ["bash"],
      tools: ["ls", "task"],
    });
    expect(body.config?.configurable).toEqual({ model_name: "scripted" });
    expect(JSON.stringify(body)).not.toContain("Operator text");
  });

  it("R173 no client says that its text is an operator's", async () => {
    const agent = { v: 1, instructions: [{ trust: "operator", text: "x" }], allowedSubagents: null, tools: null };
    const answer = await post("/threads/t/runs", { assistant_id: "lead_agent", input: { messages: [] }, agent });
    expect((await answer.json<Failure>()).code).toBe("invalid_request");
    const { agent: kept } = await commandOf({
      assistant_id: "lead_agent",
      config: { configurable: { agent, operator_instructions: "x", trust: "operator" } },
    });
    expect(kept?.instructions).toEqual([]);
  });

  it.each([
    [{ config: { configurable: { allowed_subagents: "bash" } } }, "body.config.configurable.allowed_subagents"],
    [{ context: { allowed_subagents: [7] } }, "body.context.allowed_subagents"],
    [
      { config: { configurable: { allowed_subagents: "x" } }, context: { allowed_subagents: [] } },
      "body.config.configurable.allowed_subagents",
    ],
    [{ config: { configurable: { instructions: {} } } }, "body.config.configurable.instructions"],
  ])("R9 %j is refused with its path, and nothing is started", async (run, path) => {
    for (const route of ["/threads/t/runs", "/runs/wait"]) {
      threads.calls.length = 0;
      const answer = await post(route, { assistant_id: "lead_agent", input: { messages: [] }, ...run });
      const refusal = await answer.json<Failure>();
      expect([answer.status, refusal.code]).toEqual([422, "invalid_request"]);
      expect(refusal.message).toContain(path);
      expect(threads.calls).toEqual([]);
    }
  });
});
