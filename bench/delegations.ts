/**
 * What delegating costs beside the rows (`run-rows`): the CPU of one delegation, and the memory of many at once.
 * Against `wrangler dev`, because workerd's CPU time and the isolate's heap are read from outside. Owns the two workloads.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DevServer, freePort, startDevServer } from "../scripts/dev-server.ts";
import { startModelServer } from "../test/support/model-server.ts";
import { type BenchRow, rounded } from "./bench-row.ts";
import { HeapInspector } from "./heap-inspector.ts";
import { workerdCpuMs, workerdResidentBytes } from "./process-tree.ts";

/** What Cloudflare gives an isolate. */
const ISOLATE_MIB_MAX = 128;
const MEBIBYTE = 1_024 * 1_024;

/** A run delegates at most 50 times, so 64 children are two runs': of two threads, whose objects share an isolate. */
const THREADS = 2;
const CHILDREN = 32;
/** Results of 40,000 characters, the most `read_file` gives: together 1 MB, in two turns. */
const READS_A_TURN = 13;
const READING_TURNS = 2;
const FILE = `${"x".repeat(99)}\n`.repeat(399);
/** The children speak so slowly that all 64 are there together for a while. */
const WORDS = 40;
const WORD_MS = 800;
const SAMPLE_MS = 250;
const MEMORY_DEADLINE_MS = 170_000;

/** Each run delegates this often, one after the other, or calls a tool as often. */
const CALLS = 5;
const RUNS = 12;
const WARM_UP_RUNS = 3;

export async function delegationsBench(): Promise<BenchRow[]> {
  return [...(await withServer({}, cpuOfOne)), ...(await memoryOfMany())];
}

/** A run of delegations to a child of one turn, beside a run of as many tool calls: the difference is the delegation's. */
async function cpuOfOne(server: DevServer): Promise<BenchRow[]> {
  const delegating = Array.from({ length: CALLS }, () => "@ delegate general-purpose :: Answer :: @ say one").join(
    "\n",
  );
  const calling = Array.from({ length: CALLS }, () => '@ call ls {"path": "."}').join("\n");
  const cpu = async (prompt: string): Promise<number> => {
    const { thread_id } = await send<{ thread_id: string }>(server, "POST", "/threads", {});
    const run = () => send(server, "POST", `/threads/${thread_id}/runs/wait`, runBody(prompt));
    for (let warm = 0; warm < WARM_UP_RUNS; warm += 1) await run();
    const before = workerdCpuMs();
    for (let measured = 0; measured < RUNS; measured += 1) await run();
    return (workerdCpuMs() - before) / RUNS;
  };
  const withCalls = await cpu(`Call.\n${calling}\n@ say done`);
  const withDelegations = await cpu(`Delegate.\n${delegating}\n@ say done`);
  return [
    { name: `CPU of a run with ${CALLS} tool calls`, value: rounded(withCalls), unit: "ms" },
    { name: `CPU of a run with ${CALLS} delegations`, value: rounded(withDelegations), unit: "ms" },
    { name: "CPU of a delegation over a tool call", value: rounded((withDelegations - withCalls) / CALLS), unit: "ms" },
  ];
}

async function memoryOfMany(): Promise<BenchRow[]> {
  const models = await startModelServer();
  try {
    const env = { OPENAI_API_KEY: "bench", OPENAI_BASE_URL: models.url, DEPUTY_OVERRIDES: overrides() };
    return await withServer(env, (server, inspectorPort) =>
      heapOfMany(server, { inspectorPort, requests: () => models.requests.length }),
    );
  } finally {
    await models.close();
  }
}

function overrides(): string {
  return JSON.stringify({ subagent_runtime: { max_running: CHILDREN }, runtime: { model_idle_seconds: 600 } });
}

/** Requests until every child is giving its answer: one of each lead, one for each turn of a child. */
const REQUESTS_WHEN_ALL_LIVE = THREADS * (1 + (READING_TURNS + 1) * CHILDREN);

interface Watched {
  readonly inspectorPort: number;
  /** Model requests so far. */
  readonly requests: () => number;
}

