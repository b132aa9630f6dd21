/**
 * Starts the whole of Deputy with `wrangler dev`: what `npm run dev`, the demo, the end-to-end tests and the benchmarks
 * share. Owns the child process group and the migrations of the local database; state lives under `stateDir`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import configuration from "../deputy.config.ts";
import { readConfig } from "../src/env.ts";
import { environmentFile } from "./environment-file.ts";

const ROOT = resolve(fileURLToPath(import.meta.url), "../..");
const WRANGLER = join(ROOT, "node_modules/wrangler/bin/wrangler.js");

/** workerd compiles the bundle and answers; slow machines need several seconds. */
const READY_TIMEOUT_MS = 90_000;
const POLL_MS = 50;
/** The first answer compiles the script. */
const ANSWER_TIMEOUT_MS = 30_000;

/** Variables of the caller's environment that reach the Worker. */
const PASSED = [
  "OPENAI_API_KEY",
  "OPENAI_BASE_URL",
  "OPENAI_MODEL",
  "ANTHROPIC_API_KEY",
  "ANTHROPIC_BASE_URL",
  "ANTHROPIC_MODEL",
  "API_KEYS",
  "WEBHOOK_SECRET",
  "DEPUTY_OVERRIDES",
  "TEST_ROUTES",
  "FAILPOINT_URL",
] as const;

export interface DevServerOptions {
  readonly port?: number;
  readonly stateDir?: string;
  /** The state's database is up to date: an earlier start saw to it. Saves a process of wrangler's. */
  readonly isMigrated?: boolean;
  /** Replaces the caller's environment for `PASSED`. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where wrangler's inspector listens; any free port for 0, which is the default. */
  readonly inspectorPort?: number;
  /** A wrangler configuration from the root of the repository, in place of `wrangler.toml`. */
  readonly config?: string;
  /** Every line wrangler prints. */
  readonly onLine?: (line: string) => void;
}

export interface DevServer {
  readonly url: string;
  readonly port: number;
  readonly stateDir: string;
  /** Ends wrangler and workerd in good order. */
  stop(): Promise<void>;
  /** SIGKILL to the whole process group, as a crash would. */
  kill(): Promise<void>;
  /** Resolves with the exit code when wrangler ended by itself. */
  readonly exited: Promise<number | null>;
}

/** Resolves once the Worker answers; rejects with wrangler's last lines when it does not. */
export async function startDevServer(options: DevServerOptions = {}): Promise<DevServer> {
  const env = options.env ?? process.env;
  // The same check the Worker makes, before anything is started: its message is what the operator needs to see.
  readConfig(configuration, env["DEPUTY_OVERRIDES"] ? { DEPUTY_OVERRIDES: env["DEPUTY_OVERRIDES"] } : {});
  const port = options.port ?? (await freePort());
  const stateDir = resolve(options.stateDir ?? join(ROOT, ".wrangler/state"));
  mkdirSync(stateDir, { recursive: true });
  const lines: string[] = [];
  const onLine = (line: string) => {
    lines.push(line);
    if (lines.length > 200) lines.shift();
    options.onLine?.(line);
  };
  const chosen = options.config === undefined ? [] : ["--config", join(ROOT, options.config)];
  if (options.isMigrated !== true) {
    const migrated = spawnWrangler(
      ["d1", "migrations", "apply", "DB", "--local", "--persist-to", stateDir, ...chosen],
      onLine,
    );
    if ((await exitOf(migrated)) !== 0) throw new Error(`migrations failed:\n${lines.join("\n")}`);
  }
  const variables = writeVariables(stateDir, port, env);
  const ports = ["--port", String(port), "--inspector-port", String(options.inspectorPort ?? 0)];
  const args = ["dev", "--local", "--ip", "127.0.0.1", ...ports];
  const child = spawnWrangler(
    [...args, ...chosen, "--persist-to", stateDir, "--env-file", variables, "--show-interactive-dev-session=false"],
    onLine,
  );
  const exited = exitOf(child).finally(() => {
    rmSync(variables, { force: true });
  });
  const url = `http://127.0.0.1:${port}`;
  try {
    await answers(url, exited, lines);
  } catch (error) {
    signalGroup(child, "SIGKILL");
    throw error;
  }
  const end = async (signal: NodeJS.Signals) => {
    signalGroup(child, signal);
    await exited;
    // Wrangler may leave before workerd does.
    signalGroup(child, "SIGKILL");
  };
  return { url, port, stateDir, exited, stop: () => end("SIGTERM"), kill: () => end("SIGKILL") };
}

export function freePort(): Promise<number> {
  return new Promise((found, failed) => {
    const server = createServer();
    server.once("error", failed);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => {
        if (address !== null && typeof address === "object") found(address.port);
        else failed(new Error("no free port"));
      });
    });
  });
}

const running = new Set<ChildProcess>();

/** Whatever way this process ends, what it started ends with it; detached groups would go on alone. */
process.on("exit", () => {
  for (const child of running) signalGroup(child, "SIGKILL");
});

function spawnWrangler(args: readonly string[], onLine: (line: string) => void): ChildProcess {
  const child = spawn(process.execPath, [WRANGLER, ...args], {
    cwd: ROOT,
    // A group of its own: killing wrangler alone leaves workerd serving.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...process.env,
      CI: "true",
      WRANGLER_SEND_METRICS: "false",
      // Asking the network where this machine is takes seconds offline, and nothing here needs the answer.
      CLOUDFLARE_CF_FETCH_ENABLED: "false",
      WRANGLER_HIDE_BANNER: "true",
      FORCE_COLOR: "0",
    },
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  for (const stream of [child.stdout, child.stderr]) {
    let rest = "";
    stream?.setEncoding("utf8").on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) onLine(line);
    });
  }
  return child;
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((ended) => {
    child.once("exit", (code) => {
      ended(code);
    });
    child.once("error", () => {
      ended(1);
    });
  });
}

/** Secrets go through a file only this user can read, not through the process list. */
function writeVariables(stateDir: string, port: number, env: Readonly<Record<string, string | undefined>>): string {
  const path = join(stateDir, `dev-${port}.env`);
  const variables: Record<string, string> = {};
  for (const name of PASSED) {
    const value = env[name];
    if (value !== undefined && value !== "") variables[name] = value;
  }
  if (variables["API_KEYS"] === undefined) variables["DEV_OWNER"] = "local";
  writeFileSync(path, environmentFile(variables), { mode: 0o600 });
  return path;
}

async function answers(url: string, exited: Promise<number | null>, lines: readonly string[]): Promise<void> {
  let ended = false;
  void exited.finally(() => {
    ended = true;
  });
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (Date.now() < deadline) {
    if (ended) throw new Error(`wrangler dev ended before it was ready:\n${lines.join("\n")}`);
    // A script that does not compile is not served: the request would wait for ever.
    const ok = await fetch(`${url}/ok`, { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) }).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((next) => {
      setTimeout(next, POLL_MS);
    });
  }
  throw new Error(`wrangler dev was not ready in ${READY_TIMEOUT_MS / 1_000} s:\n${lines.join("\n")}`);
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is gone already.
  }
}
