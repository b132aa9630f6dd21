/**
 * Accepts a run of one thread: what it carries is checked against the state, then the decision and the row are one
 * transaction (P1: what was accepted ends; the multitask rule). Owns acceptance only: who starts the run is the scheduler.
 */
import { Buffer } from "node:buffer";
import { ALLOWED_SUBAGENTS_OPTION } from "../domain/assistant/agent-snapshot.ts";
import type { ManagedSubagent } from "../domain/delegation/managed-subagent.ts";
import { ADJUSTED_OPTIONS_KEY } from "../domain/run/adjusted-options.ts";
import { decideStart } from "../domain/run/multitask.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { ThreadState } from "../agent/thread-state/thread-state.ts";
import { FRAME_RESERVATION } from "../platform/durable-storage/frame-log.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ApiRefusal, RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { RunEventDraft } from "../protocol/run-events.ts";
import type { RunCommand, ThreadAddress } from "../protocol/thread-rpc.ts";
import { STATELESS_MARK } from "../protocol/threads.ts";
import { cancelUnanswered } from "./cancel-unanswered.ts";
import { prepareLeadInput } from "./run-input.ts";
import type { ThreadContext } from "./thread-context.ts";
import { messageEvent, runStarted } from "./thread-log.ts";
import { insertThread } from "./thread-service.ts";

/** A stored run is one row: its create, in UTF-8, must fit well under the 2 MB row. */
const RUN_COMMAND_BYTES_MAX = 1_500_000;

/** Each try reads the state anew; a thread whose state is edited faster than that is busy. */
const ACCEPT_TRIES_MAX = 5;

/** Whence a run comes, as the gateway said it; no part of the create that a client wrote. */
export interface RunOrigin {
  readonly principal: Principal;
  /** Set when the thread is made with the run. */
  readonly newThread?: ThreadAddress | undefined;
}

interface PreparedRun {
  readonly command: RunCommand;
  readonly events: (runId: string) => RunEventDraft[];
  readonly baseCheckpointId: string | null;
}

/** Bounded by the store of the definitions, so beside the command's own bound. */
interface AcceptableRun extends PreparedRun {
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
    const busy = this.#refusedStart();
    if (busy !== undefined) return err(busy);
    const managed = command.graph_id === LEAD_GRAPH_ID ? await this.#context.managed.forRun() : [];
    for (let tries = 0; tries < ACCEPT_TRIES_MAX; tries += 1) {
      const accepted = await this.#tryAccept(command, { origin, managed });
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
    const prepared = await this.#prepare(command);
    if (!prepared.ok) return prepared;
    if (Buffer.byteLength(JSON.stringify(prepared.value.command)) > RUN_COMMAND_BYTES_MAX) {
      return err({ code: "too_large", message: `a run's body may hold ${RUN_COMMAND_BYTES_MAX} bytes of JSON` });
    }
    if (await this.#supersedeWaiting(command)) return "state_moved";
    return this.#accept({ ...prepared.value, origin, managed });
  }

  /**
   * Input instead of the answer that the newest run waits for: LangGraph drops the step that waits, with every result that
   * committed in it. So the state takes those in, and what is still open ends as cancelled. True when the state moved.
   */
  async #supersedeWaiting({ body }: RunCommand): Promise<boolean> {
    const { runs, edits, live, graphs } = this.#context;
    const waiting = runs.newest();
    if (waiting === undefined || waiting.interrupts === null || waiting.graphId !== LEAD_GRAPH_ID) return false;
    if (body.input === null || body.input === undefined) return false;
    const before = this.#context.headCheckpointId();
    await edits.run(async () => {
      if (runs.active().length > 0) return;
      const built = await graphs.forState();
      await live.settle(waiting.runId, () => cancelUnanswered(this.#context, waiting, built));
    });
    return this.#context.headCheckpointId() !== before;
  }

  async #prepare(command: RunCommand): Promise<RpcResult<PreparedRun>> {
    const { input } = command.body;
    const baseCheckpointId = this.#context.headCheckpointId();
    if (command.graph_id !== LEAD_GRAPH_ID || input === null || input === undefined) {
      if (!input && baseCheckpointId === null) {
        return err({
          code: "invalid_request",
          message: "input: required on a thread without state",
          details: { path: ["input"] },
        });
      }
      return ok({ command, events: () => [], baseCheckpointId });
    }
    const prepared = await this.#prepareInput(input, baseCheckpointId);
    if (!prepared.ok) return prepared;
    const { values, messages } = prepared.value;
    return ok({
      command: { ...command, body: { ...command.body, input: values } },
      events: (runId) => messages.flatMap((message) => messageEvent(runId, message) ?? []),
      baseCheckpointId,
    });
  }

  /** Only a removal depends on the state, so it is loaded only for an input that an empty state refuses. */
  async #prepareInput(input: Record<string, unknown>, baseCheckpointId: string | null) {
    const newId = () => this.#context.newId();
    const prepared = prepareLeadInput([], input, newId);
    if (prepared.ok || baseCheckpointId === null) return prepared;
    const { graph, configurable } = await this.#context.graphs.forState();
    const at = { ...configurable, checkpoint_id: baseCheckpointId };
    const state = (await graph.getState({ configurable: at })).values as ThreadState;
    return prepareLeadInput(state.messages ?? [], input, newId);
  }

