/** What the tools of a batch item may do: the submitter's role binds them, and nobody is there to answer. */
import { AIMessage } from "@langchain/core/messages";
import { interrupt } from "@langchain/langgraph";
import { describe, expect, it } from "vitest";
import { agentItemRunner } from "../../../src/agent/batches/agent-item-runner.ts";
import { CircuitBreakers } from "../../../src/agent/models/circuit-breakers.ts";
import type { ModelRequest } from "../../../src/agent/models/model.ts";
import { BUILT_IN_SUBAGENTS } from "../../../src/agent/subagents/built-ins.ts";
import { spawnProvider } from "../../../src/agent/subagents/providers/spawn.ts";
import { SubagentService } from "../../../src/agent/subagents/subagent-service.ts";
import type { ToolPolicy } from "../../../src/agent/tools/authorization.ts";
import { configuredPolicy } from "../../../src/agent/tools/configured-policy.ts";
import type { ToolRuntime } from "../../../src/agent/tools/tool.ts";
import { parseDeputyConfig, type DeputyConfigInput } from "../../../src/config.ts";
import type { BatchItemOutcome } from "../../../src/domain/batch/item-settlement.ts";
import type { Role } from "../../../src/domain/trust/principal.ts";
import { countedIds, plainTool, succeeded } from "../../support/agent-fixture.ts";
import { catalogOf, ReplyModel, resultsIn, textAnswer } from "../../support/reply-model.ts";

interface ItemOptions {
  readonly call: string;
  readonly role?: Role;
  readonly attempt?: number;
  readonly tools?: DeputyConfigInput["tools"];
  /** In place of the configuration's. */
  readonly policy?: ToolPolicy;
}

/** One attempt of an item whose child calls one tool and says what came of it. */
async function runItem({ call, role = "user", attempt = 1, tools = {}, policy }: ItemOptions) {
  const config = parseDeputyConfig({ tools });
  const told: unknown[] = [];
  const requests: ModelRequest[] = [];
  const acted: Pick<ToolRuntime, "attempt" | "idempotencyKey">[] = [];
  const newId = countedIds(`try-${attempt}`);
  const model = new ReplyModel((request) => {
    requests.push(request);
    const [result] = resultsIn(request);
    if (result !== undefined) return textAnswer(`saw ${result.text}`);
    const made = { id: newId(), name: call, args: { to: "bob" }, type: "tool_call" as const };
    return new AIMessage({ content: "", tool_calls: [made] });
  });
  const act = plainTool("plain", (_args, { attempt: number, idempotencyKey: key }) => {
    acted.push({ attempt: number, ...(key === undefined ? {} : { idempotencyKey: key }) });
    return succeeded("done");
  });
  const subagents = new SubagentService({ newId, reportFault: () => {} });
  subagents.register(spawnProvider());
  const runner = agentItemRunner({
    models: catalogOf(model),
    tools: [
      act,
      { ...act, name: "once", recovery: "once" },
      { ...act, name: "ask", recovery: "ask" },
      plainTool("human", () => succeeded(String(interrupt("which one?")))),
    ],
    subagents,
    random: () => 0,
    now: () => 0,
    newId,
    llmCall: config.llm_call,
    circuits: new CircuitBreakers(config.llm_call.circuit, () => 0),
    policy: policy ?? configuredPolicy(config.tools),
    report: (what, details) => void told.push([what, details]),
    subagentsConfig: config.subagents,
  });
  const item = { batchId: "b1", owner: "alice", threadId: "t1", ordinal: 0, key: "k", prompt: "go", attempt };
  const [definition] = BUILT_IN_SUBAGENTS;
  const setting = {
    subagentType: "general-purpose",
    definition: JSON.parse(JSON.stringify(definition)) as unknown,
    submitterRole: role,
    files: [],
    timeoutMs: 60_000,
  };
  const outcome: BatchItemOutcome = await runner.run(item, setting, new AbortController().signal);
  const shown = (requests[0]?.tools ?? []).map(({ name }) => name);
  return { outcome, acted, shown, told };
}

describe("the role of a batch's submitter (R123)", () => {
  const tools = { roles: { user: { deny: ["plain"] } } };

  it("binds its items: a denied tool is not shown, and its call has no effect", async () => {
    const { outcome, acted, shown } = await runItem({ call: "plain", tools });
    expect(shown).toEqual(["once", "ask", "human"]);
    expect(acted).toEqual([]);
    expect(outcome).toMatchObject({ kind: "completed", result: expect.stringContaining("the role 'user' may not") });
  });

  it("is the submitter's: the same batch of an administrator may", async () => {
    const { acted, shown } = await runItem({ call: "plain", tools, role: "admin" });
    expect(shown).toContain("plain");
    expect(acted).toHaveLength(1);
  });

  it("a policy that throws denies, and the operator's log says why", async () => {
    const policy: ToolPolicy = () => {
      throw new Error("db down");
    };
    const { acted, told } = await runItem({ call: "plain", policy });
    expect(acted).toEqual([]);
    expect(told).toContainEqual(["tool policy failed", expect.objectContaining({ why: "Error: db down" })]);
  });

  it("everybody's lists bind items too", async () => {
    const { acted } = await runItem({ call: "plain", tools: { deny: ["plain"] }, role: "admin" });
    expect(acted).toEqual([]);
  });
});

describe("a batch item's unit of redo is the item", () => {
  it("once: acts in each attempt, under one key", async () => {
    const first = await runItem({ call: "once" });
    const redo = await runItem({ call: "once", attempt: 2 });
    expect([...first.acted, ...redo.acted].map(({ attempt }) => attempt)).toEqual([1, 2]);
    expect(first.acted[0]!.idempotencyKey).toMatch(/^[0-9a-f]{64}$/);
    expect(redo.acted[0]!.idempotencyKey).toBe(first.acted[0]!.idempotencyKey);
  });

  it("ask: acts in the first attempt; a later one fails, because an earlier may have acted", async () => {
    expect((await runItem({ call: "ask" })).acted).toHaveLength(1);
    const redo = await runItem({ call: "ask", attempt: 2 });
    expect(redo.acted).toEqual([]);
    expect(redo.outcome).toMatchObject({ kind: "failed", error: expect.stringContaining("human_input_unavailable") });
  });

  it("a tool that interrupts fails the item with that reason; no model works around it", async () => {
    const { outcome } = await runItem({ call: "human" });
    expect(outcome).toMatchObject({ kind: "failed", error: expect.stringContaining("human_input_unavailable") });
  });
});
