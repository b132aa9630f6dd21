/**
 * The whole lead agent as a run gets it, with the scripted model, workspace tools, real admission and children, in one
 * Node process: what `src/agent` gives without Cloudflare.
 */
import { MemorySaver } from "@langchain/langgraph";
import { parseDeputyConfig, type DeputyConfigInput } from "../../src/config.ts";
import { assembleLeadAgent } from "../../src/agent/lead/assemble-lead-agent.ts";
import type { LeadAgentOptions } from "../../src/agent/lead/lead-agent-options.ts";
import { createModelCatalog } from "../../src/agent/models/catalog.ts";
import { CircuitBreakers } from "../../src/agent/models/circuit-breakers.ts";
import { AdmissionController } from "../../src/agent/subagents/admission-controller.ts";
import { memoryJournal } from "../../src/agent/subagents/delegation-journal.ts";
import { spawnProvider } from "../../src/agent/subagents/providers/spawn.ts";
import { SubagentService } from "../../src/agent/subagents/subagent-service.ts";
import type { ModelCatalog } from "../../src/agent/models/model.ts";
import type { BatchService } from "../../src/agent/tools/batch-tools.ts";
import { workspaceTools } from "../../src/agent/tools/workspace-tools.ts";
import { countedIds, fixtureServices } from "./agent-fixture.ts";
import { memoryGrants } from "./delegation-fixture.ts";
import { ManualTimers } from "./manual-timers.ts";

export interface LeadFixtureOptions {
  readonly deputy?: DeputyConfigInput;
  readonly configurable?: Record<string, unknown>;
  readonly recursionLimit?: number;
  readonly models?: ModelCatalog;
  readonly batches?: BatchService;
  readonly allowedSubagents?: readonly string[] | null;
  readonly managedSubagents?: LeadAgentOptions["managedSubagents"];
  readonly agent?: LeadAgentOptions["agent"];
}

export function leadFixture(options: LeadFixtureOptions = {}) {
  const { batches, allowedSubagents, managedSubagents, agent } = options;
  const deputy = parseDeputyConfig(options.deputy ?? {});
  const timers = new ManualTimers();
  const services = fixtureServices();
  // Plain and repeatable; call ids only have to differ.
  let seed = 1;
  const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
  const models =
    options.models ??
    createModelCatalog({
      models: deputy.models,
      credentials: {},
      newId: countedIds("message"),
      random,
      now: () => 0,
      modelIdleMs: 60_000,
    });
  const subagents = new SubagentService({ newId: countedIds("child"), reportFault: () => {} });
  subagents.register(spawnProvider());
  const admission = new AdmissionController({
    config: {
      maxRunning: deputy.subagent_runtime.max_running,
      maxQueued: deputy.subagent_runtime.max_queued,
      policy: deputy.subagent_runtime.admission_policy,
      queueTimeoutMs: deputy.subagent_runtime.queue_timeout_seconds * 1_000,
      classWeights: deputy.subagent_runtime.class_weights,
      grantTtlMs: deputy.subagent_batches.lease_seconds * 1_000,
    },
    grants: memoryGrants(),
    now: () => timers.now(),
    newId: countedIds("grant"),
    timers,
    onBatchTurn: () => {},
  });
  const configurable = { thread_id: "thread-1", run_id: "run-1", ...options.configurable };
  const config = {
    configurable,
    ...(options.recursionLimit === undefined ? {} : { recursionLimit: options.recursionLimit }),
  };
  const parts: LeadAgentOptions = {
    deputy,
    models,
    tools: workspaceTools(),
    services,
    subagents,
    admission,
    journal: memoryJournal(),
    circuits: new CircuitBreakers(deputy.llm_call.circuit, () => timers.now()),
    checkpointer: new MemorySaver(),
    random,
    timers,
    ...(batches === undefined ? {} : { batches }),
    ...(allowedSubagents === undefined ? {} : { allowedSubagents }),
    ...(managedSubagents === undefined ? {} : { managedSubagents }),
    ...(agent === undefined ? {} : { agent }),
  };
  return { ...assembleLeadAgent(config, parts), admission, services, config, options: parts };
}
