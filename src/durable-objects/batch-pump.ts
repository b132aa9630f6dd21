/**
 * The batches of one thread, as its object drives them: what its handlers, its alarm and the cron call.
 * Owns the order of intake, offering and inspection, and that a handler answers only when its wakes are on their way and
 * the alarm is set. Does not own batch rows (the repository), slots (admission) or the alarm (it only says when it is due).
 * A wake may be lost or doubled (B6): a lost one is found when its grant expires, a doubled one claims nothing.
 */
import type { BatchRefusal } from "../domain/batch/batch-refusal.ts";
import type { BatchView } from "../domain/batch/batch.ts";
import { closeWindow, returnOffer } from "../domain/batch/offer-window.ts";
import type { BatchDraft } from "../domain/batch/validate-batch.ts";
import type { Result } from "../domain/shared/result.ts";
import { BatchInspection, type BatchInspectionPorts } from "./batch-inspection.ts";
import { BatchIntake, type BatchIntakePorts, type BatchSubmitter, type TakenBatch } from "./batch-intake.ts";
import { BatchOffers, type BatchOffersPorts, type WakeGrant } from "./batch-offers.ts";

export type BatchPumpPorts = BatchIntakePorts & BatchOffersPorts & Omit<BatchInspectionPorts, "offers" | "isLoading">;

export class BatchPump {
  readonly #ports: BatchPumpPorts;
  readonly #intake: BatchIntake;
  readonly #offers: BatchOffers;
  readonly #inspection: BatchInspection;
  readonly #submitting = new Set<Promise<unknown>>();

  constructor(ports: BatchPumpPorts) {
    this.#ports = ports;
    this.#intake = new BatchIntake(ports);
    this.#offers = new BatchOffers(ports);
    const isLoading = (batchId: string) => this.#intake.isLoading(batchId);
    this.#inspection = new BatchInspection({ ...ports, offers: this.#offers, isLoading });
  }

  async submit(draft: BatchDraft, submitter: BatchSubmitter): Promise<Result<TakenBatch, BatchRefusal>> {
    const submitting = this.#submit(draft, submitter);
    this.#submitting.add(submitting);
    try {
      return await submitting;
    } finally {
      this.#submitting.delete(submitting);
    }
  }

  async #submit(draft: BatchDraft, submitter: BatchSubmitter): Promise<Result<TakenBatch, BatchRefusal>> {
    const taken = await this.#intake.take(draft, submitter);
    if (taken.ok) {
      this.#inspection.start(taken.value.batch);
      await this.#rest();
    }
    return taken;
  }

  /** `undefined` when this thread has no such batch. */
  status(batchId: string): Promise<BatchView | undefined> {
    return this.#inspection.status(batchId);
  }

  /** Gives the batch once every item is terminal; one that had ended is given as it is. */
  async cancel(batchId: string): Promise<BatchView | undefined> {
    if ((await this.status(batchId)) === undefined) return undefined;
    const { repository, owner, now } = this.#ports;
    const batch = await repository.cancel(owner, batchId, now());
    await this.#ports.failpoint?.("batch_cancel", batchId);
    if (batch !== undefined) await this.#inspection.end(batch);
    await this.#rest();
    return batch;
  }

  /**
   * Before the thread is deleted: nothing of it goes on running, a load under way included, and no key remembers a batch:
   * a later thread of this id is another one. The caller lets nothing new in.
   */
  async cancelAll(): Promise<void> {
    while (this.#submitting.size > 0) await Promise.allSettled(this.#submitting);
    for (const batchId of this.#ports.windows.all()) await this.cancel(batchId);
    await this.#ports.repository.forgetSubmissions(this.#ports.owner, this.#ports.threadId);
  }

  /** A consumer is done with its grant. Repeats and unknown grants change nothing. */
  async returnGrant(grant: { readonly batchId: string; readonly grantId: string }): Promise<void> {
    const { windows, admission, now } = this.#ports;
    const stored = windows.load(grant.batchId);
    if (stored !== undefined) {
      const window = returnOffer(stored.window, grant.grantId, now());
      this.#offers.save({ ...stored, window: stored.phase === "ended" ? closeWindow(window) : window });
    }
    admission.returnGrant(grant.grantId);
    this.#offers.offerAll();
    await this.#inspection.look(grant.batchId);
    await this.#rest();
  }

  /** A batch that waited for slots got its turn. */
  onTurn(grant: WakeGrant): void {
    this.#offers.onTurn(grant);
  }

  nextDueAt(): number | undefined {
    return this.#ports.windows.nextDueAt();
  }

  /** The sweep (B6): looks at every batch that is due, then offers what became free. */
  async onAlarm(now: number): Promise<void> {
    for (const batchId of this.#ports.windows.due(now)) await this.#inspection.look(batchId);
    this.#offers.offerAll();
    await this.#rest();
  }

  /** The cron found these rows unmoved for long: look at them whatever the alarm believes. */
  async poke(batchIds: readonly string[]): Promise<void> {
    for (const batchId of batchIds) {
      if (this.#ports.windows.load(batchId) === undefined) await this.#inspection.adopt(batchId);
      else await this.#inspection.look(batchId);
    }
    this.#offers.offerAll();
    await this.#rest();
  }

  /** Before a handler answers: wakes are on their way and the alarm is set. */
  async #rest(): Promise<void> {
    await this.#offers.sent();
    await this.#ports.arm();
  }
}