  #refusedStart(): ApiRefusal | undefined {
    const decision = decideStart(this.#context.runs.active(), "reject");
    if (decision.ok) return undefined;
    return {
      code: "thread_busy",
      message: `thread has an active run '${decision.error.runId}'; wait for it or cancel it`,
      details: { run_id: decision.error.runId },
    };
  }

  #accept(prepared: AcceptableRun): RpcResult<RunRecord> | "state_moved" {
    return this.#context.storage.transactionSync(() => {
      // Asked again here: another create may have been accepted while this one read the state.
      const busy = this.#refusedStart();
      if (busy !== undefined) return err(busy);
      if (this.#context.isClosing) return err({ code: "not_found", message: "the thread is being deleted" });
      if (this.#context.edits.active) return "state_moved";
      if (this.#context.headCheckpointId() !== prepared.baseCheckpointId) return "state_moved";
      const newThread = prepared.origin?.newThread;
      if (newThread !== undefined && this.#context.threads.load() === undefined) {
        insertThread(this.#context, newThread, newThread.stateless === true ? { [STATELESS_MARK]: true } : {});
      }
      const run = this.#toRecord(prepared);
      this.#context.runs.save(run);
      this.#context.idempotent.note(prepared.command, run.runId, newThread?.stateless === true);
      this.#context.outbox.append([runStarted(run), ...prepared.events(run.runId)], { now: run.createdAt });
      return ok(run);
    });
  }

  #toRecord({ command, baseCheckpointId, origin, managed }: AcceptableRun): RunRecord {
    const now = this.#context.now();
    // Run ids order the thread's runs by this time: it is later than the newest run's, whatever the clock did meanwhile.
    const createdAt = Math.max(now, (this.#context.runs.newest()?.createdAt ?? 0) + 1);
    return this.#context.graphs.withAdjustments({
      runId: this.#context.deps.newId(createdAt),
      status: "running",
      graphId: command.graph_id,
      command: {
        ...withPolicy(withoutServerKeys(command)),
        ...(origin === undefined ? {} : { principal: origin.principal }),
        ...(managed.length === 0 ? {} : { managed_subagents: managed }),
      },
      baseCheckpointId,
      finalCheckpointId: null,
      cancelRequested: false,
      attempt: 1,
      recovery: { attempts: 0, headCheckpointId: baseCheckpointId, progressAt: now },
      framesReserved: FRAME_RESERVATION,
      error: null,
      interrupts: null,
      usage: null,
      createdAt,
      updatedAt: createdAt,
    });
  }
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
