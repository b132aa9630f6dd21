/**
 * The Worker's bindings and variables, as `wrangler.toml` and the deploy environment name them.
 * Owns no parsing of requests; secrets arrive as strings and are parsed where they are used.
 */
export interface Env {
  DB: D1Database;
  THREADS: DurableObjectNamespace;
  BATCH_WAKES: Queue;
  /** JSON `{ "<key>": { "owner", "role" } }`. Unset outside `npm run dev` means every request is refused. */
  API_KEYS?: string;
  /** The owner of every request while `API_KEYS` is unset; only `npm run dev` sets it. */
  DEV_OWNER?: string;
  OPENAI_API_KEY?: string;
  OPENAI_BASE_URL?: string;
  OPENAI_MODEL?: string;
}
