/** Deliveries at a run's end: what is kept, when it is tried, what is told. The request itself: test/unit/webhook. */
import { describe, expect, it } from "vitest";
import type { AttemptOutcome } from "../../../src/domain/webhook/delivery.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import type { RunEvent } from "../../../src/protocol/run-events.ts";
import { createRunBodySchema } from "../../../src/protocol/runs.ts";
import {
  type WebhookRequest,
  type WebhookSender,
  webhookSender,
} from "../../../src/platform/webhook/webhook-sender.ts";
import { eventually } from "../../support/eventually.ts";
import { ALICE, asking, newThread, send } from "../../support/http.ts";
import { startRun, tomorrow, type ThreadWakes, withWakes } from "../../support/thread-wakes.ts";

const URL_OF_RECEIVER = "https://hooks.example.com/deputy?token=of-the-receiver";
const ASKED = { webhook: URL_OF_RECEIVER };
const TAKEN = { kind: "delivered", status: 200 } as const;
const BROKEN = { kind: "failed", reason: "status_500", isFinal: false } as const;

/** The receiver, as the object's port has it. */
class Receiver implements WebhookSender {
  readonly requests: WebhookRequest[] = [];
  answer: () => AttemptOutcome | Promise<AttemptOutcome> = () => TAKEN;

  check(url: string): ReturnType<WebhookSender["check"]> {
    return webhookSender({ secret: "s", allowedHosts: [], timeoutMs: 1_000, fetchIn: () => fetch }).check(url);
  }

  async send(request: WebhookRequest): Promise<AttemptOutcome> {
    this.requests.push(request);
    return this.answer();
  }
}

const rowsOf = ({ storage }: ThreadWakes) => storage.sql.exec("SELECT * FROM webhook_deliveries").toArray();

/** What the thread told of deliveries, from the outbox: D1 is held back in these tests. */
function toldBy({ storage }: ThreadWakes): Pick<RunEvent, "event_type" | "content">[] {
  const blocks = storage.sql.exec<{ events: string }>("SELECT events FROM event_outbox ORDER BY block").toArray();
  const events = blocks.flatMap(({ events: json }) => JSON.parse(json) as RunEvent[]);
  const told = events.filter(({ event_type: type }) => type.startsWith("webhook."));
  return told.map(({ event_type, content }) => ({ event_type, content }));
}

/** D1 out of reach: events stay where a test can read them. */
const NO_D1 = new Proxy({} as D1Database, {
  get: () => () => {
    throw new Error("no D1 in this test");
  },
});

async function ended(runtime: ThreadRuntime, runId: string): Promise<void> {
  await runtime.context.live.get(runId)?.done;
}

const until = (holds: () => boolean) => eventually(holds, (seen) => seen);

