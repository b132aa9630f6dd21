/**
 * `npm run demo`: starts Deputy, lets a lead agent delegate three analyses of a real data set in parallel, then runs a
 * 40-item batch and checks every number against a direct computation. With `OPENAI_API_KEY` or
 * `ANTHROPIC_API_KEY` set a real model does it.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@langchain/langgraph-sdk";
import { Cards, drawProgress } from "../demo/cards.ts";
import { monthLine, parseDays, rainOfYear, warmest } from "../demo/direct-computation.ts";
import { BATCH_MONTHS, DATA_PATH, leadQuestion, leadScript, monthPrompt } from "../demo/prompts.ts";
import { type DevServer, startDevServer } from "./dev-server.ts";

const RESULTS_PATH = "demo-results.jsonl";
const CSV = readFileSync(join(import.meta.dirname, "../demo/data/seattle-weather.csv"));
const out = process.stdout;

const stateDir = mkdtempSync(join(tmpdir(), "deputy-demo-"));
let server: DevServer | undefined;

async function main(): Promise<void> {
  const { OPENAI_API_KEY, OPENAI_MODEL, ANTHROPIC_API_KEY, ANTHROPIC_MODEL } = process.env;
  const scripted = !OPENAI_API_KEY && !ANTHROPIC_API_KEY;
  const startedAt = Date.now();
  console.log("Starting Deputy (wrangler dev) ...");
  server = await startDevServer({ stateDir });
  const model = scripted
    ? "the scripted model: it follows a script and has no intelligence; set OPENAI_API_KEY or ANTHROPIC_API_KEY for a real one"
    : ((OPENAI_API_KEY ? OPENAI_MODEL : ANTHROPIC_MODEL) ?? "your model");
  console.log(`Ready at ${server.url} with ${model}.\n`);
  const threadId = await createThread(server.url);
  await delegate(server.url, threadId, scripted);
  await runBatch(server.url, threadId, scripted);
  console.log(`\nDone in ${((Date.now() - startedAt) / 1_000).toFixed(1)} s. Next:`);
  console.log("  npm run dev             the same server, kept running");
  console.log("  docs/http-api.md        every route, with curl");
  console.log("  docs/architecture.md    one request followed end to end");
}

async function createThread(url: string): Promise<string> {
  const thread = await new Client({ apiUrl: url }).threads.create();
  const put = await fetch(`${url}/threads/${thread.thread_id}/files/${DATA_PATH}`, { method: "PUT", body: CSV });
  if (!put.ok) throw new Error(`upload failed: ${await put.text()}`);
  return thread.thread_id;
}

async function delegate(url: string, threadId: string, scripted: boolean): Promise<void> {
  console.log("A lead agent delegates three analyses in parallel:");
  const client = new Client({ apiUrl: url });
  const cards = new Cards(out);
  let answer = "";
  const content = scripted ? leadScript() : leadQuestion();
  const stream = client.runs.stream(threadId, "lead_agent", {
    input: { messages: [{ type: "human", content }] },
    streamMode: ["values", "custom"],
  });
  for await (const part of stream) {
    if (part.event === "custom") cards.take(part.data);
    if (part.event === "error") throw new Error(`the run failed: ${JSON.stringify(part.data)}`);
    if (part.event === "values") answer = lastText(part.data);
  }
  cards.close();
  console.log(`\n${answer.replace(/^/gm, "  ")}\n`);
  const days = parseDays(CSV.toString("utf8"));
  const expected = [...["2012", "2013", "2014", "2015"].map((year) => rainOfYear(days, year)), warmest(days)];
  const missing = expected.filter((number) => !answer.includes(number));
  check(
    `the answer holds the numbers a direct computation gives (${expected.join(", ")})`,
    missing.length === 0,
    scripted,
  );
}

async function runBatch(url: string, threadId: string, scripted: boolean): Promise<void> {
  console.log(`\nA durable batch of ${BATCH_MONTHS.length} items, through a queue and D1:`);
  const body = {
    title: "Rain and warmth by month",
    subagent_type: "general-purpose",
    files: [DATA_PATH],
    max_running_items: 10,
    items: BATCH_MONTHS.map((month) => ({ key: month, prompt: monthPrompt(month, scripted) })),
  };
  const created = await fetch(`${url}/threads/${threadId}/batches`, {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": "demo" },
    body: JSON.stringify(body),
  });
  if (created.status !== 201) throw new Error(`the batch was refused: ${await created.text()}`);
  const { batch_id }: { batch_id: string } = JSON.parse(await created.text());
  await followBatch(url, batch_id);
  const exported = await (await fetch(`${url}/batches/${batch_id}/results.jsonl`)).text();
  writeFileSync(RESULTS_PATH, exported);
  const lines = exported
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { key: string; result: string | null });
  const days = parseDays(CSV.toString("utf8"));
  const right = lines.filter(({ key, result }) => result?.includes(monthLine(days, key)) === true).length;
  console.log(`  exported to ${RESULTS_PATH}`);
  check(
    `${right} of ${BATCH_MONTHS.length} results equal a direct computation`,
    right === BATCH_MONTHS.length,
    scripted,
  );
}

async function followBatch(url: string, batchId: string): Promise<void> {
  const events = await fetch(`${url}/batches/${batchId}/events`);
  let rest = "";
  for await (const text of events.body!.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    for (const line of parts.filter((part) => part.startsWith("data: "))) {
      const { total_items, counts } = JSON.parse(line.slice(6)) as {
        total_items: number;
        counts: Record<string, number>;
      };
      drawProgress(out, (counts["completed"] ?? 0) + (counts["failed"] ?? 0), total_items);
    }
  }
}

function lastText(values: unknown): string {
  const messages = (values as { messages?: { content?: unknown }[] }).messages ?? [];
  const content = messages.at(-1)?.content;
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}

/** The scripted demo must be right; a real model may miss, and then the demo says so without failing. */
function check(what: string, holds: boolean, strict: boolean): void {
  console.log(`  ${holds ? "ok" : "NOT OK"}: ${what}`);
  if (!holds && strict) process.exitCode = 1;
}

async function cleanUp(): Promise<void> {
  await server?.stop();
  rmSync(stateDir, { recursive: true, force: true });
}

// Pressed twice, Ctrl-C must not cut the cleaning short.
let stopping = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    if (stopping) return;
    stopping = true;
    // While starting there is no server to stop yet; leaving ends what was started.
    if (server === undefined) process.exit(130);
    void cleanUp().then(() => process.exit(130));
  });
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await cleanUp();
}
process.exit();
