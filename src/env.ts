/**
 * The Worker's bindings and variables, as `wrangler.toml` and the deploy environment name them, and the configuration
 * they make together with `deputy.config.ts`.
 */
import { ConfigError, type DeputyConfig, type DeputyConfigInput, parseDeputyConfig } from "./config.ts";
import type { BatchWake } from "./protocol/queue-messages.ts";

export interface Env {
  DB: D1Database;
  THREADS: DurableObjectNamespace;
  BATCH_WAKES: Queue<BatchWake>;
  /** JSON `{ "<key>": { "owner", "role" } }`. Unset outside `npm run dev` means every request is refused. */
  API_KEYS?: string;
  /** Set by `npm run dev` alone: who a request without a key is, while `API_KEYS` is unset. */
  DEV_OWNER?: string;
  OPENAI_API_KEY?: string;
  OPENAI_BASE_URL?: string;
  OPENAI_MODEL?: string;
  ANTHROPIC_API_KEY?: string;
  ANTHROPIC_BASE_URL?: string;
  ANTHROPIC_MODEL?: string;
  /** Signs webhooks; unset, no run may ask for one. */
  WEBHOOK_SECRET?: string;
  /** Workers AI. Bound in deployed environments only: at the top level it stops `wrangler dev` without an account. */
  AI?: Ai;
  /** JSON laid over `deputy.config.ts`, section by section: for one environment or one experiment. */
  DEPUTY_OVERRIDES?: string;
  /** The deployed version; not bound locally, where each start would be another one. */
  CF_VERSION_METADATA?: { readonly id: string };
  /** `1` in tests alone: routes and failpoints that exist for them. A deployed environment that sets it is refused. */
  TEST_ROUTES?: string;
  /** A test's server on loopback that is asked at every failpoint (platform/failpoints.ts). Needs `TEST_ROUTES=1`. */
  FAILPOINT_URL?: string;
}

/** Routes for test suites. A deployed environment, which alone binds Workers AI, serves none whatever it asks for. */
export function servesTestRoutes({ TEST_ROUTES, AI }: Pick<Env, "TEST_ROUTES" | "AI">): boolean {
  return TEST_ROUTES === "1" && AI === undefined;
}

/** Throws `ConfigError` naming every bad field. */
export function readConfig(configuration: DeputyConfigInput, env: Pick<Env, "DEPUTY_OVERRIDES">): DeputyConfig {
  return parseDeputyConfig(
    env.DEPUTY_OVERRIDES ? merge(configuration, parseOverrides(env.DEPUTY_OVERRIDES)) : configuration,
  );
}

function parseOverrides(text: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (!isObject(parsed)) throw new ConfigError("DEPUTY_OVERRIDES must be one JSON object");
  return parsed;
}

/** Objects are merged key by key, everything else is replaced. */
function merge(
  base: Record<string, unknown> | DeputyConfigInput,
  over: Record<string, unknown>,
): Record<string, unknown> {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key];
    merged[key] = isObject(below) && isObject(value) ? merge(below, value) : value;
  }
  return merged;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
