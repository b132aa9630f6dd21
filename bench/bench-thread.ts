/**
 * One thread under the meters: runs over HTTP with a live reader, and what each costs until its object is at rest again.
 * Owns the waiting: events flushed, pruning done, every alarm the run caused fired, frames expired.
 */
import { env, runDurableObjectAlarm, runInDurableObject, SELF } from "cloudflare:test";
import type { DeputyConfigInput } from "../src/config.ts";
import type { ThreadContext } from "../src/durable-objects/thread-context.ts";
import { threadObjectName } from "../src/platform/thread-directory.ts";
import { desk } from "./worker.ts";

export const OWNER = "alice";
const HEADERS = { "x-api-key": "key-alice", "content-type": "application/json" };

/** Past `frames_ttl_seconds` (an hour) and the slack of expiry. */
const PAST_EXPIRY_MS = 2 * 3_600_000;
/** A run sets its keep-alive, then its expiry; more than a few means that something re-arms for ever. */
const ALARMS_MAX = 10;
/** An object that is not at rest after these looks, 10 ms apart, hangs. */
const LOOKS_MAX = 1_000;
const LOOK_MS = 10;

/** The label pruning is metered under: apart from the run's own rows. */
const PRUNING = "pruning";

export interface RunBill {
  /** Pruning apart. */
  readonly objectRows: number;
  readonly objectByLabel: Readonly<Record<string, number>>;
  readonly objectRowsRead: number;
  readonly pruningRows: number;
  readonly d1Rows: number;
  readonly d1ByKind: Readonly<Record<string, number>>;
  readonly d1RowsRead: number;
}

export class BenchThread {
  readonly threadId: string;
  readonly #context: ThreadContext;

  private constructor(threadId: string, context: ThreadContext) {
    this.threadId = threadId;
    this.#context = context;
  }

  /** The object wakes with `overrides` laid over the configuration. */
  static async create(overrides: DeputyConfigInput = {}): Promise<BenchThread> {
    desk.overrides = overrides;
    const response = await post("/threads", {});
    const { thread_id } = await response.json<{ thread_id: string }>();
    return new BenchThread(thread_id, desk.newestContext());
  }

  /** Streams a run to its end and gives what it cost from rest to rest. */
  async bill(prompt: string): Promise<RunBill> {
    await this.inObject((context) => context.meter.reset());
    desk.d1.reset();
    await this.#stream(prompt);
    await this.#comeToRest();
    if (desk.newestContext() !== this.#context) throw new Error("the object did not stay awake");
    return this.inObject(toBill);
  }

  /** Acts inside the object: storage and cursors belong to it. */
  inObject<T>(act: (context: ThreadContext) => T): Promise<T> {
    return runInDurableObject(this.#stub(), () => act(this.#context));
  }

  async #stream(prompt: string): Promise<void> {
    const response = await post(`/threads/${this.threadId}/runs/stream`, {
      assistant_id: "lead_agent",
      input: { messages: [{ type: "human", content: prompt }] },
      stream_mode: ["values", "messages-tuple"],
    });
    const text = await response.text();
    if (!text.includes("event: values") || text.includes("event: error")) throw new Error(`the run failed: ${text}`);
  }

  async #comeToRest(): Promise<void> {
    await this.#untilSettled();
    // The first alarm is the keep-alive, 30 s into the run: frames do not expire in it.
    for (let fired = 0; await runDurableObjectAlarm(this.#stub()); fired += 1) {
      if (fired === ALARMS_MAX) throw new Error("the alarm is armed for ever");
      await this.#untilSettled();
      desk.advance(PAST_EXPIRY_MS);
    }
    if (await this.inObject((context) => context.frames.oldestRun()))
      throw new Error("the run's frames did not expire");
  }

  /** No live run, nothing to flush, and no row written between two looks. */
  async #untilSettled(): Promise<void> {
    let before = "";
    for (let look = 0; look < LOOKS_MAX; look += 1) {
      const now = await this.inObject((context) =>
        context.live.size > 0 || context.outbox.pending() !== undefined
          ? ""
          : JSON.stringify([context.meter.totals().rowsWritten, desk.d1.totals().rowsWritten]),
      );
      if (now !== "" && now === before) return;
      before = now;
      await new Promise((next) => setTimeout(next, LOOK_MS));
    }
    throw new Error("the object did not come to rest");
  }

  #stub(): DurableObjectStub {
    return env.THREADS.get(env.THREADS.idFromName(threadObjectName(OWNER, this.threadId)));
  }
}

export async function post(path: string, body: unknown): Promise<Response> {
  const init = { method: "POST", headers: HEADERS, body: JSON.stringify(body) };
  const response = await SELF.fetch(`https://deputy.bench${path}`, init);
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  return response;
}

function toBill(context: ThreadContext): RunBill {
  const byLabel = Object.entries(context.meter.byLabel());
  const d1 = desk.d1.totals();
  const own = byLabel.filter(([label]) => label !== PRUNING);
  return {
    objectRows: own.reduce((sum, [, totals]) => sum + totals.rowsWritten, 0),
    objectByLabel: Object.fromEntries(own.map(([label, totals]) => [label, totals.rowsWritten])),
    objectRowsRead: own.reduce((sum, [, totals]) => sum + totals.rowsRead, 0),
    pruningRows: byLabel.find(([label]) => label === PRUNING)?.[1].rowsWritten ?? 0,
    d1Rows: d1.rowsWritten,
    d1ByKind: Object.fromEntries(Object.entries(desk.d1.byKind()).map(([kind, totals]) => [kind, totals.rowsWritten])),
    d1RowsRead: d1.rowsRead,
  };
}
