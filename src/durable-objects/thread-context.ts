/**
 * One wake of a thread's object: its stores, composed once, and what its parts share. Owns composition and the
 * wake-scoped facts (epoch, live runs); every decision lives in the collaborators.
 * Built only when the object has a schema or is about to get one, so that asking an unknown thread writes nothing.
 */
import type { GraphBinding, GraphCatalog } from "../agent/graph-catalog.ts";
import { CircuitBreakers } from "../agent/models/circuit-breakers.ts";
import { toAdmissionConfig } from "../agent/subagents/admission-config.ts";
import { AdmissionController } from "../agent/subagents/admission-controller.ts";
import { systemTimers } from "../agent/subagents/timers.ts";
import type { BatchService } from "../agent/tools/batch-tools.ts";
import type { DeputyConfig } from "../config.ts";
import type { BatchGrant } from "../domain/admission/admission-state.ts";
import { invariant } from "../domain/shared/assert.ts";
import type { Failpoint, LocalFailpoint } from "../domain/shared/failpoint.ts";
import type { Principal, Role } from "../domain/trust/principal.ts";
import { D1RunEventLog } from "../platform/d1/run-event-log.ts";
import { D1SubagentDefinitions } from "../platform/d1/subagent-definitions.ts";
import { DurableCheckpointSaver } from "../platform/durable-storage/checkpoint-saver.ts";
import { DelegationStore } from "../platform/durable-storage/delegation-store.ts";
import { EventOutbox } from "../platform/durable-storage/event-outbox.ts";
import { FrameLog } from "../platform/durable-storage/frame-log.ts";
import { DurableGrantStore } from "../platform/durable-storage/grant-store.ts";
import { MeteredSql } from "../platform/durable-storage/metered-sql.ts";
import { SqlMemory } from "../platform/durable-storage/sql-memory.ts";
import { type RunError, type RunRecord, RunStore } from "../platform/durable-storage/run-store.ts";
import { ToolStartStore } from "../platform/durable-storage/tool-start-store.ts";
import { IdempotencyStore } from "../platform/durable-storage/idempotency-store.ts";
import { type ThreadRecord, ThreadStore } from "../platform/durable-storage/thread-store.ts";
import { WebhookStore } from "../platform/durable-storage/webhook-store.ts";
import { NO_WEBHOOKS, type WebhookSender } from "../platform/webhook/webhook-sender.ts";
import { DurableWorkspace } from "../platform/workspace/durable-workspace.ts";
import { StagedWorkspace } from "../platform/workspace/staged-workspace.ts";
import type { BatchWake } from "../protocol/queue-messages.ts";
import { CommitEvents } from "./commit-events.ts";
import { ThreadDelegationJournal } from "./delegation-journal.ts";
import { isOfBase } from "./run-base.ts";
import { EventFlush } from "./event-flush.ts";
import { IdempotentCreates } from "./idempotent-creates.ts";
import { LiveRuns } from "./live-runs.ts";
import { ManagedSnapshots } from "./managed-snapshots.ts";
import { StateEdits } from "./state-edits.ts";
import { ThreadGraphs } from "./thread-graphs.ts";
import { ThreadToolStarts } from "./thread-tool-starts.ts";
import { ToolAttempts } from "./tool-attempts.ts";
import { WakeEpoch } from "./wake-epoch.ts";
import { toDeliveryPolicy, WebhookDeliveries } from "./webhook-deliveries.ts";
import { webhookPayload } from "./webhook-payload.ts";
import { ValuesCache } from "./values-cache.ts";

/** What the composition root gives every object. */
export interface ThreadObjectDeps {
  readonly config: DeputyConfig;
  readonly catalog: GraphCatalog;
  readonly db: D1Database;
  /** Absent: no run may ask for a webhook. */
  readonly webhooks?: WebhookSender;
  readonly sendWake: (wake: BatchWake) => Promise<unknown>;
  readonly now: () => number;
  /** A UUID v7 whose time is now, or `notBefore` (milliseconds) when that is later. */
  readonly newId: (notBefore?: number) => string;
  /** Of the deployed Worker, where it is known: a run that meets another one was stopped by a deploy (P4). */
  readonly version?: string | undefined;
  /** Where faults and refused writes are told; never shown to a client. */
  readonly report: (what: string, details: Readonly<Record<string, unknown>>) => void;
  /** Absent outside of tests. */
  readonly failpoint?: Failpoint | undefined;
  /** Is given every context as it is composed, so that a bench can read its meter. */
  readonly observe?: (context: ThreadContext) => void;
}

export interface ThreadContextEvents {
  /** A step of the run committed; called inside the saver's transaction. */
  readonly onStep: () => void;
  readonly afterRun: () => void;
  /** A flush failed: the alarm has to try again. */
  readonly onRetryDue: () => void;
  readonly onBatchTurn: (grant: BatchGrant) => void;
  /** What the model's batch tools reach. */
  readonly batches: (role: Role) => BatchService;
}

