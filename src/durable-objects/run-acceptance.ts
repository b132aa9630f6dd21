/**
 * Accepts a run of one thread: what it carries is checked against the state, then the decision and the row are one
 * transaction (P1: what was accepted ends; the multitask rule). Owns acceptance only: who starts the run is the scheduler.
 */
import { Buffer } from "node:buffer";
import { ALLOWED_SUBAGENTS_OPTION } from "../domain/assistant/agent-snapshot.ts";
import type { ManagedSubagent } from "../domain/delegation/managed-subagent.ts";
import { ADJUSTED_OPTIONS_KEY } from "../domain/run/adjusted-options.ts";
import { decideStart, type MultitaskRefusal, type StartDecision } from "../domain/run/multitask.ts";
import { err, ok, type Result } from "../domain/shared/result.ts";
import { statelessRunId } from "../domain/run/stateless-run-id.ts";
import type { Principal } from "../domain/trust/principal.ts";
import { FRAME_RESERVATION } from "../platform/durable-storage/frame-log.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ApiRefusal, RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import type { RunCommand, ThreadAddress } from "../protocol/thread-rpc.ts";
import { STATELESS_MARK } from "../protocol/threads.ts";
import { cancelUnanswered } from "./cancel-unanswered.ts";
import type { ThreadContext } from "./thread-context.ts";
import { requestEnd } from "./run-cancel.ts";
import { dropsWaitingStep, prepareStart, withoutHeadCheckpoint } from "./run-start-prepare.ts";
import { markRunning } from "./run-starting.ts";
import { messageEvent, runQueued } from "./thread-log.ts";
import { insertThread } from "./thread-service.ts";

/** A stored run is one row: its create, in UTF-8, must fit well under the 2 MB row. */
const RUN_COMMAND_BYTES_MAX = 1_500_000;

/** Each try reads the state anew; a thread whose state is edited faster than that is busy. */
export const ACCEPT_TRIES_MAX = 5;

const MS_PER_SECOND = 1_000;

/** Whence a run comes, as the gateway said it; no part of the create that a client wrote. */
export interface RunOrigin {
  readonly principal: Principal;
  /** Set when the thread is made with the run. */
  readonly newThread?: ThreadAddress | undefined;
}

export interface PreparedRun {
  readonly command: RunCommand;
  readonly events: (runId: string) => RunEventDraft[];
  readonly baseCheckpointId: string | null;
}

/** Bounded by the store of the definitions, so beside the command's own bound. */
interface AcceptableRun extends PreparedRun {
  /** It was prepared as a run that waits, which is checked less. */
  readonly waited: boolean;
  readonly origin: RunOrigin | undefined;
  readonly managed: readonly ManagedSubagent[];
}

export class RunAcceptance {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  /** Nothing is stored when the run is refused; a thread that is made with it is in the same transaction. */
  async accept(command: RunCommand, origin?: RunOrigin): Promise<RpcResult<RunRecord>> {
    if (!this.#context.deps.catalog.has(command.graph_id)) {
      return err({ code: "not_found", message: `no graph '${command.graph_id}'` });
    }
    const undeliverable = this.#context.webhooks.refusal(command.body.webhook);
    if (undeliverable !== undefined) return err(undeliverable);
    // Before the definitions are read: a busy thread is the refusal that costs nothing.
    const decided = this.#decide(command);
    if (!decided.ok) return decided;
    const managed = command.graph_id === LEAD_GRAPH_ID ? await this.#context.managed.forRun() : [];
    const placed = withoutHeadCheckpoint(this.#context, command);
    for (let tries = 0; tries < ACCEPT_TRIES_MAX; tries += 1) {
      const accepted = await this.#tryAccept(placed, { origin, managed });
      // The state moved while it was read: what was checked against it is checked again.
      if (accepted === "state_moved") continue;
      return accepted;
    }
    return err({ code: "thread_busy", message: "the thread's state is being edited; try again" });
  }

  async #tryAccept(
    command: RunCommand,
    { origin, managed }: Pick<AcceptableRun, "origin" | "managed">,
  ): Promise<RpcResult<RunRecord> | "state_moved"> {
    await this.#context.edits.settled();
    const decided = this.#decide(command);
    if (!decided.ok) return decided;
    const waits = decided.value.kind === "wait";
    const prepared = await this.prepare(command, { waits });
    if (!prepared.ok) return prepared;
    const tooLarge = refuseSize(prepared.value.command);
    if (tooLarge !== undefined) return err(tooLarge);
    if (!waits && (await this.supersedeWaiting(command))) return "state_moved";
    return this.#accept({ ...prepared.value, waited: waits, origin, managed });
  }

