/**
 * Deputy's Worker for the bench: the real handler, with thread objects whose meters are in reach, a clock that can be
 * set forward (for frame expiry), D1 that counts what it bills, and wakes kept instead of queued, because a local queue
 * delivers one batch at a time. Nothing else differs from `src/worker.ts`. Only `bench/vitest.config.ts` uses it.
 */
import "../src/async-context.ts";
import configuration from "../deputy.config.ts";
import { deployedGraphs } from "../src/agent/deployed-graphs.ts";
import { createModelCatalog } from "../src/agent/models/catalog.ts";
import { spawnProvider } from "../src/agent/subagents/providers/spawn.ts";
import { SubagentService } from "../src/agent/subagents/subagent-service.ts";
import { workspaceTools } from "../src/agent/tools/workspace-tools.ts";
import { type DeputyConfig, type DeputyConfigInput, parseDeputyConfig } from "../src/config.ts";
import type { ThreadContext, ThreadObjectDeps } from "../src/durable-objects/thread-context.ts";
import { ThreadObjectBase } from "../src/durable-objects/thread-object.ts";
import type { Env } from "../src/env.ts";
import { newUuidV7 } from "../src/platform/identifiers.ts";
import type { BatchWake } from "../src/protocol/queue-messages.ts";
import deputy from "../src/worker.ts";
import { D1Counts, MeteredD1 } from "./metered-d1.ts";

/** What bench files and the objects share: they run in one isolate. */
export class BenchDesk {
  readonly d1 = new D1Counts();
  /** Wakes sent and not yet taken. */
  readonly wakes: BatchWake[] = [];
  /** Laid over `deputy.config.ts` for objects that wake from now on. */
  overrides: DeputyConfigInput = {};
  #clockAheadMs = 0;
  #context: ThreadContext | undefined;

  now = (): number => Date.now() + this.#clockAheadMs;

  advance(ms: number): void {
    this.#clockAheadMs += ms;
  }

  observe = (context: ThreadContext): void => {
    this.#context = context;
  };

  /** The context of the object that woke last. */
  newestContext(): ThreadContext {
    if (this.#context === undefined) throw new Error("no thread object has woken");
    return this.#context;
  }
}

export const desk = new BenchDesk();

const metered = (env: Env): D1Database => new MeteredD1(env.DB, desk.d1).database;

function report(what: string, details: Readonly<Record<string, unknown>>): void {
  console.error(JSON.stringify({ what, ...details }));
}

function graphs(config: DeputyConfig): ThreadObjectDeps["catalog"] {
  const models = createModelCatalog({
    models: config.models,
    credentials: {},
    modelIdleMs: config.runtime.model_idle_seconds * 1_000,
    newId: newUuidV7,
    random: Math.random,
    now: Date.now,
  });
  const reportFault = (what: string, error: unknown): void => {
    report(what, { error: String(error) });
  };
  const subagents = new SubagentService({ newId: newUuidV7, reportFault });
  subagents.register(spawnProvider());
  return deployedGraphs({ config, models, tools: workspaceTools(), subagents, random: Math.random });
}

function threadDeps(env: Env): ThreadObjectDeps {
  const config = parseDeputyConfig({ ...configuration, ...desk.overrides });
  return {
    config,
    catalog: graphs(config),
    db: metered(env),
    sendWake: async (wake) => desk.wakes.push(wake),
    now: desk.now,
    newId: newUuidV7,
    report,
    observe: desk.observe,
  };
}

export class ThreadObject extends ThreadObjectBase {
  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env, threadDeps(env));
  }
}

// oxlint-disable-next-line import/no-default-export -- a Worker is its default export
export default {
  fetch: (request, env) => deputy.fetch(request, { ...env, DB: metered(env) }),
} satisfies ExportedHandler<Env>;
