/**
 * Readers of one run against `wrangler dev`: 50 that stall while 10,000 frames of a run go by, a replay of those from a
 * cursor, and 1,000 subscribers of one run. Times and memory of one machine; what is exact is in
 * `test/workers/thread/readers.test.ts`. Every list that is read whole is compared with the first client's.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { type Socket, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDevServer } from "../scripts/dev-server.ts";
import { type BenchRow, rounded } from "./bench-row.ts";
import { workerdResidentBytes } from "./process-tree.ts";
import { workerPort } from "./worker-port.ts";

const STALLED = 50;
const FRAMES = 10_000;
/** Before them, for what the kernel takes for a client that reads nothing. */
const FILLING = 10_000;
const WARM_UPS = 2;
const SUBSCRIBERS = 1_000;
const SUBSCRIBED_TOKENS = 200;
const MEGABYTE = 1_000_000;
/** More than one chunk of a stream. */
const TAIL_CHARS = 1_000_000;
/** A stream that does not end by then fails the part instead of holding up the others. */
const STREAM_MS_MAX = 120_000;

export async function readersBench(): Promise<BenchRow[]> {
  const stateDir = mkdtempSync(join(tmpdir(), "deputy-bench-"));
  const lines: string[] = [];
  const env = { ...process.env, API_KEYS: undefined, OPENAI_API_KEY: undefined, DEPUTY_OVERRIDES: undefined };
  const server = await startDevServer({ stateDir, env, onLine: (line) => lines.push(line) });
  try {
    const port = await workerPort(server.port);
    const url = port === undefined ? server.url : `http://127.0.0.1:${port}`;
    // The first runs of a process take longer, and its heap grows with them whoever reads.
    for (let warmUp = 0; warmUp < WARM_UPS; warmUp += 1) await followed(url, 0);
    return [...(await stalledRows(url)), ...(await subscriberRows(url))];
  } catch (error) {
    throw new Error(`the readers bench failed; wrangler's last lines:\n${lines.slice(-20).join("\n")}`, {
      cause: error,
    });
  } finally {
    await server.stop();
    rmSync(stateDir, { recursive: true, force: true });
  }
}

async function stalledRows(url: string): Promise<BenchRow[]> {
  const alone = await followed(url, 0);
  const watched = await followed(url, STALLED);
  const from = watched.ids.at(-FRAMES - 1) ?? "0";
  const startedAt = performance.now();
  const replayed = idsIn(await textOf(`${url}${watched.location}`, { "last-event-id": from }));
  const replayMs = performance.now() - startedAt;
  assertSame(replayed, watched.ids.slice(-FRAMES));
  const name = `${FRAMES} frames of a run`;
  return [
    { name: `${name}, one reader`, value: rounded(alone.seconds), unit: "s" },
    { name: `${name}, ${STALLED} more stalled`, value: rounded(watched.seconds), unit: "s" },
    {
      name: `${name}, ${STALLED} more stalled, over one reader`,
      value: rounded(watched.seconds / alone.seconds),
      unit: "times",
    },
    {
      name: `${name}, ${STALLED} more stalled, memory`,
      value: rounded((watched.residentBytes - alone.residentBytes) / MEGABYTE),
      unit: "MB",
    },
    { name: `replay of the last ${FRAMES} frames of a run from a cursor`, value: rounded(replayMs), unit: "ms" },
  ];
}

async function subscriberRows(url: string): Promise<BenchRow[]> {
  const before = workerdResidentBytes();
  const startedAt = performance.now();
  const run = await start(url, SUBSCRIBED_TOKENS);
  const texts = await Promise.all(Array.from({ length: SUBSCRIBERS }, () => textOf(`${url}${run.location}`)));
  const seconds = (performance.now() - startedAt) / 1_000;
  const expected = idsIn(await run.response.text());
  for (const text of texts) assertSame(idsIn(text), expected);
  const name = `${SUBSCRIBERS} subscribers of a run of ${SUBSCRIBED_TOKENS} tokens`;
  return [
    { name: `${name}, until each has all`, value: rounded(seconds), unit: "s" },
    { name: `${name}, memory`, value: rounded((workerdResidentBytes() - before) / MEGABYTE), unit: "MB" },
  ];
}

interface Followed {
  readonly ids: readonly string[];
  readonly location: string;
  /** From the frame at which the others are stalled to the end. */
  readonly seconds: number;
  /** Of workerd, at its end. */
  readonly residentBytes: number;
}

/**
 * One run read by its client to the end, beside others that read nothing; those leave behind it. The kernel takes some
 * megabytes for each before its reader stalls, so what is timed begins once it has them.
 */
async function followed(url: string, stalled: number): Promise<Followed> {
  const { response, location } = await start(url, FILLING + FRAMES);
  const stalling = Array.from({ length: stalled }, () => openUnread(url, location));
  let text = "";
  let stalledAt: number | undefined;
  const decoder = new TextDecoder();
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes, { stream: true });
    if (stalledAt === undefined && text.includes(`\nid: ${FILLING}\n`, text.length - TAIL_CHARS)) {
      stalledAt = performance.now();
    }
  }
  const seconds = (performance.now() - (stalledAt ?? Number.NaN)) / 1_000;
  const residentBytes = workerdResidentBytes();
  for (const socket of stalling) socket.destroy();
  return { ids: idsIn(text), location, seconds, residentBytes };
}

/** A client that asks and takes nothing of the answer. */
function openUnread(url: string, path: string): Socket {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname).on("error", () => undefined);
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return socket;
}

async function start(url: string, tokens: number): Promise<{ response: Response; location: string }> {
  const content = `@ say ${Array.from({ length: tokens }, (_, place) => `t${place}`).join(" ")}`;
  const response = await fetch(`${url}/runs/stream`, {
    method: "POST",
    signal: AbortSignal.timeout(STREAM_MS_MAX),
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      assistant_id: "lead_agent",
      input: { messages: [{ type: "human", content }] },
      stream_mode: "messages-tuple",
    }),
  });
  const location = response.headers.get("location");
  if (!response.ok || location === null) throw new Error(`the run was not started: ${response.status}`);
  return { response, location };
}

async function textOf(url: string, headers: Record<string, string> = {}): Promise<string> {
  return (await fetch(url, { headers, signal: AbortSignal.timeout(STREAM_MS_MAX) })).text();
}

function idsIn(text: string): string[] {
  return [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id ?? "");
}

function assertSame(ids: readonly string[], expected: readonly string[]): void {
  if (ids.join() !== expected.join())
    throw new Error(`a reader saw ${ids.length} frames where there are ${expected.length}`);
}
