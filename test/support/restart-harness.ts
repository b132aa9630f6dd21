/**
 * Deputy's built bundle in Miniflare over one state folder, restartable: what a new process finds on disk, without
 * `wrangler dev` around it. For facts that must read the same before and after a restart.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";

export class RestartHarness {
  readonly #root = mkdtempSync(join(tmpdir(), "deputy-restart-"));
  #miniflare: Miniflare | undefined;

  /** Bundles the Worker as a deployment would, starts it, and applies the migrations. */
  async start(): Promise<void> {
    const wrangler = [
      "node_modules/wrangler/bin/wrangler.js",
      "deploy",
      "--dry-run",
      "--outdir",
      join(this.#root, "bundle"),
    ];
    execFileSync(process.execPath, wrangler, {
      env: { ...process.env, WRANGLER_SEND_METRICS: "false" },
      stdio: "pipe",
    });
    this.#open();
    await this.#migrate();
  }

  /** Ends workerd and starts another over the same state. */
  async restart(): Promise<void> {
    await this.#miniflare?.dispose();
    this.#open();
  }

  async close(): Promise<void> {
    await this.#miniflare?.dispose();
    rmSync(this.#root, { recursive: true, force: true });
  }

  async text(
    method: string,
    path: string,
    options: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<string> {
    const response = await this.#engine().dispatchFetch(`http://deputy.test${path}`, {
      method,
      headers: { "content-type": "application/json", ...options.headers },
      ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text;
  }

  async json<T>(method: string, path: string, body?: unknown): Promise<T> {
    return JSON.parse(await this.text(method, path, { body })) as T;
  }

  #engine(): Miniflare {
    if (this.#miniflare === undefined) throw new Error("not started");
    return this.#miniflare;
  }

  #open(): void {
    this.#miniflare = new Miniflare(
      convertV4MiniflareOptions({
        modulesRoot: join(this.#root, "bundle"),
        modules: this.#modules(),
        compatibilityDate: "2026-11-01",
        compatibilityFlags: ["nodejs_compat"],
        bindings: { DEV_OWNER: "local" },
        durableObjects: { THREADS: { className: "ThreadObject", useSQLite: true } },
        d1Databases: { DB: "deputy" },
        queueProducers: { BATCH_WAKES: "deputy-batch-wakes" },
        queueConsumers: { "deputy-batch-wakes": { maxBatchTimeout: 0 } },
        resourcePersistencePath: join(this.#root, "state"),
      }),
    );
  }

  /** The entry first, then what the bundler split off. */
  #modules(): { type: "ESModule"; path: string }[] {
    const bundle = join(this.#root, "bundle");
    const split = readdirSync(bundle).filter((name) => name.endsWith(".js") && name !== "worker.js");
    return ["worker.js", ...split].map((name) => ({ type: "ESModule" as const, path: join(bundle, name) }));
  }

  async #migrate(): Promise<void> {
    const db = await this.#engine().getD1Database("DB");
    for (const file of readdirSync("migrations").toSorted()) {
      const sql = readFileSync(join("migrations", file), "utf8").replaceAll(/--.*$/gm, "");
      const statements = sql.split(";").map((statement) => statement.trim());
      await db.batch(statements.filter((statement) => statement !== "").map((statement) => db.prepare(statement)));
    }
  }
}
