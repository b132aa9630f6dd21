/**
 * Composition root: the script's handlers and its Durable Object class, with their dependencies. No logic.
 * The first import installs AsyncLocalStorage before LangGraph looks for it.
 */
import "./async-context.ts";
import configuration from "../deputy.config.ts";
import { version as langgraphVersion } from "@langchain/langgraph/package.json";
import { version } from "../package.json";
import { parseDeputyConfig } from "./config.ts";
import { deployedGraphs } from "./agent/deployed-graphs.ts";
import { deployedDescriptions } from "./agent/graphs/deployed-descriptions.ts";
import { operatorAgents } from "./agent/lead/operator-agents.ts";
import { createModelCatalog } from "./agent/models/catalog.ts";
import { CircuitBreakers } from "./agent/models/circuit-breakers.ts";
import { HeaderGates } from "./agent/models/header-gate.ts";
import { acpProvider } from "./agent/subagents/providers/acp.ts";
import { forkProvider } from "./agent/subagents/providers/fork.ts";
import { spawnProvider } from "./agent/subagents/providers/spawn.ts";
import { operatorSummaries } from "./agent/subagents/operator-summaries.ts";
import { SubagentService } from "./agent/subagents/subagent-service.ts";
import { systemTimers } from "./agent/subagents/timers.ts";
import { assertToolNames, configuredPolicy } from "./agent/tools/configured-policy.ts";
import { workspaceTools } from "./agent/tools/workspace-tools.ts";
import { ThreadObjectBase } from "./durable-objects/thread-object.ts";
import { type Env, readConfig, servesTestRoutes } from "./env.ts";
import { createGateway, type Gateway } from "./gateway/app.ts";
import { D1Assistants } from "./platform/d1/assistants.ts";
import { D1BatchRepository } from "./platform/d1/batch-repository.ts";
import { systemPurgeFences } from "./platform/d1/fence.ts";
import { D1OwnerRows } from "./platform/d1/owner-rows.ts";
import { D1RunEventReader } from "./platform/d1/run-event-reader.ts";
import { systemRetire } from "./platform/d1/retention.ts";
import { D1RunSearch } from "./platform/d1/run-search.ts";
import { D1SubagentDefinitions } from "./platform/d1/subagent-definitions.ts";
import { D1ThreadSearch } from "./platform/d1/thread-search.ts";
import { failpointsOf } from "./platform/failpoints.ts";
import { fetchWebSocket } from "./platform/fetch-web-socket.ts";
import { defaultAssistantId, newUuidV7 } from "./platform/identifiers.ts";
import { DurableThreadDirectory } from "./platform/thread-directory.ts";
import { webhookSender } from "./platform/webhook/webhook-sender.ts";
import { LEAD_GRAPH_ID } from "./protocol/identifiers.ts";
import { THREAD_RPC_VERSION } from "./protocol/thread-rpc.ts";
import { agentItemRunner } from "./agent/batches/agent-item-runner.ts";
import { type BatchConsumerDeps, consumeBatchWakes } from "./queue-consumers/batch-items.ts";
import { type BatchSweepDeps, sweepBatches } from "./queue-consumers/batch-sweep.ts";
import { consumeDeadLetters } from "./queue-consumers/dead-letters.ts";
import type { GrantReturn } from "./agent/batches/item-runner.ts";

// A bad configuration stops the upload or the start, not the first request.
assertToolNames(parseDeputyConfig(configuration).tools, workspaceTools());

const FEATURES = ["threads", "runs", "run_events", "files", "batches", "subagents", "assistants"];

function report(what: string, details: Readonly<Record<string, unknown>>): void {
  // oxlint-disable-next-line no-console -- the Worker's log is its console
  console.error(JSON.stringify({ what, ...details }));
}

/** What objects and consumers share; built once per isolate, when the first event comes. */
function compose(env: Env) {
  const config = readConfig(configuration, env);
  const gates = new HeaderGates();
  const models = createModelCatalog({
    gates,
    models: config.models,
    credentials: {
      openaiApiKey: env.OPENAI_API_KEY,
      openaiBaseUrl: env.OPENAI_BASE_URL,
      openaiModel: env.OPENAI_MODEL,
      anthropicApiKey: env.ANTHROPIC_API_KEY,
      anthropicBaseUrl: env.ANTHROPIC_BASE_URL,
      anthropicModel: env.ANTHROPIC_MODEL,
      workersAi: env.AI,
    },
    modelIdleMs: config.runtime.model_idle_seconds * 1_000,
    newId: newUuidV7,
    random: Math.random,
    now: Date.now,
  });
  const subagents = new SubagentService({
    newId: newUuidV7,
    reportFault: (what, error) => report(what, { error }),
  });
  subagents.register(spawnProvider());
  subagents.register(forkProvider());
  subagents.register(acpProvider({ openWebSocket: fetchWebSocket(gates), timers: systemTimers }));
  const tools = workspaceTools();
  const catalog = deployedGraphs({ config, models, tools, subagents, random: Math.random });
  const itemCircuits = new CircuitBreakers(config.llm_call.circuit, Date.now);
  const { allowed_hosts: allowedHosts, timeout_seconds } = config.webhooks;
  const webhooks = webhookSender({
    secret: env.WEBHOOK_SECRET,
    allowedHosts,
    timeoutMs: timeout_seconds * 1_000,
    // Called without a receiver: workerd refuses its global `fetch` as a method of another object.
    fetchIn: (scope) => gates.wrap((input, init) => fetch(input, init), scope),
  });
  return { config, models, subagents, tools, catalog, itemCircuits, failpoint: failpointsOf(env), webhooks };
}

