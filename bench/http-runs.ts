/**
 * Runs per second over HTTP, and how long a client waits for a run's first and last frame: one-turn runs of 200 tokens
 * against `wrangler dev`, each on a thread of its own that exists already. Bounded in runs and in time.
 * Measured through the port of `wrangler dev` and, where it is found, on workerd's own port, because the development
 * proxy between them is no part of Deputy. Times of one machine: a ratio between two rows says more than a row.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDevServer } from "../scripts/dev-server.ts";
import { type BenchRow, percentile, rounded } from "./bench-row.ts";
import { workerPort } from "./worker-port.ts";
import { ONE_TURN_PROMPT } from "./prompts.ts";

const CLIENTS = [1, 32] as const;
const RUNS_MAX = 400;
const SECONDS_MAX = 10;
/** Runs before the clock starts: the first ones compile and compose. */
const WARM_UP_RUNS = 8;
const SHARES = [0.5, 0.95, 0.99] as const;

interface RunTimes {
  readonly firstFrameMs: number;
  readonly lastFrameMs: number;
}

export async function httpRunsBench(): Promise<BenchRow[]> {
  const stateDir = mkdtempSync(join(tmpdir(), "deputy-bench-"));
  const lines: string[] = [];
  const env = { ...process.env, API_KEYS: undefined, OPENAI_API_KEY: undefined, DEPUTY_OVERRIDES: undefined };
  const server = await startDevServer({ stateDir, env, onLine: (line) => lines.push(line) });
  try {
    const port = await workerPort(server.port);
    const own = port === undefined ? [] : [{ label: "workerd's own port", url: `http://127.0.0.1:${port}` }];
    const targets = [{ label: "wrangler dev", url: server.url }, ...own];
    const rows: BenchRow[] = [];
    for (const target of targets) {
      await measure(target.url, { clients: CLIENTS[0], runsMax: WARM_UP_RUNS });
      for (const clients of CLIENTS) rows.push(...(await benchClients(target, clients)));
    }
    return rows;
  } catch (error) {
    throw new Error(`the HTTP bench failed; wrangler's last lines:\n${lines.slice(-20).join("\n")}`, { cause: error });
  } finally {
    await server.stop();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

async function benchClients(target: { label: string; url: string }, clients: number): Promise<BenchRow[]> {
  const { runs, seconds } = await measure(target.url, { clients, runsMax: RUNS_MAX });
  const name = `runs over HTTP, ${target.label}, ${clients} ${clients === 1 ? "client" : "clients"}`;
  return [
    { name, value: rounded(runs.length / seconds), unit: "runs/s" },
    ...latencies(
      `${name}, first frame`,
      runs.map((run) => run.firstFrameMs),
    ),
    ...latencies(
      `${name}, last frame`,
      runs.map((run) => run.lastFrameMs),
    ),
  ];
}

function latencies(name: string, times: readonly number[]): BenchRow[] {
  return SHARES.map((share) => ({
    name: `${name}, p${share * 100}`,
    value: rounded(percentile(times, share)),
    unit: "ms",
  }));
}

/** Each client runs one after the other until the runs or the seconds are spent. */
async function measure(
  url: string,
  { clients, runsMax }: { clients: number; runsMax: number },
): Promise<{ runs: RunTimes[]; seconds: number }> {
  const threads = await Promise.all(Array.from({ length: clients }, () => newThread(url)));
  const runs: RunTimes[] = [];
  let started = 0;
  const from = performance.now();
  const until = from + SECONDS_MAX * 1_000;
  await Promise.all(
    threads.map(async (threadId) => {
      while (started < runsMax && performance.now() < until) {
        started += 1;
        runs.push(await timeRun(url, threadId));
      }
    }),
  );
  return { runs, seconds: (performance.now() - from) / 1_000 };
}

async function newThread(url: string): Promise<string> {
  const response = await post(`${url}/threads`, {});
  return (await response.json<{ thread_id: string }>()).thread_id;
}

async function timeRun(url: string, threadId: string): Promise<RunTimes> {
  const from = performance.now();
  const response = await post(`${url}/threads/${threadId}/runs/stream`, {
    assistant_id: "lead_agent",
    input: { messages: [{ type: "human", content: ONE_TURN_PROMPT }] },
    stream_mode: ["values", "messages-tuple"],
  });
  let firstFrameMs = 0;
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (firstFrameMs === 0 && text.includes("\n\n")) firstFrameMs = performance.now() - from;
  }
  const lastFrameMs = performance.now() - from;
  if (!text.includes("event: values") || text.includes("event: error")) throw new Error(`a run failed: ${text}`);
  return { firstFrameMs, lastFrameMs };
}

async function post(url: string, body: unknown): Promise<Response> {
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`POST ${url}: ${response.status} ${await response.text()}`);
  return response;
}
