/**
 * Runs the items of one claim side by side and settles them. Owns the group's memory only: every write names the lease.
 * Finished items are settled together: the first one waits a moment for others, so instant items cost one settle.
 * Ends when every item has stopped and everything that may still be written was.
 */
import type { Timers } from "../subagents/timers.ts";
import type { BatchWorkRows } from "../../domain/batch/batch-repository.ts";
import type { BatchFacts, BatchFile, ClaimedItem, LeaseRef, Wake } from "../../domain/batch/batch.ts";
import { decideSettlement, type BatchItemOutcome, type ItemSettlement } from "../../domain/batch/item-settlement.ts";
import type { Failpoint } from "../../domain/shared/failpoint.ts";
import { itemPrompt } from "../../domain/batch/item-text.ts";
import type { BatchItemRunner } from "./item-runner.ts";

/** How long a finished item waits for others: short beside a model's answer, long beside an instant item. */
export const SETTLE_LINGER_MS = 1_000;
/** A child that ignores its timeout is left behind after this; the consumer's 15 minutes hold 780 s and it. */
export const STOP_GRACE_MS = 5_000;
/** A settle is safe to repeat; a D1 that fails this often in a row leaves the items to the sweep. */
const SETTLE_TRIES = 5;
const SETTLE_RETRY_MS = 500;

export interface ItemGroupPorts {
  readonly rows: Pick<BatchWorkRows, "systemSettle">;
  readonly runner: BatchItemRunner;
  readonly timers: Timers;
  readonly now: () => number;
  readonly resultCharsMax: number;
  readonly failpoint?: Failpoint | undefined;
  readonly log: (what: string, details: Readonly<Record<string, unknown>>) => void;
}

export interface ItemGroupWork {
  readonly wake: Wake;
  readonly lease: LeaseRef;
  readonly items: readonly ClaimedItem[];
  readonly batch: BatchFacts;
  readonly files: readonly BatchFile[];
  /** Aborted when the lease is lost or the batch cancelled: then nothing more is written. */
  readonly leaseSignal: AbortSignal;
}

export class ItemGroup {
  readonly #ports: ItemGroupPorts;
  readonly #work: ItemGroupWork;
  #finished: ItemSettlement[] = [];
  #lingering: unknown;
  #settling: Promise<void> = Promise.resolve();

  constructor(ports: ItemGroupPorts, work: ItemGroupWork) {
    this.#ports = ports;
    this.#work = work;
  }

  async run(): Promise<void> {
    await Promise.all(this.#work.items.map((item) => this.#runOne(item)));
    this.#settleFinished();
    await this.#settling;
  }

  async #runOne(item: ClaimedItem): Promise<void> {
    const outcome = await this.#outcomeOf(item);
    const { maxAttempts } = this.#work.batch;
    const { resultCharsMax, timers } = this.#ports;
    const facts = { ordinal: item.ordinal, attempts: item.attempts, maxAttempts, resultCharsMax };
    const settlement = this.#work.leaseSignal.aborted ? undefined : decideSettlement(facts, outcome);
    if (settlement === undefined) return;
    this.#finished.push(settlement);
    this.#lingering ??= timers.set(SETTLE_LINGER_MS, () => {
      this.#settleFinished();
    });
  }

  async #outcomeOf(item: ClaimedItem): Promise<BatchItemOutcome> {
    const { batch, leaseSignal } = this.#work;
    const { timers } = this.#ports;
    const timeout = new AbortController();
    const timeoutMs = batch.timeoutSeconds * 1_000;
    const signal = AbortSignal.any([leaseSignal, timeout.signal]);
    const timer = timers.set(timeoutMs, () => {
      timeout.abort("timed_out");
    });
    try {
      const outcome = await Promise.race([this.#attempt(item, timeoutMs, signal), stopped(signal, timers)]);
      const isLate = timeout.signal.aborted && outcome.kind !== "completed";
      return isLate ? { kind: "failed", error: `timed_out: no result after ${batch.timeoutSeconds} s` } : outcome;
    } finally {
      timers.clear(timer);
    }
  }

  async #attempt(item: ClaimedItem, timeoutMs: number, signal: AbortSignal): Promise<BatchItemOutcome> {
    const { wake, batch, files } = this.#work;
    const { batchId, owner, threadId } = wake;
    const { ordinal, key, attempts } = item;
    const runnable = {
      batchId,
      owner,
      threadId,
      ordinal,
      key,
      prompt: itemPrompt(key, item.prompt),
      attempt: attempts + 1,
    };
    const { subagentType, definition, submitterRole } = batch;
    const setting = { subagentType, definition, submitterRole, files, timeoutMs };
    try {
      return await this.#ports.runner.run(runnable, setting, signal);
    } catch (fault) {
      this.#ports.log("batch item threw", { batch_id: batchId, ordinal, fault: String(fault) });
      return { kind: "failed", error: fault instanceof Error ? `${fault.name}: ${fault.message}` : String(fault) };
    }
  }

  #settleFinished(): void {
    this.#ports.timers.clear(this.#lingering);
    this.#lingering = undefined;
    const settlements = this.#finished;
    this.#finished = [];
    if (settlements.length > 0) this.#settling = this.#settling.then(() => this.#settle(settlements));
  }

  async #settle(settlements: readonly ItemSettlement[]): Promise<void> {
    const { rows, now, log, timers } = this.#ports;
    const { lease, leaseSignal, wake } = this.#work;
    await this.#ports.failpoint?.("item_settle", { threadId: wake.threadId });
    for (let attempt = 1; attempt <= SETTLE_TRIES; attempt += 1) {
      try {
        const { stale } = await rows.systemSettle(lease, settlements, now());
        if (stale > 0) log("stale batch settle", { batch_id: lease.batchId, lease: lease.token, stale });
        return;
      } catch (fault) {
        log("batch settle failed", { batch_id: lease.batchId, attempt, fault: String(fault) });
        if (leaseSignal.aborted || attempt === SETTLE_TRIES) return;
        await new Promise<void>((resolve) => void timers.set(SETTLE_RETRY_MS * 2 ** attempt, resolve));
      }
    }
  }
}

/** A child that was told to stop and does not is given up after a grace. */
function stopped(signal: AbortSignal, timers: Timers): Promise<BatchItemOutcome> {
  return new Promise((resolve) => {
    const giveUp = (): void => {
      timers.set(STOP_GRACE_MS, () => {
        resolve({ kind: "aborted" });
      });
    };
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
  });
}
