/**
 * A Deputy of its own for an end-to-end file: `wrangler dev` over a fresh state folder, restartable over the same state.
 */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type DevServer, freePort, startDevServer } from "../../scripts/dev-server.ts";

/** The server may be writing the very moment a test looks. */
const LOCK_WAIT_MS = 5_000;

export interface DeputyOptions {
  /** Laid over the caller's environment; `undefined` removes a variable. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** A wrangler configuration from the root of the repository, in place of `wrangler.toml`. */
  readonly config?: string;
}

/** Beside `lead_agent` this serves the graphs of `test/support/graphs`. */
export const WITH_TEST_GRAPHS = "test/support/clients.wrangler.toml";

export class DeputyServer {
  readonly stateDir = mkdtempSync(join(tmpdir(), "deputy-e2e-"));
  readonly lines: string[] = [];
  readonly #env: Record<string, string | undefined>;
  readonly #config: string | undefined;
  #server: DevServer | undefined;
  #port: number | undefined;
  #isMigrated = false;

  constructor(options: DeputyOptions = {}) {
    // A developer's own keys must not reach a test.
    this.#env = {
      ...process.env,
      OPENAI_API_KEY: undefined,
      ANTHROPIC_API_KEY: undefined,
      API_KEYS: undefined,
      ...options.env,
    };
    this.#config = options.config;
  }

  get url(): string {
    if (this.#server === undefined) throw new Error("the server is not running");
    return this.#server.url;
  }

  async start(): Promise<void> {
    this.#port ??= await freePort();
    this.#server = await startDevServer({
      port: this.#port,
      stateDir: this.stateDir,
      isMigrated: this.#isMigrated,
      env: this.#env,
      ...(this.#config === undefined ? {} : { config: this.#config }),
      onLine: (line) => this.lines.push(line),
    });
    this.#isMigrated = true;
  }

  /** SIGKILL to wrangler and workerd alike. */
  async kill(): Promise<void> {
    await this.#server?.kill();
    this.#server = undefined;
  }

  async close(): Promise<void> {
    await this.#server?.stop();
    this.#server = undefined;
    rmSync(this.stateDir, { recursive: true, force: true });
  }

  /** Rows of D1, read from its file: the server is asked nothing, so nothing is woken. */
  query<T>(sql: string): T[] {
    const folder = join(this.stateDir, "v3/d1/miniflare-D1DatabaseObject");
    const file = readdirSync(folder).find((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"));
    if (file === undefined) throw new Error("the local database does not exist");
    const db = new DatabaseSync(join(folder, file), { readOnly: true, timeout: LOCK_WAIT_MS });
    try {
      return db.prepare(sql).all() as T[];
    } finally {
      db.close();
    }
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return (text === "" ? null : JSON.parse(text)) as T;
  }
}

/** Polls until `holds`, at most `timeoutMs`; fails with what was last seen. */
export async function eventually<T>(
  look: () => T | Promise<T>,
  holds: (seen: T) => boolean,
  timeoutMs: number,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const seen = await look();
    if (holds(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms; last seen: ${JSON.stringify(seen)}`);
    await new Promise((next) => {
      setTimeout(next, 100);
    });
  }
}