describe("a delivery", () => {
  it("is made once when the run has ended, with the run and its values, and leaves nothing behind", async () => {
    await withWakes(async (thread) => {
      const receiver = new Receiver();
      const runtime = await thread.create({ webhooks: receiver, db: NO_D1 });
      const body = { ...ASKED, metadata: { of: "me" }, context: { api_token: "hidden" } };
      const run = await startRun(runtime, "@ say done", body);
      await ended(runtime, run.runId);
      await until(() => rowsOf(thread).length === 0 && receiver.requests.length > 0);
      expect(receiver.requests).toHaveLength(1);
      const [{ url, deliveryId, body: sent }] = receiver.requests as [WebhookRequest];
      expect({ url, deliveryId }).toEqual({ url: URL_OF_RECEIVER, deliveryId: run.runId });
      const told = JSON.parse(sent) as { values: { messages: { content: string }[] }; [key: string]: unknown };
      expect(told).toMatchObject({ run_id: run.runId, thread_id: thread.threadId, status: "success", error: null });
      expect(told).toMatchObject({ metadata: { of: "me" }, assistant_id: "lead_agent" });
      expect(Date.parse(String(told["run_ended_at"]))).toBeGreaterThanOrEqual(
        Date.parse(String(told["run_started_at"])),
      );
      expect(told.values.messages.map(({ content }) => content)).toEqual(["@ say done", "done"]);
      expect(sent).not.toContain("hidden");
      expect(toldBy(thread)).toEqual([{ event_type: "webhook.delivered", content: { attempt: 1, status: 200 } }]);
      expect(JSON.stringify(toldBy(thread))).not.toContain("of-the-receiver");
      expect(runtime.context.webhooks.nextDueAt()).toBeUndefined();
    });
  });

  it("is made for a run that failed and one that was cancelled, with what became of them", async () => {
    await withWakes(async (thread) => {
      const receiver = new Receiver();
      const runtime = await thread.create({
        webhooks: receiver,
        db: NO_D1,
        config: { llm_call: { retry_max_attempts: 1 } },
      });
      const failing = await startRun(runtime, "@ fail 400\n@ say never", ASKED);
      await ended(runtime, failing.runId);
      const slow = await startRun(runtime, '@ call bash {"command": "sleep 9"}\n@ say never', ASKED);
      await runtime.runs.cancel(slow.runId, { wait: true });
      await until(() => receiver.requests.length === 2);
      const [failed, cancelled] = receiver.requests.map(({ body }) => JSON.parse(body) as Record<string, unknown>);
      expect(failed).toMatchObject({ run_id: failing.runId, status: "error", error: { message: expect.any(String) } });
      expect(cancelled).toMatchObject({ run_id: slow.runId, status: "interrupted" });
    });
  });

  it("that fails is tried again by the alarm with the same id, longer each time, and given up with an event", async () => {
    await withWakes(async (thread) => {
      let now = tomorrow();
      const receiver = new Receiver();
      receiver.answer = () => BROKEN;
      const config = { webhooks: { max_attempts: 3, retry_base_seconds: 10, timeout_seconds: 5 } };
      const runtime = await thread.create({ webhooks: receiver, db: NO_D1, now: () => now, config });
      const run = await startRun(runtime, "@ say done", ASKED);
      await ended(runtime, run.runId);
      const waits: number[] = [];
      for (const attempt of [1, 2]) {
        await until(() => toldBy(thread).length === attempt);
        const due = runtime.context.webhooks.nextDueAt()!;
        waits.push(due - now);
        // A moment too early nothing happens.
        now = due - 1;
        await runtime.onAlarm();
        expect(receiver.requests).toHaveLength(attempt);
        now = due;
        await runtime.onAlarm();
        await until(() => receiver.requests.length === attempt + 1);
      }
      await until(() => toldBy(thread).length === 3);
      expect(waits).toEqual([10_000, 30_000]);
      expect(new Set(receiver.requests.map(({ deliveryId }) => deliveryId)).size).toBe(1);
      expect(toldBy(thread).map(({ content }) => content)).toMatchObject([
        { attempt: 1, reason: "status_500", next_attempt_at: expect.any(String) },
        { attempt: 2, reason: "status_500", next_attempt_at: expect.any(String) },
        { attempt: 3, reason: "status_500", next_attempt_at: null },
      ]);
      expect(rowsOf(thread)).toEqual([]);
      expect(runtime.context.webhooks.nextDueAt()).toBeUndefined();
      now += 86_400_000;
      await runtime.onAlarm();
      expect(receiver.requests).toHaveLength(3);
    });
  });

  it("whose attempt died with its object is made by the next wake, not before the attempt could have ended", async () => {
    await withWakes(async (thread) => {
      let now = tomorrow();
      const lost = new Receiver();
      lost.answer = () => new Promise(() => {});
      const first = await thread.create({ webhooks: lost, db: NO_D1, now: () => now });
      const run = await startRun(first, "@ say done", ASKED);
      await ended(first, run.runId);
      await until(() => lost.requests.length === 1);
      const due = first.context.webhooks.nextDueAt()!;
      expect(due - now).toBe(20_000);
      // The object that waits for its receiver is gone; its storage is what is left.
      const receiver = new Receiver();
      const second = await thread.wake({ webhooks: receiver, db: NO_D1, now: () => now });
      expect(receiver.requests).toEqual([]);
      now = due;
      await second.onAlarm();
      await until(() => rowsOf(thread).length === 0);
      expect(receiver.requests.map(({ deliveryId }) => deliveryId)).toEqual([run.runId]);
      expect(receiver.requests[0]!.body).toContain('"content":"done"');
    });
  });

  it("never holds up a run: the next one starts and ends while its receiver stays silent", async () => {
    await withWakes(async (thread) => {
      const receiver = new Receiver();
      receiver.answer = () => new Promise(() => {});
      const runtime = await thread.create({ webhooks: receiver, db: NO_D1 });
      for (const script of ["@ say one", "@ say two"]) {
        const run = await startRun(runtime, script, ASKED);
        await ended(runtime, run.runId);
        expect(runtime.context.runs.find(run.runId)?.status).toBe("success");
      }
      // One attempt at a time: the second waits in its row.
      expect(receiver.requests).toHaveLength(1);
      expect(rowsOf(thread)).toHaveLength(2);
    });
  });

  it("of a run that was removed is dropped, also while an attempt is under way", async () => {
    await withWakes(async (thread) => {
      const receiver = new Receiver();
      const answers: ((outcome: AttemptOutcome) => void)[] = [];
      receiver.answer = () => new Promise((resolve) => void answers.push(resolve));
      const runtime = await thread.create({ webhooks: receiver, db: NO_D1 });
      const run = await startRun(runtime, "@ say done", ASKED);
      await ended(runtime, run.runId);
      await until(() => answers.length === 1);
      runtime.context.runs.delete(run.runId);
      answers[0]!(BROKEN);
      await until(() => rowsOf(thread).length === 0);
      expect(toldBy(thread)).toEqual([]);
    });
  });

  it("nobody asked for has no row, no alarm and no request", async () => {
    await withWakes(async (thread) => {
      const receiver = new Receiver();
      const runtime = await thread.create({ webhooks: receiver, db: NO_D1 });
      const run = await startRun(runtime, "@ say done");
      await ended(runtime, run.runId);
      expect(rowsOf(thread)).toEqual([]);
      expect(runtime.context.webhooks.nextDueAt()).toBeUndefined();
      expect(receiver.requests).toEqual([]);
    });
  });
});

