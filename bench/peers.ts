/**
 * Deputy against LangGraph's own servers, on one machine in one run, with the same graphs: the stock server in memory, its
 * `experimental/embed` server with the memory saver and with LangGraph's SQLite saver (durable against durable), a thin
 * durable LangGraph run in the same workerd, and a floor that runs nothing. Each graph and number of clients meets all
 * servers in turn, round after round; a ratio is the middle one of the rounds', so that a slow second of the machine
 * changes one round. CPU is that of the server's own processes, which a busy machine changes least.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DevServer, freePort, startDevServer } from "../scripts/dev-server.ts";
import { LangGraphServer } from "../test/support/langgraph-server.ts";
import { type BenchRow, percentile, rounded } from "./bench-row.ts";
import { profiledAreas } from "./cpu-areas.ts";
import { EmbedServer } from "./embed-process.ts";
import { commandCpuMs, killCommand, workerdCpuMs } from "./process-tree.ts";
import { workerPort } from "./worker-port.ts";

const GRAPHS = ["noop", "tokens", "chain"] as const;
type Graph = (typeof GRAPHS)[number];

const CLIENTS = [1, 32] as const;
const STREAM_MODES = ["values", "messages-tuple"];
const PROFILED_CLIENTS = 32;
/** Of one line of one server; `short` sees that everything works. */
const ROUNDS = { whole: { rounds: 3, ms: 1_000 }, short: { rounds: 1, ms: 200 } } as const;
const PROFILED_MS = 4_000;
/** After a line: what a server still does for its runs is its own, and no burden on the next one's. */
const REST_MS = 150;
/** A run that takes longer hangs. */
const RUN_MS_MAX = 60_000;
/** How LangGraph's own server was started. */
const STOCK_COMMAND = ["cli/entrypoint.mjs"];

/** Where a run is started, and what a client does first to have a thread there. */
interface Target {
  readonly label: string;
  readonly url: string;
  readonly path: (threadId: string, graph: Graph) => string;
  readonly newThread: (url: string) => Promise<string>;
  /** CPU that the server's processes have used. */
  readonly cpuMs: () => number;
}

interface Measured {
  readonly runsPerSecond: number;
  readonly cpuMsPerRun: number;
  readonly firstFrameMs: readonly number[];
  readonly lastFrameMs: readonly number[];
}

interface Line {
  readonly graph: Graph;
  readonly clients: number;
  readonly ms: number;
}

const RUNS_STREAM = (threadId: string): string => `/threads/${threadId}/runs/stream`;

export async function peersBench({ short }: { readonly short: boolean }): Promise<BenchRow[]> {
  const stateDir = mkdtempSync(join(tmpdir(), "deputy-peers-"));
  const inspectorPort = await freePort();
  const closing: (() => Promise<void>)[] = [];
  process.on("exit", () => killCommand(STOCK_COMMAND));
  try {
    const deputy = await startDevServer({
      stateDir,
      inspectorPort,
      config: "bench/peers.wrangler.toml",
      env: { ...process.env, API_KEYS: undefined, DEPUTY_OVERRIDES: undefined },
    });
    closing.push(() => deputy.stop());
    // Before the others start: their servers answer `/ok` alike.
    const own = await ownUrl(deputy);
    const stock = await LangGraphServer.start({ graphs: stockGraphs() });
    closing.push(() => stock.close());
    const memory = await EmbedServer.start(["memory"]);
    closing.push(() => memory.stop());
    const sqlite = await EmbedServer.start(["sqlite", join(stateDir, "embed.sqlite")]);
    closing.push(() => sqlite.stop());
    const targets = [
      server("deputy", own, workerdCpuMs),
      server("deputy, through the dev port", deputy.url, workerdCpuMs),
      inWorkerd("thin", own),
      inWorkerd("floor", own),
      server("stock server", stock.url, () => commandCpuMs(STOCK_COMMAND)),
      server("embed server, memory", memory.url, () => commandCpuMs(["embed-server.ts", "memory"])),
      server("embed server, SQLite", sqlite.url, () => commandCpuMs(["embed-server.ts", "sqlite"])),
    ];
    const rows = await compare(targets, ROUNDS[short ? "short" : "whole"]);
    return [...rows, ...(await parts(own, inspectorPort))];
  } finally {
    for (const close of closing.toReversed()) await close();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

/** The dev port where `/proc` does not tell the Worker's own. */
async function ownUrl(deputy: DevServer): Promise<string> {
  const port = await workerPort(deputy.port);
  return port === undefined ? deputy.url : `http://127.0.0.1:${port}`;
}

function stockGraphs(): Record<string, string> {
  return Object.fromEntries(GRAPHS.map((graph) => [graph, `bench/peer-graphs.ts:${graph}`]));
}

function server(label: string, url: string, cpuMs: () => number): Target {
  const newThread = async (): Promise<string> => {
    const response = await post(`${url}/threads`, {});
    return (await response.json<{ thread_id: string }>()).thread_id;
  };
  return { label, url, path: RUNS_STREAM, newThread, cpuMs };
}

/** An object of its own for each client, in Deputy's workerd, behind nothing. */
function inWorkerd(kind: "thin" | "floor", url: string): Target {
  const path = (threadId: string, graph: Graph): string => `/${kind}/${threadId}/${graph}`;
  return { label: kind, url, path, newThread: async () => crypto.randomUUID(), cpuMs: workerdCpuMs };
}

async function compare(
  targets: readonly Target[],
  { rounds, ms }: { readonly rounds: number; readonly ms: number },
): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const graph of GRAPHS) {
    for (const clients of CLIENTS) {
      const name = `${graph}, ${clients} ${clients === 1 ? "client" : "clients"}`;
      const measured = await measureInTurn(targets, { graph, clients, ms }, rounds);
      const told = [
        ...[...measured].flatMap(([label, of]) => toRows(`${name}, ${label}`, of)),
        ...ratios(name, measured),
      ];
      // The whole table comes last; a part that is ended has told this much.
      for (const row of told) console.log(`${row.name}: ${row.value} ${row.unit}`);
      rows.push(...told);
    }
  }
  return rows;
}