export class ThreadContext {
  readonly storage: DurableObjectStorage;
  readonly deps: ThreadObjectDeps;
  /** Of what `meter`'s executors read; forgets at the start of each event. */
  readonly memory = new SqlMemory();
  readonly meter: MeteredSql;
  readonly threads: ThreadStore;
  readonly runs: RunStore;
  readonly outbox: EventOutbox;
  readonly frames: FrameLog;
  readonly delegations: DelegationStore;
  readonly workspace: DurableWorkspace;
  readonly staging: StagedWorkspace;
  readonly saver: DurableCheckpointSaver;
  readonly admission: AdmissionController;
  readonly journal: ThreadDelegationJournal;
  readonly circuits: CircuitBreakers;
  readonly flush: EventFlush;
  readonly live: LiveRuns;
  readonly graphs: ThreadGraphs;
  readonly managed: ManagedSnapshots;
  readonly values: ValuesCache;
  readonly webhooks: WebhookDeliveries;
  readonly idempotent: IdempotentCreates;
  readonly attempts = new ToolAttempts();
  readonly toolStarts: ToolStartStore;
  readonly #noted: ThreadToolStarts;
  readonly edits = new StateEdits();
  /** Absent outside of tests. */
  readonly failpoint: LocalFailpoint | undefined;
  readonly wake: WakeEpoch;
  readonly #events: ThreadContextEvents;
  #threadId: string | undefined;
  #isClosing = false;

  constructor(storage: DurableObjectStorage, deps: ThreadObjectDeps, events: ThreadContextEvents) {
    this.storage = storage;
    this.deps = deps;
    this.#events = events;
    this.meter = new MeteredSql(storage.sql, this.memory);
    this.live = new LiveRuns(deps.now);
    this.threads = new ThreadStore(this.meter.labelled("thread"));
    this.wake = new WakeEpoch({ threads: this.threads, thread: () => this.thread(), report: deps.report });
    this.runs = new RunStore(this.meter.labelled("runs"));
    this.outbox = new EventOutbox(this.meter.labelled("outbox"));
    this.frames = new FrameLog(this.meter.labelled("frames"));
    this.delegations = new DelegationStore(this.meter.labelled("delegations"));
    this.workspace = new DurableWorkspace({ sql: this.meter.labelled("workspace"), now: deps.now });
    this.staging = new StagedWorkspace(this.workspace);
    this.toolStarts = new ToolStartStore(this.meter.labelled("tool_starts"));
    this.#noted = new ThreadToolStarts({ storage, store: this.toolStarts, thread: () => this.thread() });
    this.failpoint = this.#localFailpoint();
    this.flush = this.#eventFlush();
    this.saver = this.#checkpointSaver();
    this.admission = this.#admissionController();
    this.journal = new ThreadDelegationJournal({
      storage,
      delegations: this.delegations,
      outbox: this.outbox,
      currentRunId: () => this.live.writingRunId(),
      now: deps.now,
      report: deps.report,
    });
    this.circuits = new CircuitBreakers(deps.config.llm_call.circuit, deps.now);
    this.graphs = new ThreadGraphs({
      catalog: deps.catalog,
      runs: this.runs,
      threadId: () => this.threadId,
      saver: () => this.saver,
      binding: (principal) => this.#binding(principal),
      // A run of an older version has nobody in its row: then the least.
      principalOf: ({ command }) => command.principal ?? { owner: this.thread().owner, role: "user" },
      madeFor: () => this.threads.load()?.metadata["graph_id"],
    });
    this.managed = new ManagedSnapshots(new D1SubagentDefinitions(deps.db), (fault) => this.onFault(fault));
    this.values = new ValuesCache((checkpointId) => this.graphs.renderState(checkpointId));
    this.webhooks = this.#webhookDeliveries();
    this.idempotent = new IdempotentCreates({
      keys: new IdempotencyStore(this.meter.labelled("idempotency")),
      runs: this.runs,
      now: deps.now,
    });
    deps.observe?.(this);
  }

  now(): number {
    return this.deps.now();
  }

  newId(): string {
    return this.deps.newId();
  }

  thread(): ThreadRecord {
    const thread = this.threads.load();
    invariant(thread !== undefined, "a command reached an object without a thread row");
    return thread;
  }

  /** Known from the first command on; an alarm reads it from the thread's row. */
  get threadId(): string {
    this.#threadId ??= this.thread().threadId;
    return this.#threadId;
  }

  /** Tells a thread that has no row yet what it is called. */
  name(threadId: string): void {
    this.#threadId = threadId;
  }

