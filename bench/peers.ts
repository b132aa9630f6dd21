/**
 * Deputy against LangGraph's own servers, on one machine in one run, with the same graphs: the stock server in memory, its
 * `experimental/embed` server with the memory saver and with LangGraph's SQLite saver (durable against durable), a thin
 * durable LangGraph run in the same workerd, and a floor that runs nothing. Times are ratios' raw material: each graph and
 * number of clients meets all servers one after the other, so that a slow minute of the machine meets them alike.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DevServer, freePort, startDevServer } from "../scripts/dev-server.ts";
import { LangGraphServer } from "../test/support/langgraph-server.ts";
import { type BenchRow, percentile, rounded } from "./bench-row.ts";
import { profiledAreas } from "./cpu-areas.ts";
import { EmbedServer } from "./embed-process.ts";
import { workerPort } from "./worker-port.ts";

const GRAPHS = ["noop", "tokens", "chain"] as const;
type Graph = (typeof GRAPHS)[number];

const CLIENTS = [1, 32] as const;
const SECONDS = 3;
const STREAM_MODES = ["values", "messages-tuple"];
const PROFILED_CLIENTS = 32;

/** Where a run is started, and what a client does first to have a thread there. */
interface Target {
  readonly label: string;
  readonly url: string;
  readonly path: (threadId: string, graph: Graph) => string;
  readonly newThread: (url: string) => Promise<string>;
}

interface Measured {
  readonly runsPerSecond: number;
  readonly firstFrameMs: readonly number[];
  readonly lastFrameMs: readonly number[];
}

const RUNS_STREAM = (threadId: string): string => `/threads/${threadId}/runs/stream`;

export async function peersBench(): Promise<BenchRow[]> {
  const stateDir = mkdtempSync(join(tmpdir(), "deputy-peers-"));
  const inspectorPort = await freePort();
  const closing: (() => Promise<void>)[] = [];
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
    const rows = await compare([
      server("deputy", own),
      server("deputy, through the dev port", deputy.url),
      inWorkerd("thin", own),
      inWorkerd("floor", own),
      server("stock server", stock.url),
      server("embed server, memory", memory.url),
      server("embed server, SQLite", sqlite.url),
    ]);
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

function server(label: string, url: string): Target {
  const newThread = async (): Promise<string> => {
    const response = await post(`${url}/threads`, {});
    return (await response.json<{ thread_id: string }>()).thread_id;
  };
  return { label, url, path: RUNS_STREAM, newThread };
}

/** An object of its own for each client, in Deputy's workerd, behind nothing. */
function inWorkerd(kind: "thin" | "floor", url: string): Target {
  const path = (threadId: string, graph: Graph): string => `/${kind}/${threadId}/${graph}`;
  return { label: kind, url, path, newThread: async () => crypto.randomUUID() };
}

async function compare(targets: readonly Target[]): Promise<BenchRow[]> {
  const rows: BenchRow[] = [];
  for (const graph of GRAPHS) {
    for (const clients of CLIENTS) {
      const name = `${graph}, ${clients} ${clients === 1 ? "client" : "clients"}`;
      const measured = new Map<string, Measured>();
      for (const target of targets) measured.set(target.label, await measure(target, graph, clients));
      rows.push(...[...measured].flatMap(([label, result]) => toRows(`${name}, ${label}`, result)));
      rows.push(...ratios(name, measured));
    }
  }
  return rows;
}

function toRows(name: string, { runsPerSecond, firstFrameMs, lastFrameMs }: Measured): BenchRow[] {
  return [
    { name, value: rounded(runsPerSecond), unit: "runs/s" },
    { name: `${name}, first frame, p50`, value: rounded(percentile(firstFrameMs, 0.5)), unit: "ms" },
    { name: `${name}, last frame, p50`, value: rounded(percentile(lastFrameMs, 0.5)), unit: "ms" },
  ];
}

function ratios(name: string, measured: ReadonlyMap<string, Measured>): BenchRow[] {
  const deputy = measured.get("deputy")?.runsPerSecond ?? Number.NaN;
  return [...measured]
    .filter(([label]) => !label.startsWith("deputy"))
    .map(([label, { runsPerSecond }]) => ({
      name: `${name}, deputy over ${label}`,
      value: rounded(deputy / runsPerSecond),
      unit: "ratio",
    }));
}

/** Each client runs one after the other on its thread; the first round is not counted. */
async function measure(target: Target, graph: Graph, clients: number): Promise<Measured> {
  const threads = await Promise.all(Array.from({ length: clients }, () => target.newThread(target.url)));
  await Promise.all(threads.map((threadId) => run(target, threadId, graph)));
  const runs: { firstFrameMs: number; lastFrameMs: number }[] = [];
  const from = performance.now();
  const until = from + SECONDS * 1_000;
  await Promise.all(
    threads.map(async (threadId) => {
      while (performance.now() < until) runs.push(await run(target, threadId, graph));
    }),
  );
  return {
    runsPerSecond: runs.length / ((performance.now() - from) / 1_000),
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
  const init = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(url, init);
  if (!response.ok) throw new Error(`POST ${url}: ${response.status} ${await response.text()}`);
  return response;
}

/** What each part of Deputy costs: shares of the CPU that the Worker uses under runs of the node that does nothing. */
async function parts(url: string, inspectorPort: number): Promise<BenchRow[]> {
  const load = (): Promise<Measured> => measure(server("deputy", url), "noop", PROFILED_CLIENTS);
  const areas = await profiledAreas({ inspectorPort, wake: () => fetch(`${url}/ok`), load });
  return areas.map(({ area, share }) => ({
    name: `noop, ${PROFILED_CLIENTS} clients, CPU in ${area}`,
    value: rounded(share * 100),
    unit: "%",
  }));
}
