/**
 * LangGraph's own server in a process of its own, over a state folder of its own.
 * Its graphs are those of `langgraph.json` unless it is given others. It needs the packages of `bench/peers`, and says so when they are not there.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { freePort } from "../../scripts/dev-server.ts";
import { eventually } from "./deputy-server.ts";

const PEERS = resolve("bench/peers/node_modules");
const SERVER = join(PEERS, "@langchain/langgraph-api/dist");
const START_MS = 60_000;
const STOP_MS = 10_000;

export interface LangGraphServerOptions {
  readonly stateDir?: string;
  /** `path:export` by id, from the root of the repository; those of `langgraph.json` when absent. */
  readonly graphs?: Readonly<Record<string, string>>;
}

export class LangGraphServer {
  readonly url: string;
  readonly lines: string[] = [];
  readonly #process: ChildProcess;
  readonly #stateDir: string;

  private constructor(port: number, { stateDir, graphs }: Required<LangGraphServerOptions>) {
    this.url = `http://127.0.0.1:${port}`;
    this.#stateDir = stateDir;
    const payload = { port, nWorkers: 2, host: "127.0.0.1", cwd: stateDir, graphs: pathsFrom(stateDir, graphs) };
    const preload = pathToFileURL(join(SERVER, "preload.mjs")).href;
    const entry = join(SERVER, "cli/entrypoint.mjs");
    // Node reads TypeScript itself, so no loader stands between this process and the server's.
    const args = ["--import", preload, entry, String(process.pid), JSON.stringify(payload)];
    this.#process = spawn(process.execPath, args, { cwd: stateDir, env: serverEnvironment() });
    for (const output of [this.#process.stdout, this.#process.stderr]) {
      output?.on("data", (text: Buffer) => this.lines.push(...text.toString().split("\n")));
    }
  }

  static async start(options: LangGraphServerOptions = {}): Promise<LangGraphServer> {
    if (!existsSync(SERVER)) {
      throw new Error(
        "LangGraph's own server is not installed: run `npm ci --prefix bench/peers`, then this test again",
      );
    }
    const { stateDir = mkdtempSync(join(tmpdir(), "deputy-langgraph-")), graphs = ownGraphs() } = options;
    const server = new LangGraphServer(await freePort(), { stateDir, graphs });
    const seen = await eventually(
      () => server.#answers(),
      (state) => state !== "starting",
      START_MS,
    );
    if (seen === "ended") throw new Error(`LangGraph's server ended at its start:\n${server.lines.join("\n")}`);
    return server;
  }

  /** Ends its process and waits for it; state is flushed to the folder. */
  async stop(): Promise<string> {
    if (this.#process.exitCode === null) {
      const ended = new Promise((settle) => this.#process.once("exit", settle));
      this.#process.kill("SIGTERM");
      const late = setTimeout(() => this.#process.kill("SIGKILL"), STOP_MS);
      await ended;
      clearTimeout(late);
    }
    return this.#stateDir;
  }

  async close(): Promise<void> {
    rmSync(await this.stop(), { recursive: true, force: true });
  }

  async #answers(): Promise<"starting" | "up" | "ended"> {
    if (this.#process.exitCode !== null) return "ended";
    const response = await fetch(`${this.url}/ok`).catch(() => undefined);
    return response?.ok === true ? "up" : "starting";
  }
}

function ownGraphs(): Record<string, string> {
  return (JSON.parse(readFileSync("langgraph.json", "utf8")) as { graphs: Record<string, string> }).graphs;
}

/** The server takes paths from its own folder, and looks for `@langchain/langgraph` from the first of them. */
function pathsFrom(folder: string, graphs: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(graphs).map(([id, spec]) => [id, relative(folder, resolve(spec))]));
}

/** A developer's own keys must not reach a test: no provider, no tracing. */
function serverEnvironment(): Record<string, string | undefined> {
  const own = Object.entries(process.env).filter(
    ([name]) => !/^(OPENAI|ANTHROPIC|LANGSMITH|LANGCHAIN|NODE_OPTIONS|VITEST)/.test(name),
  );
  return { ...Object.fromEntries(own), LANGGRAPH_SCHEMA_RESOLVE_TIMEOUT_MS: "120000", NODE_ENV: "development" };
}