  /** The thread is being deleted: nothing new is accepted, and what ends has nothing to tidy up. */
  close(): void {
    this.#isClosing = true;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** The head of the run's own line of checkpoints; `null` on an empty thread. */
  headCheckpointId(): string | null {
    return this.saver.headId(this.threadId);
  }

  async hasCheckpoint(checkpointId: string): Promise<boolean> {
    const at = { thread_id: this.threadId, checkpoint_ns: "", checkpoint_id: checkpointId };
    return (await this.saver.getTuple({ configurable: at })) !== undefined;
  }

  afterRun(): void {
    this.attempts.clear();
    this.staging.discardOpen();
    this.#events.afterRun();
  }

  onFault(fault: unknown): void {
    this.deps.report("thread object fault", { fault: describe(fault) });
  }

  onRunError(run: RunRecord, error: unknown): void {
    this.deps.report("run failed", { run_id: run.runId, error: describe(error) });
  }

  /** Expected, so without a stack. */
  onModelFailure(run: RunRecord, error: RunError): void {
    this.deps.report("run failed", { run_id: run.runId, error });
  }

  /** What a graph of this thread reaches. */
  #binding(principal: Principal | undefined): GraphBinding {
    return {
      ...(principal === undefined ? {} : { principal, batches: this.#events.batches(principal.role) }),
      saver: this.saver,
      services: {
        workspace: this.staging,
        toolAttempt: (toolCallId) => this.attempts.next(toolCallId),
        toolStarts: this.#noted,
        newId: () => this.newId(),
        now: () => this.now(),
        report: this.deps.report,
        assertCurrent: () => this.wake.assertCurrent(),
        failpoint: this.failpoint,
      },
      admission: this.admission,
      journal: this.journal,
      circuits: this.circuits,
    };
  }

  #localFailpoint(): LocalFailpoint | undefined {
    const { failpoint } = this.deps;
    return failpoint && ((name, detail) => failpoint(name, { threadId: this.threadId, ...(detail && { detail }) }));
  }

  #eventFlush(): EventFlush {
    return new EventFlush({
      outbox: this.outbox,
      threads: this.threads,
      runs: this.runs,
      log: new D1RunEventLog(this.deps.db),
      fencing: (write) => this.wake.fenced(write),
      lastFencing: (write) => this.wake.fencedLast(write),
      now: () => this.now(),
      failpoint: this.failpoint,
      onFault: (fault) => {
        this.onFault(fault);
        this.#events.onRetryDue();
      },
    });
  }

  #webhookDeliveries(): WebhookDeliveries {
    const { config, webhooks = NO_WEBHOOKS } = this.deps;
    return new WebhookDeliveries({
      storage: this.storage,
      store: new WebhookStore(this.meter.labelled("webhooks")),
      sender: webhooks,
      policy: toDeliveryPolicy(config.webhooks),
      outbox: this.outbox,
      hasRun: (runId) => this.runs.find(runId) !== undefined,
      payload: (runId) => this.#webhookPayload(runId),
      threadId: () => this.threadId,
      isClosing: () => this.isClosing,
      now: () => this.now(),
      onChange: () => {
        this.flush.kick();
        this.#events.onRetryDue();
      },
      onFault: (fault) => {
        this.onFault(fault);
      },
    });
  }

  async #webhookPayload(runId: string): Promise<string | undefined> {
    const run = this.runs.find(runId);
    if (run === undefined) return undefined;
    const at = run.finalCheckpointId;
    const values = at !== null && (await this.hasCheckpoint(at)) ? await this.values.render(at) : null;
    return webhookPayload({ run, threadId: this.threadId, values }, this.now());
  }

  #checkpointSaver(): DurableCheckpointSaver {
    const hook = new CommitEvents({
      outbox: this.outbox,
      staging: this.staging,
      delegations: this.delegations,
      toolStarts: this.toolStarts,
      currentRunId: () => this.live.writingRunId(),
      forgetChild: (checkpointNs) => {
        if (isOfBase(this.runs.running(), checkpointNs)) return;
        this.saver.deleteNamespace(this.threadId, checkpointNs);
        this.toolStarts.deleteUnder(checkpointNs);
      },
      onStep: () => {
        this.#events.onStep();
      },
      now: () => this.now(),
      report: this.deps.report,
    });
    return new DurableCheckpointSaver({
      storage: this.storage,
      sql: this.meter.labelled("checkpoints"),
      hook,
      // There before the first context was; asked again each time they would cost more than most reads.
      hasTables: true,
    });
  }

  #admissionController(): AdmissionController {
    const { subagent_runtime, subagent_batches } = this.deps.config;
    return new AdmissionController({
      config: toAdmissionConfig(subagent_runtime, subagent_batches.lease_seconds),
      grants: new DurableGrantStore(this.meter.labelled("grants")),
      now: () => this.now(),
      newId: () => this.newId(),
      timers: systemTimers,
      onBatchTurn: (grant) => {
        this.#events.onBatchTurn(grant);
      },
    });
  }
}

function describe(fault: unknown): Record<string, unknown> {
  return fault instanceof Error
    ? { name: fault.name, message: fault.message, stack: fault.stack }
    : { message: String(fault) };
}
