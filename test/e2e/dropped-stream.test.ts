import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CuttingProxy } from "../support/cutting-proxy.ts";
import { DeputyServer, eventually } from "../support/deputy-server.ts";
import { collect, dataOf, human, LEAD, type LeadValues, type Part, runIdOf, sdkClient } from "../support/sdk.ts";

/** Seventy-five seconds are what a detached run would not survive without the object's keep-alive alarm. */
const DETACHED_MS_MIN = 75_000;
const DETACHED_SCRIPT = "@ delay 8600\n@ say one two three four five six seven eight";

const deputy = new DeputyServer();
let proxy: CuttingProxy;
let proxied: string;
let detached: Readonly<Record<"created" | "streamed", Detached>>;

beforeAll(async () => {
  await deputy.start();
  proxy = new CuttingProxy(Number(new URL(deputy.url).port));
  proxied = await proxy.start();
  detached = { created: await createAndLeave(), streamed: await streamAndLeave() };
});
afterAll(async () => {
  await proxy.close();
  await deputy.close();
});

interface Detached {
  readonly threadId: string;
  readonly runId: string;
  readonly leftAt: number;
}

/** Starts a slow run in the background: the one that dies at about 70 s when no alarm keeps its object awake. */
async function createAndLeave(): Promise<Detached> {
  const client = sdkClient(deputy.url);
  const { thread_id: threadId } = await client.threads.create();
  const { run_id: runId } = await client.runs.create(threadId, LEAD, human(DETACHED_SCRIPT));
  return { threadId, runId, leftAt: Date.now() };
}

/** Starts a slow run by its stream, reads its first token, and goes away. */
async function streamAndLeave(): Promise<Detached> {
  const client = sdkClient(deputy.url);
  const { thread_id: threadId } = await client.threads.create();
  const leaving = new AbortController();
  const stream = client.runs.stream(threadId, LEAD, {
    ...human(DETACHED_SCRIPT),
    streamMode: ["messages-tuple", "values"],
    signal: leaving.signal,
  });
  let runId = "";
  for await (const part of stream as AsyncIterable<Part>) {
    if (part.event === "metadata") runId = (part.data as { run_id: string }).run_id;
    if (part.event === "messages") break;
  }
  leaving.abort();
  return { threadId, runId, leftAt: Date.now() };
}

interface Cut {
  /** Cut once this many parts have come. */
  readonly afterParts: number;
  /** Bytes that still pass: not 0 means in the middle of a frame. */
  readonly bytes: number;
}

/** A stream through the proxy, cut as told, beside the same run's list as storage has it. */
async function streamWithCuts(script: string, cuts: readonly Cut[]): Promise<{ seen: Part[]; stored: Part[] }> {
  const client = sdkClient(proxied);
  const { thread_id: threadId } = await client.threads.create();
  const seen: Part[] = [];
  const stream = client.runs.stream(threadId, LEAD, {
    ...human(script),
    streamMode: ["messages-tuple", "values", "updates"],
    streamResumable: true,
  });
  for await (const part of stream) {
    seen.push(part);
    const cut = cuts.find(({ afterParts }) => afterParts === seen.length);
    if (cut !== undefined) proxy.cutAfter(cut.bytes);
  }
  const direct = sdkClient(deputy.url);
  const stored = await collect(direct.runs.joinStream(threadId, runIdOf(seen), { lastEventId: "-1" }));
  return { seen, stored };
}

describe("a stream whose socket is cut", () => {
  it("resumes through Location: cut between frames, in the middle of a frame and again, nothing is lost or doubled", async () => {
    const before = proxy.opened;
    const words = Array.from({ length: 250 }, (_, index) => `word-${index}`).join(" ");
    const { seen, stored } = await streamWithCuts(`@ delay 20\n@ say ${words}`, [
      { afterParts: 12, bytes: 0 },
      { afterParts: 60, bytes: 137 },
      { afterParts: 120, bytes: 1 },
    ]);
    expect(proxy.opened - before).toBeGreaterThanOrEqual(4);
    expect(seen).toEqual(stored);
    expect(dataOf<LeadValues>(seen, "values").at(-1)!.messages.at(-1)!.content).toBe(words);
  });

  it("resumes a run that ended while its client was away", async () => {
    const words = Array.from({ length: 40 }, (_, index) => `word-${index}`).join(" ");
    const { seen, stored } = await streamWithCuts(`@ delay 10\n@ say ${words}`, [{ afterParts: 5, bytes: 50 }]);
    expect(seen).toEqual(stored);
    expect(dataOf<LeadValues>(seen, "values").at(-1)!.messages.at(-1)!.content).toBe(words);
  });

  it("cancels its run when the client asked for that with on_disconnect", async () => {
    const client = sdkClient(deputy.url);
    const { thread_id: threadId } = await client.threads.create();
    const leaving = new AbortController();
    const stream = client.runs.stream(threadId, LEAD, {
      ...human("@ delay 100\n@ say " + "word ".repeat(600)),
      streamMode: "messages-tuple",
      onDisconnect: "cancel",
      signal: leaving.signal,
    });
    for await (const part of stream as AsyncIterable<Part>) if (part.event === "messages") break;
    leaving.abort();
    const [run] = await eventually(
      () => client.runs.list(threadId),
      ([seen]) => seen!.status !== "running",
      30_000,
    );
    expect(run!.status).toBe("interrupted");
  });
});

