/**
 * Delivers webhooks of runs that ended: begun in the transaction of the end, made beside the run, tried again by the
 * alarm. Owns the rows and the order of attempts; what an outcome means is `domain/webhook/delivery.ts`.
 *
 * - At least once: a row is there from the run's end until the receiver took it or it was given up.
 * - One attempt at a time, so that a slow receiver takes one connection of the object, and never more.
 * - The run never waits for it, and no fault of it reaches the run.
 */
import type { DeputyConfig } from "../config.ts";
import {
  type AttemptOutcome,
  beginAttempt,
  decideDelivery,
  type DeliveryDecision,
  type DeliveryPolicy,
  firstAttempt,
  isSpent,
  type PendingDelivery,
} from "../domain/webhook/delivery.ts";
import type { EventOutbox } from "../platform/durable-storage/event-outbox.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { WebhookStore } from "../platform/durable-storage/webhook-store.ts";
import type { WebhookSender } from "../platform/webhook/webhook-sender.ts";
import { type ApiRefusal } from "../protocol/errors.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import type { AlarmSource } from "./object-alarm.ts";

/** Deliveries of one thread that may wait: a receiver that is down for hours must not make a table without end. */
export const WEBHOOKS_WAITING_MAX = 1_000;

export function toDeliveryPolicy(config: DeputyConfig["webhooks"]): DeliveryPolicy {
  return {
    attemptsMax: config.max_attempts,
    retryBaseMs: config.retry_base_seconds * 1_000,
    timeoutMs: config.timeout_seconds * 1_000,
  };
}

export interface WebhookPorts {
  readonly storage: Pick<DurableObjectStorage, "transactionSync">;
  readonly store: WebhookStore;
  readonly sender: WebhookSender;
  readonly policy: DeliveryPolicy;
  readonly outbox: EventOutbox;
  /** The body of a run's delivery; `undefined` when the run is gone. */
  readonly payload: (runId: string) => Promise<string | undefined>;
  /** The thread is being deleted: nothing is written any more. */
  readonly isClosing: () => boolean;
  readonly hasRun: (runId: string) => boolean;
  readonly threadId: () => string;
  readonly now: () => number;
  /** A delivery waits: the alarm has to know, and D1 to hear what was told. */
  readonly onChange: () => void;
  readonly onFault: (fault: unknown) => void;
}

export class WebhookDeliveries implements AlarmSource {
  readonly #ports: WebhookPorts;
  /** Runs whose attempt was stored and not made yet. */
  readonly #begun: string[] = [];
  #isSending = false;

  constructor(ports: WebhookPorts) {
    this.#ports = ports;
  }

  nextDueAt(): number | undefined {
    return this.#ports.store.earliest()?.dueAt;
  }

  /** Why a create that asks for this delivery is refused. */
  refusal(url: string | null | undefined): ApiRefusal | undefined {
    if (url === null || url === undefined) return undefined;
    const checked = this.#ports.sender.check(url);
    if (!checked.ok) return checked.error;
    if (this.#ports.store.count() < WEBHOOKS_WAITING_MAX) return undefined;
    return {
      code: "rate_limited",
      message: `webhook: ${WEBHOOKS_WAITING_MAX} deliveries of this thread wait for their receiver`,
      details: { path: ["webhook"], limit: WEBHOOKS_WAITING_MAX },
    };
  }

  /** Call in the transaction that ends the run: its delivery is as certain as its end. */
  begin({ runId, command }: RunRecord): void {
    const url = command.body.webhook;
    if (url === null || url === undefined) return;
    this.#ports.store.save(firstAttempt({ runId, url }, this.#ports.now(), this.#ports.policy));
    this.#begun.push(runId);
    queueMicrotask(() => {
      this.#ports.onChange();
      this.kick();
    });
  }

  /** Makes the attempts that are due; nobody waits for them. */
  kick(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    void this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      let next = this.#next();
      while (next !== undefined) {
        await this.#attempt(next);
        next = this.#ports.isClosing() ? undefined : this.#next();
      }
    } catch (fault) {
      this.#ports.onFault(fault);
    } finally {
      this.#isSending = false;
    }
  }

  /** The next delivery with an attempt that is stored as begun. */
  #next(): PendingDelivery | undefined {
    const { store, policy, now } = this.#ports;
    for (let runId = this.#begun.shift(); runId !== undefined; runId = this.#begun.shift()) {
      // Not there when the transaction it was begun in was not committed.
      const begun = store.find(runId);
      if (begun !== undefined) return begun;
    }
    const due = store.earliest();
    if (due === undefined || due.dueAt > now()) return undefined;
    if (isSpent(due, policy)) {
      this.#settle(due, { kind: "given_up", reason: "unknown" });
      return this.#next();
    }
    const begun = beginAttempt(due, now(), policy);
    store.save(begun);
    return begun;
  }

  async #attempt(delivery: PendingDelivery): Promise<void> {
    const { store, policy, now, payload, isClosing, hasRun } = this.#ports;
    const body = await payload(delivery.runId);
    if (isClosing()) return;
    if (body === undefined) return store.delete(delivery.runId);
    const outcome = await this.#send(delivery, body);
    if (isClosing()) return;
    if (!hasRun(delivery.runId)) return store.delete(delivery.runId);
    this.#settle(delivery, decideDelivery(delivery, outcome, now(), policy));
    this.#ports.onChange();
  }

  #send({ url, runId }: PendingDelivery, body: string): Promise<AttemptOutcome> {
    return this.#ports.sender.send({
      url,
      deliveryId: runId,
      body,
      now: this.#ports.now(),
      scope: this.#ports.threadId(),
    });
  }

  /** The row and the log change together. */
  #settle(delivery: PendingDelivery, decision: DeliveryDecision): void {
    const { storage, store, outbox, now } = this.#ports;
    storage.transactionSync(() => {
      if (decision.kind === "retry") store.save(decision.next);
      else store.delete(delivery.runId);
      outbox.append([toEvent(delivery, decision)], { now: now() });
    });
  }
}

/** Without the URL: it may hold a token of the receiver's. */
function toEvent({ runId, attempts }: PendingDelivery, decision: DeliveryDecision): RunEventDraft {
  const told = { run_id: runId, category: "trace", metadata: {} } as const;
  if (decision.kind === "done") {
    return { ...told, event_type: "webhook.delivered", content: { attempt: attempts, status: decision.status } };
  }
  const nextAt = decision.kind === "retry" ? new Date(decision.next.dueAt).toISOString() : null;
  const content = { attempt: attempts, reason: decision.reason, next_attempt_at: nextAt };
  return { ...told, event_type: "webhook.failed", content };
}
