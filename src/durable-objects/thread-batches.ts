/**
 * The batches of a thread at the object's edge: the pump with its ports filled, the API's shapes, and the service behind
 * the model's batch tools. Owns wiring and translation; the pump owns batches.
 */
import { configuredLimits, type ResolvedSubagent, toResolvedSubagent } from "../agent/batches/submission.ts";
import { SubagentRegistry } from "../agent/subagents/registry.ts";
import type { BatchService } from "../agent/tools/batch-tools.ts";
import { workspaceRefusalMessage } from "../agent/tools/workspace-refusal-message.ts";
import type { BatchView } from "../domain/batch/batch.ts";
import { err, ok, type Result } from "../domain/shared/result.ts";
import type { Role } from "../domain/trust/principal.ts";
import { D1BatchRepository } from "../platform/d1/batch-repository.ts";
import { DurableBatchWindowStore } from "../platform/durable-storage/batch-window-store.ts";
import type { SnapshotRefusal } from "../platform/workspace/durable-workspace.ts";
import { toBatch } from "../protocol/batch-views.ts";
import type { Batch, CreateBatchBody } from "../protocol/batches.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { toBatchWake } from "../protocol/queue-messages.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import type { BatchSubmitter } from "./batch-intake.ts";
import type { WakeGrant } from "./batch-offers.ts";
import { BatchPump } from "./batch-pump.ts";
import { toBatchDraft, toBatchRefusal } from "./batch-draft.ts";
import type { AlarmSource } from "./object-alarm.ts";
import type { ThreadContext } from "./thread-context.ts";

export class ThreadBatches implements AlarmSource {
  readonly #context: ThreadContext;
  readonly #arm: () => Promise<void>;
  #pump: BatchPump | undefined;

  constructor(context: ThreadContext, arm: () => Promise<void>) {
    this.#context = context;
    this.#arm = arm;
  }

  async create(
    body: CreateBatchBody,
    submitter: BatchSubmitter,
  ): Promise<RpcResult<{ batch: Batch; created: boolean }>> {
    const submitted = await this.#batches().submit(toBatchDraft(body), submitter);
    if (!submitted.ok) return err(toBatchRefusal(submitted.error));
    return ok({ batch: toBatch(submitted.value.batch), created: submitted.value.created });
  }

  async cancel(batchId: string): Promise<RpcResult<Batch>> {
    const batch = await this.#batches().cancel(batchId);
    return batch === undefined ? err({ code: "not_found", message: `no batch '${batchId}'` }) : ok(toBatch(batch));
  }

  /** For the deletion of the thread. */
  cancelAll(): Promise<void> {
    return this.#batches().cancelAll();
  }

  async returnGrant(grant: { grant_id: string; batch_id: string }): Promise<RpcResult<null>> {
    await this.#batches().returnGrant({ batchId: grant.batch_id, grantId: grant.grant_id });
    return ok(null);
  }

  async poke(batchIds: readonly string[]): Promise<RpcResult<null>> {
    await this.#batches().poke(batchIds);
    return ok(null);
  }

  onTurn(grant: WakeGrant): void {
    this.#batches().onTurn(grant);
  }

  nextDueAt(): number | undefined {
    return this.#batches().nextDueAt();
  }

  /** The pump looks into D1 before a grant ends: one whose lease lives on is extended, its slots stay taken. */
  async onAlarm(now: number): Promise<void> {
    await this.#batches().onAlarm(now);
  }

  /** What the model's batch tools reach: the same pump, with the key made of run and call, and the run's role. */
  service(role: Role): BatchService {
    return {
      submit: async (draft, submissionKey, definition) => {
        const subagent = definition.ok ? ok(toResolvedSubagent(definition.value)) : definition;
        const submitted = await this.#batches().submit(draft, { submissionKey, role, subagent });
        return submitted.ok ? ok(submitted.value.batch) : submitted;
      },
      status: (batchId) => this.#batches().status(batchId),
      cancel: (batchId) => this.#batches().cancel(batchId),
    };
  }

  #batches(): BatchPump {
    this.#pump ??= this.#createPump();
    return this.#pump;
  }

  #createPump(): BatchPump {
    const context = this.#context;
    const { owner, threadId } = context.thread();
    const { subagent_batches } = context.deps.config;
    return new BatchPump({
      owner,
      threadId,
      repository: new D1BatchRepository(context.deps.db, (write) => context.wake.fenced(write)),
      windows: new DurableBatchWindowStore(context.meter.labelled("batches")),
      limits: configuredLimits(subagent_batches),
      enabled: subagent_batches.enabled,
      resolveSubagent: (type) => this.#resolveSubagent(type),
      readFiles: (paths) => {
        const files = context.workspace.snapshotFiles(paths);
        return files.ok ? files : err(snapshotRefusalMessage(files.error));
      },
      admission: context.admission,
      wakes: {
        send: async (wake) => {
          context.wake.assertCurrent();
          await context.deps.sendWake(toBatchWake(wake));
        },
      },
      leaseMs: subagent_batches.lease_seconds * 1_000,
      arm: this.#arm,
      onStart: (batch) => this.#told("batch.start", batch),
      onEnd: (batch) => this.#told("batch.end", batch),
      onFault: (fault) => context.onFault(fault),
      now: () => context.now(),
      newId: () => context.newId(),
      failpoint: context.failpoint,
    });
  }

  /** As the definitions are now; the batch keeps what it gets here. */
  async #resolveSubagent(type: string): Promise<Result<ResolvedSubagent, string>> {
    const { subagents } = this.#context.deps.config;
    const operators = new SubagentRegistry(subagents);
    // Operators' names come first anyway, so D1 is asked for others alone.
    const registry =
      operators.find(type) === undefined
        ? new SubagentRegistry(subagents, null, await this.#context.managed.current())
        : operators;
    const definition = registry.find(type);
    if (definition !== undefined) return ok(toResolvedSubagent(definition));
    return err(`subagent_type '${type}' is unknown; available: ${registry.names().join(", ")}`);
  }

  /** A batch belongs to the thread, not to a run: its events carry the batch's id in the run's place. */
  #told(eventType: string, batch: BatchView): void {
    const draft: RunEventDraft = {
      run_id: batch.batchId,
      event_type: eventType,
      category: "batch",
      content: { batch_id: batch.batchId, title: batch.title, status: batch.status, counts: batch.counts },
      metadata: { batch_id: batch.batchId },
    };
    this.#context.outbox.append([draft], { now: this.#context.now() });
    this.#context.flush.kick();
  }
}

function snapshotRefusalMessage(refusal: SnapshotRefusal): string {
  if (refusal.reason === "too_many_files") return `files names ${refusal.count} files, the limit is ${refusal.limit}`;
  if (refusal.reason === "snapshot_too_large") {
    return `files have ${refusal.bytes} bytes together, the limit is ${refusal.limit}`;
  }
  return workspaceRefusalMessage(refusal);
}