async function heapOfMany(server: DevServer, { inspectorPort, requests }: Watched): Promise<BenchRow[]> {
  const inspector = await HeapInspector.open(inspectorPort, () => fetch(`${server.url}/ok`));
  const idle = await inspector.liveBytes();
  const runs = await Promise.all(Array.from({ length: THREADS }, () => startReaders(server)));
  const seen = { used: 0, live: 0, resident: 0, together: 0 };
  const deadline = performance.now() + MEMORY_DEADLINE_MS;
  for (let status = "pending"; status === "pending" || status === "running";) {
    if (performance.now() > deadline) throw new Error(`the children were not done: ${runs.join()}`);
    const isTogether = requests() === REQUESTS_WHEN_ALL_LIVE;
    seen.used = Math.max(seen.used, await inspector.usedBytes());
    const live = await inspector.liveBytes();
    seen.live = Math.max(seen.live, live);
    if (isTogether && requests() === REQUESTS_WHEN_ALL_LIVE) seen.together = Math.max(seen.together, live);
    seen.resident = Math.max(seen.resident, workerdResidentBytes());
    await new Promise((next) => setTimeout(next, SAMPLE_MS));
    const statuses = await Promise.all(
      runs.map(async (run) => (await send<{ status: string }>(server, "GET", run)).status),
    );
    if (statuses.includes("error")) throw new Error("a run failed");
    status = statuses.every((each) => each === "success") ? "success" : "running";
  }
  inspector.close();
  if (seen.together === 0) throw new Error("the children were never all there at once");
  return memoryRows(idle, seen);
}

function memoryRows(
  idle: number,
  seen: { used: number; live: number; resident: number; together: number },
): BenchRow[] {
  const name = `${THREADS * CHILDREN} parallel children with 1 MB of history each`;
  const toMiB = (bytes: number) => rounded(bytes / MEBIBYTE);
  return [
    { name: "isolate before them: live heap", value: toMiB(idle), unit: "MiB" },
    { name: `${name}: live heap, all answering`, value: toMiB(seen.together), unit: "MiB", bound: ISOLATE_MIB_MAX },
    { name: `${name}: live heap, most of all samples`, value: toMiB(seen.live), unit: "MiB", bound: ISOLATE_MIB_MAX },
    { name: `${name}: heap with garbage, most`, value: toMiB(seen.used), unit: "MiB" },
    { name: `${name}: workerd's resident memory, most`, value: toMiB(seen.resident), unit: "MiB" },
  ];
}

/** Gives the path of a run whose children read and then answer slowly. */
async function startReaders(server: DevServer): Promise<string> {
  const { thread_id } = await send<{ thread_id: string }>(server, "POST", "/threads", {});
  await send(server, "PUT", `/threads/${thread_id}/files/big.txt`, FILE);
  const reads = Array.from({ length: READS_A_TURN }, () => '@ & call read_file {"path": "big.txt"}').join("\n");
  // A setting between them: lines that start with `&` and follow each other are one turn.
  const turns = Array.from({ length: READING_TURNS }, () => reads).join("\n@ delay 0\n");
  const words = Array.from({ length: WORDS }, (_, place) => `w${place}`).join(" ");
  const child = `Read.\n${turns}\n@ delay ${WORD_MS}\n@ say ${words}`;
  const starts = Array.from(
    { length: CHILDREN },
    (_, at) => `@ & delegate general-purpose :: Read ${at} :: <<'CHILD'\n${child}\nCHILD`,
  );
  const prompt = `Go.\n${starts.join("\n")}\n@ say all done`;
  const { run_id } = await send<{ run_id: string }>(server, "POST", `/threads/${thread_id}/runs`, runBody(prompt));
  return `/threads/${thread_id}/runs/${run_id}`;
}

function runBody(prompt: string) {
  return {
    assistant_id: "lead_agent",
    input: { messages: [{ type: "human", content: prompt }] },
    config: { configurable: { max_total_subagents: 50, max_concurrent_subagents: 64 } },
  };
}

async function withServer(
  variables: Readonly<Record<string, string>>,
  measure: (server: DevServer, inspectorPort: number) => Promise<BenchRow[]>,
): Promise<BenchRow[]> {
  const stateDir = mkdtempSync(join(tmpdir(), "deputy-bench-"));
  const lines: string[] = [];
  const env = { ...process.env, API_KEYS: undefined, OPENAI_API_KEY: undefined, DEPUTY_OVERRIDES: undefined };
  const inspectorPort = await freePort();
  const server = await startDevServer({
    stateDir,
    inspectorPort,
    env: { ...env, ...variables },
    onLine: (line) => lines.push(line),
  });
  try {
    return await measure(server, inspectorPort);
  } catch (error) {
    const last = lines.slice(-20).join("\n");
    throw new Error(`the bench of delegations failed; wrangler's last lines:\n${last}`, { cause: error });
  } finally {
    await server.stop();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

async function send<T>(server: DevServer, method: string, path: string, body?: unknown): Promise<T> {
  const isText = typeof body === "string";
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: isText ? {} : { "content-type": "application/json" },
    ...(body === undefined ? {} : { body: isText ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? null : JSON.parse(text)) as T;
}
