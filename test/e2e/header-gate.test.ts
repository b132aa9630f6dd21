/**
 * The gate for model requests that wait for response headers (architecture section 6), counted where they arrive: at a
 * model server that holds its headers back. Local workerd does not have the platform's limit, so only a count shows it.
 */
import type { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { HEADER_WAITS_MAX } from "../../src/agent/models/header-gate.ts";
import { DeputyServer, eventually } from "../support/deputy-server.ts";
import { type ModelServer, startModelServer } from "../support/model-server.ts";
import { type WireRequest, wireText } from "../support/model-wire.ts";
import { human, LEAD, sdkClient } from "../support/sdk.ts";

const CHILDREN = 12;
const PATIENCE_MS = 60_000;

/** Requests whose headers a test holds back, in the order they came. */
class HeldRequests {
  readonly waiting: { readonly prompt: string; readonly open: () => void }[] = [];
  seen = 0;
  most = 0;

  /** A child's request waits until it is opened; a lead's is answered at once. */
  hold(request: WireRequest): Promise<void> | undefined {
    const prompt = request.messages.map(wireText).find((text) => text.startsWith("Child of "));
    if (prompt === undefined) return undefined;
    return new Promise((resolve) => {
      this.waiting.push({ prompt, open: resolve });
      this.seen += 1;
      this.most = Math.max(this.most, this.waiting.length);
    });
  }

  openFirst(): void {
    this.waiting.shift()?.open();
  }

  of(name: string): number {
    return this.waiting.filter(({ prompt }) => prompt.startsWith(`Child of ${name}.`)).length;
  }
}

let held = new HeldRequests();
let models: ModelServer;
let deputy: DeputyServer;
let client: Client;

beforeAll(async () => {
  models = await startModelServer({ beforeHeaders: (request) => held.hold(request) });
  deputy = new DeputyServer({
    env: {
      OPENAI_API_KEY: "sk-test-of-deputy",
      OPENAI_BASE_URL: models.url,
      OPENAI_MODEL: "served-model",
      DEPUTY_OVERRIDES: JSON.stringify({ subagent_runtime: { max_running: CHILDREN } }),
    },
  });
  await deputy.start();
  client = sdkClient(deputy.url);
});
afterAll(async () => {
  await deputy.close();
  await models.close();
});
beforeEach(() => {
  held = new HeldRequests();
});

/** A lead's script: so many parallel children, each of which says `text`, its tokens `delayMs` apart. */
function script(name: string, children: number, { text = "done", delayMs = 0 } = {}): string {
  const one = (at: number) =>
    `@ & delegate general-purpose :: child ${at} :: <<'C${"X".repeat(at)}'\nChild of ${name}.\n@ delay ${delayMs}\n@ say ${text}\nC${"X".repeat(at)}`;
  return [...Array.from({ length: children }, (_, at) => one(at)), "@ say all done"].join("\n");
}

async function start(text: string, threadId?: string): Promise<{ threadId: string; runId: string }> {
  const thread = threadId ?? (await client.threads.create()).thread_id;
  const config = { configurable: { max_concurrent_subagents: CHILDREN, max_total_subagents: CHILDREN } };
  const { run_id } = await client.runs.create(thread, LEAD, { ...human(text), config });
  return { threadId: thread, runId: run_id };
}

const statusOf = async ({ threadId, runId }: { threadId: string; runId: string }) =>
  (await client.runs.get(threadId, runId)).status;

describe("model requests that wait for headers", () => {
  it("are at most five of an object, in turn, until all twelve children were answered", async () => {
    const run = await start(script("first", CHILDREN));
    for (let answered = 0; answered < CHILDREN; answered += 1) {
      const expected = Math.min(CHILDREN, answered + HEADER_WAITS_MAX);
      await eventually(
        () => held.seen,
        (seen) => seen >= expected,
        PATIENCE_MS,
      );
      held.openFirst();
    }
    await eventually(
      () => statusOf(run),
      (status) => status === "success",
      PATIENCE_MS,
    );
    expect(held.most).toBe(HEADER_WAITS_MAX);
    expect(held.seen).toBe(CHILDREN);
  });

  it("make room when their headers came, not when their answers ended", async () => {
    const run = await start(script("slow", CHILDREN, { text: "one two three four five", delayMs: 10_000 }));
    await eventually(
      () => held.waiting.length,
      (count) => count === HEADER_WAITS_MAX,
      PATIENCE_MS,
    );
    const before = Date.now();
    for (let opened = 0; opened < HEADER_WAITS_MAX; opened += 1) held.openFirst();
    await eventually(
      () => held.seen,
      (seen) => seen === 2 * HEADER_WAITS_MAX,
      PATIENCE_MS,
    );
    // Five tokens of ten seconds each: none of the first answers can have ended.
    expect(Date.now() - before).toBeLessThan(50_000);
    await client.runs.cancel(run.threadId, run.runId, true);
  });

  it("of one thread do not hold up another's", async () => {
    const runs = [await start(script("north", 6)), await start(script("south", 6))];
    await eventually(
      () => [held.of("north"), held.of("south")].join(),
      (counts) => counts === "5,5",
      PATIENCE_MS,
    );
    await Promise.all(runs.map(({ threadId, runId }) => client.runs.cancel(threadId, runId, true)));
  });

  it("give their places back when their run is cancelled", async () => {
    const run = await start(script("ended", CHILDREN));
    await eventually(
      () => held.of("ended"),
      (count) => count === HEADER_WAITS_MAX,
      PATIENCE_MS,
    );
    await client.runs.cancel(run.threadId, run.runId, true);
    await start(script("next", 6), run.threadId);
    await eventually(
      () => held.of("next"),
      (count) => count === HEADER_WAITS_MAX,
      PATIENCE_MS,
    );
    // None of the seven that waited at the gate came after all.
    expect(held.of("ended")).toBe(HEADER_WAITS_MAX);
  });
});
