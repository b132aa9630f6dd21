/**
 * Composition root: the script's handlers and its Durable Object class, with their dependencies. No logic.
 * The first import installs AsyncLocalStorage before LangGraph looks for it.
 */
import "./async-context.ts";
import configuration from "../deputy.config.ts";
import { version } from "../package.json";
import { deployedGraphs } from "./agent/deployed-graphs.ts";
import { childHooks } from "./agent/hooks/chains.ts";
import { createModelCatalog } from "./agent/models/catalog.ts";
import { spawnProvider } from "./agent/subagents/providers/spawn.ts";
import { SubagentService } from "./agent/subagents/subagent-service.ts";
import { workspaceTools } from "./agent/tools/workspace-tools.ts";
import { threadObjectClass } from "./durable-objects/thread-object.ts";
import { type Env, readConfig } from "./env.ts";
import { createGateway, type Gateway } from "./gateway/app.ts";
import { D1BatchRepository } from "./platform/d1/batch-repository.ts";
import { D1RunEventReader } from "./platform/d1/run-event-reader.ts";
import { D1ThreadSearch } from "./platform/d1/thread-search.ts";
import { defaultAssistantId, newUuidV7 } from "./platform/identifiers.ts";
import { DurableThreadDirectory } from "./platform/thread-directory.ts";
import { LEAD_GRAPH_ID } from "./protocol/identifiers.ts";

const FEATURES = ["threads", "runs", "run_events", "files", "batches", "subagents"];

function report(what: string, details: Readonly<Record<string, unknown>>): void {
  // oxlint-disable-next-line no-console -- the Worker's log is its console
  console.error(JSON.stringify({ what, ...details }));
}

/** What objects and consumers share; built once per isolate, when the first event comes. */
function compose(env: Env) {
  const config = readConfig(configuration, env);
  const models = createModelCatalog({
    models: config.models,
    credentials: {
      openaiApiKey: env.OPENAI_API_KEY,
      openaiBaseUrl: env.OPENAI_BASE_URL,
      openaiModel: env.OPENAI_MODEL,
    },
    modelIdleMs: config.runtime.model_idle_seconds * 1_000,
    newId: newUuidV7,
    random: Math.random,
    now: Date.now,
  });
  const subagents = new SubagentService({
    newId: newUuidV7,
    reportFault: (what, error) => report(what, { error: String(error) }),
  });
  subagents.register(spawnProvider());
  const tools = workspaceTools();
  const catalog = deployedGraphs({ config, models, tools, subagents, random: Math.random });
  return { config, models, subagents, tools, catalog };
}

let composed: ReturnType<typeof compose> | undefined;
const shared = (env: Env) => (composed ??= compose(env));

export const ThreadObject = threadObjectClass((env) => ({
  config: shared(env).config,
  catalog: shared(env).catalog,
  db: env.DB,
  sendWake: (wake) => env.BATCH_WAKES.send(wake),
  now: Date.now,
  newId: newUuidV7,
  report,
}));

let gateway: Gateway | undefined;

function gatewayFor(env: Env): Gateway {
  const { config } = shared(env);
  const batches = new D1BatchRepository(env.DB);
  return createGateway({
    auth: { apiKeys: env.API_KEYS, devOwner: env.DEV_OWNER },
    threads: new DurableThreadDirectory(env.THREADS),
    threadSearch: new D1ThreadSearch(env.DB),
    events: new D1RunEventReader(env.DB),
    batches,
    graphs: {
      graphs: () =>
        [LEAD_GRAPH_ID, ...Object.keys(config.graphs)].map((graph_id) => ({
          graph_id,
          name: graph_id,
          description: null,
        })),
    },
    assistantId: defaultAssistantId,
    newId: newUuidV7,
    pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
    log: (entry) => report("gateway", entry),
    version,
    previewChars: config.subagent_batches.preview_chars,
    features: FEATURES,
  });
}

export default {
  fetch: (request, env) => (gateway ??= gatewayFor(env)).fetch(request),
  queue: async () => {},
  scheduled: async () => {},
} satisfies ExportedHandler<Env>;
