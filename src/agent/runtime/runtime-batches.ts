/**
 * Batches of a runtime with a repository of the caller's: taken in, and run in this process. Rows are the truth, leases
 * and grants are those of a queue consumer, so another process may work on the same rows.
 * Owns one pump a batch: it asks admission for slots, claims that many items, runs them, and looks again. Waits cost no
 * attempt. Invariant: after `stop` has resolved nothing of it runs; what it did not claim stays pending in its rows.
 */
import type { BatchGrant } from "../../domain/admission/admission-state.ts";
import type { BatchRefusal } from "../../domain/batch/batch-refusal.ts";
import type { BatchRepository } from "../../domain/batch/batch-repository.ts";
import type { BatchView } from "../../domain/batch/batch.ts";
import { type BatchDraft, validateBatch } from "../../domain/batch/validate-batch.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import type { DeputyConfig } from "../../config.ts";
import { claimAndRun, type ClaimPorts } from "../batches/claim-and-run.ts";
import type { BatchItemRunner } from "../batches/item-runner.ts";
import { configuredLimits, hashDraft, limitsFor, toResolvedSubagent } from "../batches/submission.ts";
import { sleepFor } from "../models/sleep.ts";
import type { AdmissionController } from "../subagents/admission-controller.ts";
import { systemTimers } from "../subagents/timers.ts";
import type { BatchService, RunSubagent } from "../tools/batch-tools.ts";

/** How soon a pump looks again when items are in another process's hands, or the rows could not be read. */
export const BATCH_POLL_MS = 1_000;
/** Batches found at a start are read in pages, so that no answer grows with their number. */
const START_PAGE_BATCHES = 100;

export interface RuntimeBatchesParts {
  readonly repository: BatchRepository;
  readonly owner: string;
  readonly deputy: DeputyConfig;
  readonly runner: BatchItemRunner;
  readonly admission: AdmissionController;
  readonly newId: () => string;
  readonly reportFault: (what: string, error: unknown) => void;
}

interface Submission {
  readonly threadId: string;
  readonly draft: BatchDraft;
  readonly submissionKey: string;
  readonly definition: RunSubagent;
}

interface Pump {
  readonly cancel: AbortController;
  readonly done: Promise<void>;
}

export class RuntimeBatches {
  readonly #parts: RuntimeBatchesParts;
  readonly #pumps = new Map<string, Pump>();
  readonly #turns = new Map<string, (grant: BatchGrant | undefined) => void>();
  readonly #closing = new AbortController();

  constructor(parts: RuntimeBatchesParts) {
    this.#parts = parts;
  }

  serviceOf(threadId: string): BatchService {
    return {
      submit: (draft, key, definition) => this.#submit({ threadId, draft, submissionKey: key, definition }),
      status: (batchId) => this.#find(threadId, batchId),
      cancel: (batchId) => this.#cancel(threadId, batchId),
    };
  }

  /** Goes on with every batch of the owner that has not ended. */
  async start(): Promise<void> {
    const { repository, owner } = this.#parts;
    for (let after = ""; ;) {
      const page = await repository.systemListStale(Date.now() + 1, after, START_PAGE_BATCHES);
      for (const batch of page) if (batch.owner === owner) this.#pump(batch.batchId);
      const last = page.at(-1);
      if (last === undefined || page.length < START_PAGE_BATCHES) return;
      after = last.batchId;
    }
  }