let composed: ReturnType<typeof compose> | undefined;
const shared = (env: Env) => (composed ??= compose(env));

export class ThreadObject extends ThreadObjectBase {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, {
      config: shared(env).config,
      catalog: shared(env).catalog,
      db: env.DB,
      webhooks: shared(env).webhooks,
      sendWake: (wake) => env.BATCH_WAKES.send(wake),
      now: Date.now,
      newId: newUuidV7,
      report,
      failpoint: shared(env).failpoint,
      version: env.CF_VERSION_METADATA?.id,
    });
  }
}

let gateway: Gateway | undefined;

function gatewayFor(env: Env): Gateway {
  const { config, models } = shared(env);
  const batches = new D1BatchRepository(env.DB);
  return createGateway({
    testRoutes: servesTestRoutes(env),
    langgraphVersion,
    auth: { apiKeys: env.API_KEYS, devOwner: env.DEV_OWNER },
    threads: new DurableThreadDirectory(env.THREADS),
    threadSearch: new D1ThreadSearch(env.DB),
    runSearch: new D1RunSearch(env.DB),
    owners: new D1OwnerRows(env.DB),
    events: new D1RunEventReader(env.DB),
    batches,
    graphs: {
      graphs: () =>
        [LEAD_GRAPH_ID, ...Object.keys(config.graphs)].map((graph_id) => ({
          graph_id,
          name: graph_id,
          description: null,
        })),
      models: () => models.names(),
      describe: deployedDescriptions(config.graphs),
    },
    assistantId: defaultAssistantId,
    assistants: new D1Assistants(env.DB),
    operatorAgents: operatorAgents(config.agents),
    subagents: {
      operators: () => operatorSummaries(config.subagents),
      managed: new D1SubagentDefinitions(env.DB),
    },
    newId: newUuidV7,
    now: Date.now,
    pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    log: (entry) => report("gateway", entry),
    version,
    previewChars: config.subagent_batches.preview_chars,
    features: FEATURES,
  });
}

/** The object's address as the system has it: a consumer acts for the thread's owner. */
const systemAddress = (owner: string, threadId: string) =>
  ({ v: THREAD_RPC_VERSION, owner, thread_id: threadId, role: "user" }) as const;

function grantsOf(env: Env): GrantReturn {
  const threads = new DurableThreadDirectory(env.THREADS);
  return {
    async returnGrant({ owner, threadId, batchId, grantId }) {
      const grant = { batch_id: batchId, grant_id: grantId };
      await threads.stub(owner, threadId).returnGrant(systemAddress(owner, threadId), grant);
    },
  };
}

function consumerDeps(env: Env): BatchConsumerDeps {
  const { config, models, tools, subagents, itemCircuits, failpoint } = shared(env);
  const { lease_seconds, result_chars_max } = config.subagent_batches;
  return {
    rows: new D1BatchRepository(env.DB),
    grants: grantsOf(env),
    runner: agentItemRunner({
      models,
      tools,
      subagents,
      random: Math.random,
      now: Date.now,
      newId: newUuidV7,
      llmCall: config.llm_call,
      approvals: config.tools.approval,
      circuits: itemCircuits,
      subagentsConfig: config.subagents,
      policy: configuredPolicy(config.tools),
      report,
      failpoint,
    }),
    timers: systemTimers,
    now: Date.now,
    newId: newUuidV7,
    leaseMs: lease_seconds * 1_000,
    resultCharsMax: result_chars_max,
    log: report,
    failpoint,
  };
}

function sweepDeps(env: Env): BatchSweepDeps {
  const threads = new DurableThreadDirectory(env.THREADS);
  return {
    repository: new D1BatchRepository(env.DB),
    async poke({ owner, threadId, batchIds }) {
      const poked = await threads.stub(owner, threadId).pokeBatches(systemAddress(owner, threadId), batchIds);
      return poked.ok ? "poked" : "no_thread";
    },
    now: Date.now,
    log: report,
  };
}

/** By the end of its name, so that every environment may prefix its queues. */
const DEAD_LETTER_QUEUE = /dead-letters$/;

export default {
  fetch: (request, env) => (gateway ??= gatewayFor(env)).fetch(request),
  queue: (batch, env) =>
    DEAD_LETTER_QUEUE.test(batch.queue)
      ? consumeDeadLetters(batch, { grants: grantsOf(env), log: report })
      : consumeBatchWakes(batch, consumerDeps(env)),
  async scheduled(_controller, env) {
    await sweepBatches(sweepDeps(env));
    await systemPurgeFences(env.DB, Date.now());
    await systemRetire(env.DB, shared(env).config.retention, Date.now());
  },
} satisfies ExportedHandler<Env>;