describe("a client that waits for values", () => {
  it.each(["wait", "join"] as const)(
    "that accepts compression and leaves is noticed at the heartbeat, and its run is cancelled as it asked: %s",
    async (how) => {
      const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
      const run = { assistant_id: LEAD, ...human("@ delay 1000\n@ say " + "word ".repeat(60)) };
      const path = `/threads/${threadId}/runs`;
      const started = how === "join" ? await deputy.json<{ run_id: string }>("POST", path, run) : undefined;
      const leaving = new AbortController();
      const asked = {
        headers: { "content-type": "application/json", "accept-encoding": "gzip, deflate, br" },
        signal: leaving.signal,
      };
      const response = started
        ? await fetch(`${deputy.url}${path}/${started.run_id}/join?cancel_on_disconnect=1`, asked)
        : await fetch(`${deputy.url}${path}/wait`, {
            ...asked,
            method: "POST",
            body: JSON.stringify({ ...run, on_disconnect: "cancel" }),
          });
      const beat = await response.body!.getReader().read();
      expect(new TextDecoder().decode(beat.value)).toBe("\n");
      leaving.abort();
      const [ended] = await eventually(
        () => deputy.json<{ status: string }[]>("GET", path),
        ([seen]) => seen!.status !== "running",
        30_000,
      );
      expect(ended!.status).toBe("interrupted");
    },
  );
});

describe("a quiet stream", () => {
  it("carries a heartbeat comment every 15 s, so that a client can tell silence from a dead socket", async () => {
    const { thread_id: threadId } = await deputy.json<{ thread_id: string }>("POST", "/threads", {});
    const body = { assistant_id: LEAD, ...human("@ delay 10000\n@ say a b c d e"), stream_mode: "values" };
    const response = await fetch(`${deputy.url}/threads/${threadId}/runs/stream`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const beats: number[] = [];
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    while (beats.length < 2) {
      const { done, value } = await reader.read();
      if (done) break;
      if (value.includes(": heartbeat")) beats.push(Date.now());
    }
    await reader.cancel();
    expect(beats).toHaveLength(2);
    expect(beats[1]! - beats[0]!).toBeGreaterThan(13_000);
    expect(beats[1]! - beats[0]!).toBeLessThan(20_000);
    const [run] = await deputy.json<{ run_id: string }[]>("GET", `/threads/${threadId}/runs`);
    await deputy.json("POST", `/threads/${threadId}/runs/${run!.run_id}/cancel?wait=1`);
  });
});

describe("a run whose client left", () => {
  // Last, so that the time of the tests above is part of the time these runs have to live through.
  it.each(["created", "streamed"] as const)(
    "goes on for more than 75 s with nobody asking, and ends as success (P1): %s",
    async (how) => {
      const { threadId, runId, leftAt } = detached[how];
      const [row] = await eventually(
        () =>
          deputy.query<{ status: string; updated_at: string }>(
            `SELECT status, updated_at FROM runs WHERE run_id = '${runId}'`,
          ),
        ([seen]) => seen !== undefined && seen.status !== "running",
        110_000,
      );
      expect(row!.status).toBe("success");
      expect(Date.parse(row!.updated_at) - leftAt).toBeGreaterThan(DETACHED_MS_MIN);
      const state = await sdkClient(deputy.url).threads.getState<LeadValues>(threadId);
      expect(state.values.messages.at(-1)!.content).toBe("one two three four five six seven eight");
      const events = await deputy.json<{ event_type: string }[]>("GET", `/threads/${threadId}/runs/${runId}/events`);
      // It was never interrupted: one attempt, no recovery.
      expect(events.map((event) => event.event_type)).toEqual([
        "run.start",
        "llm.human.input",
        "llm.ai.response",
        "run.end",
      ]);
    },
  );
});
