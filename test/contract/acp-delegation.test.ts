/** Delegations and batch items whose child is an agent of another process: the executor's and the runner's part. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { agentItemRunner } from "../../src/agent/batches/agent-item-runner.ts";
import { CircuitBreakers } from "../../src/agent/models/circuit-breakers.ts";
import { AdmissionController } from "../../src/agent/subagents/admission-controller.ts";
import { type DelegationJournal, memoryJournal } from "../../src/agent/subagents/delegation-journal.ts";
import { SubagentExecutor } from "../../src/agent/subagents/executor.ts";
import { withoutOperatorSecrets } from "../../src/agent/subagents/operator-secrets.ts";
import { acpProvider } from "../../src/agent/subagents/providers/acp.ts";
import { SubagentRegistry } from "../../src/agent/subagents/registry.ts";
import { SubagentService } from "../../src/agent/subagents/subagent-service.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import { openNodeWebSocket } from "../../src/agent/subagents/node-web-socket.ts";
import { configuredPolicy } from "../../src/agent/tools/configured-policy.ts";
import { parseDeputyConfig } from "../../src/config.ts";
import type { TaskEvent } from "../../src/domain/delegation/task-events.ts";
import { AcpAgentProcess } from "../support/acp-agent-process.ts";
import type { AgentStep } from "../support/acp-agent.ts";
import { acpRequest } from "../support/acp-child.ts";
import { countedIds } from "../support/agent-fixture.ts";
import { memoryGrants } from "../support/delegation-fixture.ts";
import { catalogOf, ReplyModel } from "../support/reply-model.ts";

let agent: AcpAgentProcess;

beforeAll(async () => {
  agent = await AcpAgentProcess.start();
});
afterAll(() => agent.stop());

function service(): SubagentService {
  const seam = new SubagentService({ newId: countedIds("run"), reportFault: () => {} });
  seam.register(acpProvider({ openWebSocket: openNodeWebSocket, timers: systemTimers }));
  return seam;
}

async function delegate(plan: readonly AgentStep[], journal: DelegationJournal = memoryJournal()) {
  const events: TaskEvent[] = [];
  const admission = new AdmissionController({
    config: {
      maxRunning: 1,
      maxQueued: 4,
      policy: "queue",
      queueTimeoutMs: 1_000,
      classWeights: [1, 1],
      grantTtlMs: 1_000,
    },
    grants: memoryGrants(),
    now: Date.now,
    newId: countedIds("grant"),
    onBatchTurn: () => {},
    timers: systemTimers,
  });
  const executor = new SubagentExecutor({ service: service(), admission, journal, timers: systemTimers });
  const { agent: child, parent, prompt, signal } = acpRequest({ url: agent.url() }, plan);
  const outcome = await executor.run({
    taskId: "task-1",
    description: "look",
    prompt: prompt as string,
    agent: child,
    provider: "acp",
    timeoutSeconds: 60,
    parent,
    signal,
    emit: (event) => void events.push(event),
  });
  return { outcome, events };
}

const prompts = async () => (await agent.log("prompt")).length;

test("R158 a delegation to an agent over acp: its steps are told as task_running, its model is named acp, usage is absent", async () => {
  const { outcome, events } = await delegate([{ says: "looking" }, { says: "42" }]);
  expect(outcome).toMatchObject({ status: "completed", result: "42", modelName: "acp", usage: null });
  expect(events.map(({ type }) => type)).toEqual([
    "task_started",
    "task_running",
    "task_running",
    "task_running",
    "task_completed",
  ]);
  expect(events.slice(1, -1)).toMatchObject([{ message_index: 1 }, { message_index: 2 }, { message_index: 3 }]);
});

test("R158 a delegation that the journal knows from before a crash is failed and says why; the agent is not asked", async () => {
  const journal = memoryJournal();
  await delegate([{ says: "42" }], journal);
  const before = await prompts();
  const { outcome, events } = await delegate([{ says: "42" }], journal);
  expect(outcome).toMatchObject({ status: "failed", error: expect.stringMatching(/not asked a second time/) });
  expect(events.map(({ type }) => type)).toEqual(["task_failed"]);
  expect(await prompts()).toBe(before);
});

test("a delegation cancelled before the crash stays cancelled", async () => {
  const journal = memoryJournal();
  await delegate([{ says: "42" }], journal);
  journal.cancel("task-1");
  expect((await delegate([{ says: "42" }], journal)).outcome.status).toBe("cancelled");
});

test.each([
  [[{ says: "partial" }, { exits: 1 }], "failed", /connection to the agent was lost/],
  [[{ says: "no" }, { ends: "refusal" }], "failed", /refused/],
  [[{ ends: "end_turn" }], "failed", /no response|No response|without/i],
] as const)("%j is %s", async (plan, status, error) => {
  const mortal = "exits" in (plan.at(-1) ?? {}) ? await AcpAgentProcess.start() : undefined;
  const shared = agent;
  agent = mortal ?? shared;
  try {
    const { outcome } = await delegate(plan);
    expect(outcome).toMatchObject({ status, error: expect.stringMatching(error) });
  } finally {
    agent = shared;
    await mortal?.stop();
  }
});

test("R158 a batch item runs on an agent over acp, with the headers of the configuration and the snapshot of its batch", async () => {
  const acp = { url: agent.url(), headers: { authorization: "Bearer of-the-operator" } };
  const remote = { description: "works elsewhere", provider: "acp" as const, acp };
  const config = parseDeputyConfig({ subagents: { custom_agents: { remote } } });
  const definition = withoutOperatorSecrets(new SubagentRegistry(config.subagents).find("remote")!);
  const model = new ReplyModel(() => {
    throw new Error("no model of ours is asked");
  });
  const runner = agentItemRunner({
    models: catalogOf(model),
    tools: [],
    subagents: service(),
    random: () => 0,
    now: () => 0,
    newId: countedIds(),
    llmCall: config.llm_call,
    circuits: new CircuitBreakers(config.llm_call.circuit, () => 0),
    policy: configuredPolicy(config.tools),
    report: () => {},
    subagentsConfig: config.subagents,
  });
  const item = { batchId: "b1", owner: "alice", threadId: "t1", ordinal: 0, key: "k", prompt: "count", attempt: 1 };
  const stored: unknown = JSON.parse(JSON.stringify(definition));
  const setting = {
    subagentType: "remote",
    definition: stored,
    submitterRole: "user",
    files: [],
    timeoutMs: 60_000,
  } as const;
  const outcome = await runner.run(item, setting, new AbortController().signal);
  expect(outcome).toEqual({ kind: "completed", result: "you said: count", usage: null, outputs: null });
  const connects = await agent.log("connect");
  expect(connects.at(-1)).toMatchObject({ details: { authorization: "Bearer of-the-operator" } });
});