/** Every server in each round; the first runs of each are not counted. */
async function measureInTurn(
  targets: readonly Target[],
  line: Line,
  rounds: number,
): Promise<Map<string, readonly Measured[]>> {
  const threads = new Map<Target, readonly string[]>();
  for (const target of targets) {
    const own = await Promise.all(Array.from({ length: line.clients }, () => target.newThread(target.url)));
    await Promise.all(own.map((threadId) => run(target, threadId, line.graph)));
    threads.set(target, own);
  }
  const measured = new Map<string, Measured[]>(targets.map(({ label }) => [label, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [target, own] of threads) measured.get(target.label)?.push(await measure(target, own, line));
  }
  return measured;
}

function toRows(name: string, rounds: readonly Measured[]): BenchRow[] {
  const firstFrameMs = rounds.flatMap((round) => round.firstFrameMs);
  const lastFrameMs = rounds.flatMap((round) => round.lastFrameMs);
  return [
    { name, value: rounded(middle(rounds, ({ runsPerSecond }) => runsPerSecond)), unit: "runs/s" },
    { name: `${name}, first frame, p50`, value: rounded(percentile(firstFrameMs, 0.5)), unit: "ms" },
    { name: `${name}, last frame, p50`, value: rounded(percentile(lastFrameMs, 0.5)), unit: "ms" },
    { name: `${name}, CPU`, value: rounded(middle(rounds, ({ cpuMsPerRun }) => cpuMsPerRun)), unit: "ms/run" },
  ];
}

function middle(rounds: readonly Measured[], of: (round: Measured, index: number) => number): number {
  return percentile(
    rounds.map((round, index) => of(round, index)),
    0.5,
  );
}

/** Of what the two did in the same round. */
function ratios(name: string, measured: ReadonlyMap<string, readonly Measured[]>): BenchRow[] {
  const deputy = measured.get("deputy") ?? [];
  const others = [...measured].filter(([label]) => !label.startsWith("deputy"));
  return others.map(([label, rounds]) => ({
    name: `${name}, deputy over ${label}`,
    value: rounded(middle(deputy, ({ runsPerSecond }, round) => runsPerSecond / (rounds[round]?.runsPerSecond ?? NaN))),
    unit: "ratio",
  }));
}

/** Each client runs one after the other on its thread. */
async function measure(target: Target, threads: readonly string[], { graph, ms }: Line): Promise<Measured> {
  const runs: { firstFrameMs: number; lastFrameMs: number }[] = [];
  const cpuBefore = target.cpuMs();
  const from = performance.now();
  await Promise.all(
    threads.map(async (threadId) => {
      while (performance.now() < from + ms) runs.push(await run(target, threadId, graph));
    }),
  );
  const seconds = (performance.now() - from) / 1_000;
  await new Promise((rested) => setTimeout(rested, REST_MS));
  return {
    runsPerSecond: runs.length / seconds,
    cpuMsPerRun: (target.cpuMs() - cpuBefore) / runs.length,
    firstFrameMs: runs.map(({ firstFrameMs }) => firstFrameMs),
    lastFrameMs: runs.map(({ lastFrameMs }) => lastFrameMs),
  };
}

async function run(target: Target, threadId: string, graph: Graph) {
  const input = graph === "tokens" ? { messages: [{ type: "human", content: "count" }] } : { count: 0 };
  const from = performance.now();
  const body = { assistant_id: graph, input, stream_mode: STREAM_MODES };
  const response = await post(target.url + target.path(threadId, graph), body);
  let firstFrameMs = 0;
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk as Uint8Array, { stream: true });
    if (firstFrameMs === 0 && text.includes("\n\n")) firstFrameMs = performance.now() - from;
  }
  if (!text.includes("event: values") || text.includes("event: error"))
    throw new Error(`${target.label}, ${graph}: a run failed: ${text}`);
  return { firstFrameMs, lastFrameMs: performance.now() - from };
}

async function post(url: string, body: unknown): Promise<Response> {
  const response = await fetch(url, {
    method: "POST",
    signal: AbortSignal.timeout(RUN_MS_MAX),
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`POST ${url}: ${response.status} ${await response.text()}`);
  return response;
}

/** What each part of Deputy costs: shares of the CPU that the Worker uses under runs of the node that does nothing. */
async function parts(url: string, inspectorPort: number): Promise<BenchRow[]> {
  const target = server("deputy", url, workerdCpuMs);
  const threads = await Promise.all(Array.from({ length: PROFILED_CLIENTS }, () => target.newThread(url)));
  const line: Line = { graph: "noop", clients: PROFILED_CLIENTS, ms: PROFILED_MS };
  const load = (): Promise<Measured> => measure(target, threads, line);
  const areas = await profiledAreas({ inspectorPort, wake: () => fetch(`${url}/ok`), load });
  return areas.map(({ area, share }) => ({
    name: `noop, ${PROFILED_CLIENTS} clients, CPU in ${area}`,
    value: rounded(share * 100),
    unit: "%",
  }));
}
