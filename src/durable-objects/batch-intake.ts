/**
 * Takes a batch in: looks for an earlier submission, validates, snapshots, stores. Owns the order of these steps; the pump
 * owns what happens to the batch afterwards.
 *
 * - A repeat of a stored submission is answered before anything is validated or read: the limits, the definition and the
 *   files may have changed since, the batch has not (B9).
 * - The window is saved before the first row goes to D1, so a load that dies is found and removed.
 */
import { hashDraft, limitsFor, type ResolvedSubagent } from "../agent/batches/submission.ts";
import type { BatchLimits } from "../domain/batch/batch-limits.ts";
import { BATCH_FILES_BYTES_MAX } from "../domain/batch/batch-limits.ts";
import type { BatchRefusal } from "../domain/batch/batch-refusal.ts";
import type { BatchRepository, BatchSubmission } from "../domain/batch/batch-repository.ts";
import type { BatchFile, BatchView } from "../domain/batch/batch.ts";
import { openWindow } from "../domain/batch/offer-window.ts";
import type { BatchWindowStore } from "../domain/batch/stored-window.ts";
import { validateBatch, type BatchDraft, type BatchPlan } from "../domain/batch/validate-batch.ts";
import type { LocalFailpoint } from "../domain/shared/failpoint.ts";
import { err, ok, type Result } from "../domain/shared/result.ts";
import type { Role } from "../domain/trust/principal.ts";

export interface BatchIntakePorts {
  readonly owner: string;
  readonly threadId: string;
  readonly repository: BatchRepository;
  readonly windows: BatchWindowStore;
  readonly limits: BatchLimits;
  readonly enabled: boolean;
  /** Names what is available when it refuses. */
  readonly resolveSubagent: (
    type: string,
  ) => Result<ResolvedSubagent, string> | Promise<Result<ResolvedSubagent, string>>;
  /** The files as they are committed now, or which one cannot be read. */
  readonly readFiles: (paths: readonly string[]) => Result<readonly BatchFile[], string>;
  /** Arms the object's alarm by the windows' due times. */
  readonly arm: () => Promise<void>;
  readonly now: () => number;
  readonly newId: () => string;
  /** Absent outside of tests. */
  readonly failpoint?: LocalFailpoint | undefined;
}

/**
 * How long a load may take before an object that woke without it takes it for dead: it writes at most some 30 statements,
 * and minutes mean that nobody is writing any more.
 */
export const LOAD_PATIENCE_MS = 120_000;

export interface BatchSubmitter {
  /** `null`: every call is a new batch. */
  readonly submissionKey: string | null;
  /** Of the key that asked, or of the run whose model did. A repeat keeps the first one's. */
  readonly role: Role;
  /** As the run whose model asked has it, or why it has none; absent: as the definitions are now. */
  readonly subagent?: Result<ResolvedSubagent, string>;
}

export interface TakenBatch {
  readonly batch: BatchView;
  readonly created: boolean;
}

export class BatchIntake {
  readonly #ports: BatchIntakePorts;
  /** Loads of this instance, by batch id: not dead, however long they take. */
  readonly #loading = new Set<string>();
  readonly #byKey = new Map<string, Promise<unknown>>();

  constructor(ports: BatchIntakePorts) {
    this.#ports = ports;
  }

  isLoading(batchId: string): boolean {
    return this.#loading.has(batchId);
  }

  /** Submissions of one key go one after the other: the second finds what the first stored. */
  async take(draft: BatchDraft, submitter: BatchSubmitter): Promise<Result<TakenBatch, BatchRefusal>> {
    const { submissionKey } = submitter;
    if (submissionKey === null) return this.#take(draft, submitter);
    const earlier = this.#byKey.get(submissionKey) ?? Promise.resolve();
    const taken = earlier.then(
      () => this.#take(draft, submitter),
      () => this.#take(draft, submitter),
    );
    this.#byKey.set(submissionKey, taken);
    try {
      return await taken;
    } finally {
      if (this.#byKey.get(submissionKey) === taken) this.#byKey.delete(submissionKey);
    }
  }

  async #take(draft: BatchDraft, submitter: BatchSubmitter): Promise<Result<TakenBatch, BatchRefusal>> {
    const { submissionKey, role } = submitter;
    const { owner, threadId, repository, enabled } = this.#ports;
    const bodyHash = hashDraft(draft);
    if (submissionKey !== null) {
      const found = await repository.findSubmission({ owner, threadId, submissionKey, bodyHash });
      if (!found.ok) return found;
      if (found.value !== undefined) return ok({ batch: found.value, created: false });
    }
    if (!enabled) return err({ reason: "batches_disabled", message: "batches are disabled in this deployment" });
    const subagent = submitter.subagent ?? (await this.#ports.resolveSubagent(draft.subagentType));
    if (!subagent.ok) return err({ reason: "unknown_subagent_type", message: subagent.error });
    const plan = validateBatch(draft, limitsFor(subagent.value, this.#ports.limits), subagent.value.timeoutSeconds);
    if (!plan.ok) return plan;
    const files = this.#files(plan.value.files);
    if (!files.ok) return files;
    return this.#store(plan.value, {
      submissionKey,
      bodyHash,
      definition: subagent.value.definition,
      submitterRole: role,
      files: files.value,
    });
  }

  async #store(
    plan: BatchPlan,
    rest: Pick<BatchSubmission, "submissionKey" | "bodyHash" | "definition" | "submitterRole" | "files">,
  ): Promise<Result<TakenBatch, BatchRefusal>> {
    const { owner, threadId, repository, windows, newId } = this.#ports;
    const batchId = newId();
    const now = this.#ports.now();
    const window = openWindow({
      total: plan.items.length,
      maxLive: plan.maxLiveItems,
      maxRunning: plan.maxRunningItems,
    });
    windows.save({ v: 1, batchId, phase: "submitting", window }, now + LOAD_PATIENCE_MS);
    this.#loading.add(batchId);
    try {
      await this.#ports.arm();
      const submitted = await repository.submit({ owner, threadId, batchId, plan, now, ...rest });
      if (!submitted.ok || !submitted.value.created) windows.delete(batchId);
      return submitted;
    } finally {
      this.#loading.delete(batchId);
    }
  }

  #files(paths: readonly string[]): Result<readonly BatchFile[], BatchRefusal> {
    const files = this.#ports.readFiles(paths);
    if (!files.ok) return err({ reason: "file_refused", field: "files", message: files.error });
    const bytes = files.value.reduce((sum, file) => sum + file.bytes.byteLength, 0);
    if (bytes <= BATCH_FILES_BYTES_MAX) return files;
    const message = `files have ${bytes} bytes together, the limit is ${BATCH_FILES_BYTES_MAX}`;
    return err({ reason: "file_refused", field: "files", message });
  }
}
