/**
 * One thread's object, wake by wake, with the test's own tools, clock and D1: everything else is what the Worker composes.
 * A further wake over the same storage is what a crash leaves: the earlier one's memory is gone for it.
 */
import { env } from "cloudflare:test";
import { parseDeputyConfig, type DeputyConfigInput } from "../../src/config.ts";
import { deployedGraphs } from "../../src/agent/deployed-graphs.ts";
import { createModelCatalog } from "../../src/agent/models/catalog.ts";
import { HeaderGates } from "../../src/agent/models/header-gate.ts";
import { acpProvider } from "../../src/agent/subagents/providers/acp.ts";
import { forkProvider } from "../../src/agent/subagents/providers/fork.ts";
import { spawnProvider } from "../../src/agent/subagents/providers/spawn.ts";
import { SubagentService } from "../../src/agent/subagents/subagent-service.ts";
import { systemTimers } from "../../src/agent/subagents/timers.ts";
import type { Tool } from "../../src/agent/tools/tool.ts";
import { workspaceTools } from "../../src/agent/tools/workspace-tools.ts";
import type { ThreadObjectDeps } from "../../src/durable-objects/thread-context.ts";
import { ThreadRuntime } from "../../src/durable-objects/thread-runtime.ts";
import { ensureSchema } from "../../src/platform/durable-storage/object-schema.ts";
import type { RunRecord } from "../../src/platform/durable-storage/run-store.ts";
import { fetchWebSocket } from "../../src/platform/fetch-web-socket.ts";
import { newUuidV7 } from "../../src/platform/identifiers.ts";
import type { WebhookSender } from "../../src/platform/webhook/webhook-sender.ts";
import { createRunBodySchema } from "../../src/protocol/runs.ts";
import { asking } from "./http.ts";
import { inFreshObject } from "./object-storage.ts";

const DAY_MS = 86_400_000;

/** A day ahead: the alarms a test sets are the test's to fire, never workerd's. */
export const tomorrow = (): number => Date.now() + DAY_MS;

export interface WakeOptions {
  readonly tools?: readonly Tool[];
  readonly db?: D1Database;
  readonly config?: DeputyConfigInput;
  readonly report?: ThreadObjectDeps["report"];
  readonly now?: () => number;
  readonly webhooks?: WebhookSender;
  /** The queue of batch wakes; without it they are lost. */
  readonly sendWake?: ThreadObjectDeps["sendWake"];
}

export class ThreadWakes {
  readonly storage: DurableObjectStorage;
  readonly threadId = crypto.randomUUID();

  constructor(storage: DurableObjectStorage) {
    this.storage = storage;
    ensureSchema(storage);
  }

  /** The next wake, before it looked at anything. */
  sleeping(options: WakeOptions = {}): ThreadRuntime {
    return new ThreadRuntime(this.storage, depsOf(options));
  }

  /** The next wake, recovered. */
  async wake(options: WakeOptions = {}): Promise<ThreadRuntime> {
    const runtime = this.sleeping(options);
    await runtime.wake();
    return runtime;
  }

  /** The first wake, with the thread made. */
  async create(options: WakeOptions = {}): Promise<ThreadRuntime> {
    const runtime = await this.wake(options);
    const address = { v: 1, owner: "alice", thread_id: this.threadId, role: "user" } as const;
    await runtime.threads.create(address, { metadata: {}, if_exists: "raise" });
    return runtime;
  }
}

export function withWakes(use: (thread: ThreadWakes) => Promise<void>): Promise<void> {
  return inFreshObject(async (storage) => {
    await use(new ThreadWakes(storage));
  });
}

/** Accepts a run of the lead's script; it goes on behind this call. */
export async function startRun(
  runtime: ThreadRuntime,
  script: string,
  options: Record<string, unknown> = {},
): Promise<RunRecord> {
  const body = createRunBodySchema.parse(asking(script, options));
  const created = await runtime.runs.create({ graph_id: "lead_agent", body });
  if (!created.ok) throw new Error(created.error.message);
  return created.value;
}

function depsOf(options: WakeOptions): ThreadObjectDeps {
  const { tools = [], db = env.DB, config = {}, report = () => undefined, now = tomorrow, webhooks } = options;
  const parsed = parseDeputyConfig(config);
  const models = createModelCatalog({
    models: parsed.models,
    credentials: {},
    modelIdleMs: parsed.runtime.model_idle_seconds * 1_000,
    newId: newUuidV7,
    random: Math.random,
    now: Date.now,
  });
  const subagents = new SubagentService({ newId: newUuidV7, reportFault: (what, error) => report(what, { error }) });
  subagents.register(spawnProvider());
  subagents.register(forkProvider());
  subagents.register(acpProvider({ openWebSocket: fetchWebSocket(new HeaderGates()), timers: systemTimers }));
  const catalog = deployedGraphs({
    config: parsed,
    models,
    tools: [...workspaceTools(), ...tools],
    subagents,
    random: Math.random,
  });
  return {
    config: parsed,
    catalog,
    db,
    sendWake: options.sendWake ?? (async () => undefined),
    now,
    newId: newUuidV7,
    report,
    ...(webhooks === undefined ? {} : { webhooks }),
  };
}