  async stop(): Promise<void> {
    this.#closing.abort(new Error("the runtime stops"));
    for (const [batchId, resolve] of this.#turns) {
      this.#parts.admission.withdrawBatch(batchId);
      resolve(undefined);
    }
    await Promise.all([...this.#pumps.values()].map(({ done }) => done));
  }

  /** A batch that waited has its turn. Nobody may be waiting for it any more. */
  takeTurn(grant: BatchGrant): void {
    const resolve = this.#turns.get(grant.batchId);
    if (resolve === undefined) this.#parts.admission.returnGrant(grant.grantId);
    else resolve(grant);
  }

  async #submit({
    threadId,
    draft,
    submissionKey,
    definition: named,
  }: Submission): Promise<Result<BatchView, BatchRefusal>> {
    const { repository, owner, newId } = this.#parts;
    const bodyHash = hashDraft(draft);
    const found = await repository.findSubmission({ owner, threadId, submissionKey, bodyHash });
    if (!found.ok) return found;
    if (found.value !== undefined) return ok(found.value);
    if (!named.ok) return err({ reason: "unknown_subagent_type", message: named.error });
    const subagent = toResolvedSubagent(named.value);
    const limits = limitsFor(subagent, configuredLimits(this.#parts.deputy.subagent_batches));
    const plan = validateBatch(draft, limits, subagent.timeoutSeconds);
    if (!plan.ok) return plan;
    if (plan.value.files.length > 0) {
      const message = "this runtime has no files of a thread to hand to items: put what they need into their prompts";
      return err({ reason: "file_refused", field: "files", message });
    }
    const { definition } = subagent;
    const rest = { submissionKey, bodyHash, definition, submitterRole: "user" as const, files: [], now: Date.now() };
    const submitted = await repository.submit({ owner, threadId, batchId: newId(), plan: plan.value, ...rest });
    if (!submitted.ok) return submitted;
    this.#pump(submitted.value.batch.batchId);
    return ok(submitted.value.batch);
  }

  async #find(threadId: string, batchId: string): Promise<BatchView | undefined> {
    const batch = await this.#parts.repository.getBatch(this.#parts.owner, batchId);
    return batch?.threadId === threadId ? batch : undefined;
  }

  /** Its rows end first; the items that run here are told afterwards, not at their next heartbeat. */
  async #cancel(threadId: string, batchId: string): Promise<BatchView | undefined> {
    if ((await this.#find(threadId, batchId)) === undefined) return undefined;
    const cancelled = await this.#parts.repository.cancel(this.#parts.owner, batchId, Date.now());
    this.#pumps.get(batchId)?.cancel.abort(new Error("the batch was cancelled"));
    return cancelled;
  }

  #pump(batchId: string): void {
    if (this.#pumps.has(batchId) || this.#closing.signal.aborted) return;
    const cancel = new AbortController();
    const done = this.#run(batchId, cancel.signal).finally(() => this.#pumps.delete(batchId));
    this.#pumps.set(batchId, { cancel, done });
  }

  async #run(batchId: string, cancelled: AbortSignal): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const next = await this.#step(batchId, cancelled).catch((fault: unknown) => {
        this.#parts.reportFault(`batch ${batchId} could not be worked on`, fault);
        return "wait" as const;
      });
      if (next === "ended") return;
      if (next === "wait") await sleepFor(BATCH_POLL_MS, this.#closing.signal).catch(() => undefined);
    }
  }

  async #step(batchId: string, cancelled: AbortSignal): Promise<"ended" | "again" | "wait"> {
    const { repository, owner, admission } = this.#parts;
    await repository.systemReclaim(batchId, Date.now());
    const batch = await repository.getBatch(owner, batchId);
    if (batch?.status !== "running") {
      await repository.systemForget(batchId);
      return "ended";
    }
    const wanted = Math.min(batch.counts.pending, batch.maxRunningItems - batch.counts.leased);
    if (wanted <= 0) return "wait";
    const grant = await this.#grant(batchId, wanted);
    if (grant === undefined) return "wait";
    try {
      const { grantId, slots, expiresAt } = grant;
      const range = { from: 0, to: batch.totalItems };
      const wake = { batchId, owner, threadId: batch.threadId, ...range, grantId, slots, expiresAt };
      return (await claimAndRun(wake, this.#claimPorts(cancelled))) === "ran" ? "again" : "wait";
    } finally {
      admission.returnGrant(grant.grantId);
    }
  }

  async #grant(batchId: string, wanted: number): Promise<BatchGrant | undefined> {
    const { admission } = this.#parts;
    const atOnce = admission.grantBatch(batchId, wanted);
    if (atOnce !== undefined) return atOnce;
    const turn = Promise.withResolvers<BatchGrant | undefined>();
    this.#turns.set(batchId, turn.resolve);
    try {
      return await turn.promise;
    } finally {
      this.#turns.delete(batchId);
    }
  }

  #claimPorts(signal: AbortSignal): ClaimPorts {
    const { repository, runner, deputy, newId, reportFault, admission } = this.#parts;
    return {
      rows: {
        systemClaim: (request) => repository.systemClaim(request),
        systemLoadFiles: (batchId) => repository.systemLoadFiles(batchId),
        systemSettle: (lease, settlements, now) => repository.systemSettle(lease, settlements, now),
        async systemHeartbeat(lease, expiresAt, now) {
          const beat = await repository.systemHeartbeat(lease, expiresAt, now);
          // The slots are held as long as the lease is.
          if (beat.kind === "held") admission.extendGrant(lease.grantId, expiresAt);
          return beat;
        },
      },
      runner,
      timers: systemTimers,
      now: Date.now,
      newId,
      leaseMs: deputy.subagent_batches.lease_seconds * 1_000,
      resultCharsMax: deputy.subagent_batches.result_chars_max,
      log: (what, details) => reportFault(what, details),
      signal,
    };
  }
}