describe("a create that asks for a webhook", () => {
  it("is refused by name on every route where the deployment has no secret", async () => {
    const threadId = await newThread();
    for (const base of [`/threads/${threadId}/runs`, "/runs"]) {
      for (const route of ["", "/stream", "/wait"]) {
        const answer = await send("POST", base + route, asking("x", ASKED), ALICE);
        const { code, message, details } = await answer.json<Record<string, unknown>>();
        expect([answer.status, code, details]).toEqual([422, "unsupported_option", { field: "webhook" }]);
        expect(message).toContain("WEBHOOK_SECRET");
      }
    }
  });

  it("is refused for an address that is not public, and nothing is stored", async () => {
    await withWakes(async (thread) => {
      const runtime = await thread.create({ webhooks: new Receiver(), db: NO_D1 });
      for (const url of [
        "https://127.0.0.1/",
        "https://[::ffff:169.254.169.254]/",
        "https://x.internal/",
        "nonsense",
      ]) {
        const body = createRunBodySchema.parse(asking("@ say no", { webhook: url }));
        const created = await runtime.runs.create({ graph_id: "lead_agent", body });
        expect(created).toMatchObject({
          ok: false,
          error: { code: "invalid_request", details: { path: ["webhook"] } },
        });
      }
      expect(runtime.runs.list({ limit: 10, offset: 0 })).toEqual([]);
    });
  });
});