  /**
   * Input instead of the answer that the newest run waits for: LangGraph drops the step that waits, with every result that
   * committed in it. So the state takes those in, and what is still open ends as cancelled. True when the state moved.
   */
  async supersedeWaiting({ body }: RunCommand): Promise<boolean> {
    const { runs, edits, live, graphs } = this.#context;
    const waiting = runs.newestStarted();
    if (waiting === undefined || waiting.interrupts === null || waiting.graphId !== LEAD_GRAPH_ID) return false;
    if (!dropsWaitingStep(body)) return false;
    const before = this.#context.headCheckpointId();
    await edits.run(async () => {
      if (runs.newestStarted()?.runId !== waiting.runId) return;
      const built = await graphs.forState();
      await live.settle(waiting.runId, () => cancelUnanswered(this.#context, waiting, built));
    });
    return this.#context.headCheckpointId() !== before;
  }

  /**
   * What the run brings, checked against the state as it is now. A run that waits is checked again when it starts: until
   * then there may be no state yet.
   */
  async prepare(command: RunCommand, { waits = false } = {}): Promise<RpcResult<PreparedRun>> {
    const baseCheckpointId = this.#context.headCheckpointId();
    const prepared = await prepareStart(this.#context, command, { waits });
    if (!prepared.ok) return prepared;
    const { messages } = prepared.value;
    const events = (runId: string) => messages.flatMap((message) => messageEvent(runId, message) ?? []);
    return ok({ command: prepared.value.command, events, baseCheckpointId });
  }

  #decide({ body }: RunCommand): Result<StartDecision, ApiRefusal> {
    const isDelayed = (body.after_seconds ?? 0) > 0;
    const decided = decideStart(this.#context.runs.activeRuns(), { strategy: body.multitask_strategy, isDelayed });
    return decided.ok ? decided : err(toRefusal(decided.error));
  }

  #accept(prepared: AcceptableRun): RpcResult<RunRecord> | "state_moved" {
    return this.#context.storage.transactionSync(() => {
      // Asked again here: another create may have been accepted while this one read the state.
      const decided = this.#decide(prepared.command);
      if (!decided.ok) return decided;
      if (this.#context.isClosing) return err({ code: "not_found", message: "the thread is being deleted" });
      const startsNow = decided.value.kind === "start_now";
      if (startsNow && this.#hasMoved(prepared)) return "state_moved";
      const newThread = prepared.origin?.newThread;
      if (newThread !== undefined && this.#context.threads.load() === undefined) {
        insertThread(this.#context, newThread, newThread.stateless === true ? { [STATELESS_MARK]: true } : {});
      }
      const accepted = this.#context.graphs.pinned(this.#toRecord(prepared));
      for (const { runId, action } of decided.value.cancel) {
        requestEnd(this.#context, runId, { action, reason: `superseded by run '${accepted.runId}'` });
      }
      const run = startsNow
        ? markRunning(this.#context, accepted, { ...prepared, events: prepared.events(accepted.runId) })
        : this.#queue(accepted);
      this.#context.idempotent.note(prepared.command, run.runId, newThread?.stateless === true);
      return ok(run);
    });
  }

  /** The base and the input were read on a state that is no longer the thread's. */
  #hasMoved({ baseCheckpointId, waited }: AcceptableRun): boolean {
    return waited || this.#context.edits.active || this.#context.headCheckpointId() !== baseCheckpointId;
  }

  /** The run gets its base and its start's events when its turn comes. */
  #queue(run: RunRecord): RunRecord {
    const adjusted = this.#context.graphs.withAdjustments(run);
    this.#context.runs.save(adjusted);
    this.#context.outbox.append([runQueued(adjusted)], { now: adjusted.createdAt });
    return adjusted;
  }

  #toRecord({ command, origin, managed }: AcceptableRun): RunRecord {
    const { runs, deps } = this.#context;
    const now = this.#context.now();
    // Run ids order the thread's runs by this time: it is later than the newest run's, whatever the clock did meanwhile.
    const createdAt = Math.max(now, (runs.newestCreatedAt() ?? 0) + 1);
    const [oldest] = runs.activeRuns();
    const delaySeconds = command.body.after_seconds ?? 0;
    return {
      runId: idOfNewThread(origin?.newThread) ?? deps.newId(createdAt),
      status: "pending",
      graphId: command.graph_id,
      command: {
        ...withPolicy(withoutServerKeys(command)),
        ...(origin === undefined ? {} : { principal: origin.principal }),
        ...(managed.length === 0 ? {} : { managed_subagents: managed }),
      },
      baseCheckpointId: null,
      finalCheckpointId: null,
      cancelRequested: false,
      ...(oldest === undefined ? {} : { activeFrom: oldest.runId }),
      ...(delaySeconds > 0 ? { dueAt: now + delaySeconds * MS_PER_SECOND } : {}),
      attempt: 0,
      recovery: { attempts: 0, headCheckpointId: null, progressAt: now },
      framesReserved: FRAME_RESERVATION,
      error: null,
      interrupts: null,
      usage: null,
      createdAt,
      updatedAt: createdAt,
    };
  }
}

export function refuseSize(command: RunCommand): ApiRefusal | undefined {
  if (Buffer.byteLength(JSON.stringify(command)) <= RUN_COMMAND_BYTES_MAX) return undefined;
  return { code: "too_large", message: `a run's body may hold ${RUN_COMMAND_BYTES_MAX} bytes of JSON` };
}

function toRefusal(refusal: MultitaskRefusal): ApiRefusal {
  if (refusal.reason === "thread_busy") {
    const { runId } = refusal;
    const message = `thread has an active run '${runId}'; wait for it, cancel it, or choose another multitask_strategy`;
    return { code: "thread_busy", message, details: { run_id: runId } };
  }
  const { limit } = refusal;
  const message = `thread has ${limit} pending runs, and may have no more; wait until one has started`;
  return { code: "thread_busy", message, details: { limit } };
}

/** What the server says in a run's metadata, nobody else does. */
function withoutServerKeys(command: RunCommand): RunCommand {
  const { metadata } = command.body;
  if (metadata?.[ADJUSTED_OPTIONS_KEY] === undefined) return command;
  const { [ADJUSTED_OPTIONS_KEY]: _forged, ...kept } = metadata;
  return { ...command, body: { ...command.body, metadata: kept } };
}

/** A run's metadata tells what it may delegate to (R9): the server's word, over whatever a client wrote there. */
function withPolicy(command: RunCommand): RunCommand {
  if (command.graph_id !== LEAD_GRAPH_ID) return command;
  const allowed = command.agent?.allowedSubagents ?? null;
  const metadata = { ...command.body.metadata, [ALLOWED_SUBAGENTS_OPTION]: allowed };
  return { ...command, body: { ...command.body, metadata } };
}

/** Of the run that a stateless thread is made for. */
function idOfNewThread(address: ThreadAddress | undefined): string | undefined {
  return address?.stateless === true ? statelessRunId(address.thread_id) : undefined;
}
