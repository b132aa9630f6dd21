/**
 * What the graphs of one program share when they delegate: limits, admission, providers, the ways to batches, all from one
 * snapshot (delegation-behaviour 1.9). A caller makes one and gives it to every graph.
 * Owns its life: `idle → starting → running → stopping → stopped`, never back. Invariants: from the moment `stop()` is
 * called no bound tool starts anything, and none asks another submitter instead; stopping waits for what is under way,
 * however long that takes.
 */
import type { DeputyConfig } from "../../config.ts";
import { toDelegationKwargs } from "../../domain/delegation/delegation-result.ts";
import { agentItemRunner } from "../batches/agent-item-runner.ts";
import { CircuitBreakers } from "../models/circuit-breakers.ts";
import { environmentModels } from "../models/environment-models.ts";
import type { ModelCatalog } from "../models/model.ts";
import { reportFault } from "../report-fault.ts";
import type { AdmissionController, AdmissionSnapshot } from "../subagents/admission-controller.ts";
import { inProcessSubagents } from "../subagents/in-process-subagents.ts";
import { memoryAdmission } from "../subagents/memory-admission.ts";
import type { SubagentService } from "../subagents/subagent-service.ts";
import type { BatchService } from "../tools/batch-tools.ts";
import type { Tool, ToolOutcome } from "../tools/tool.ts";
import { RuntimeBatches } from "./runtime-batches.ts";
import { readSnapshot, SubagentRuntimeError, type SubagentRuntimeOptions } from "./runtime-options.ts";

export type RuntimePhase = "idle" | "starting" | "running" | "stopping" | "stopped";

/** What a graph is built on. */
export interface RuntimeBinding {
  readonly deputy: DeputyConfig;
  readonly models: ModelCatalog;
  readonly admission: AdmissionController;
  readonly subagents: SubagentService;
  readonly circuits: CircuitBreakers;
  readonly batches: ((threadId: string) => BatchService) | undefined;
  /** The same tool, as long as the runtime is open. */
  readonly guard: (tool: Tool) => Tool;
  readonly newId: () => string;
}

const STOPPED_TEXT = "Unavailable: the subagent runtime behind this tool was stopped. Nothing was started.";

export class SubagentRuntime {
  readonly #binding: RuntimeBinding;
  readonly #worker: RuntimeBatches | undefined;
  /** Calls of bound tools that have not answered. */
  readonly #underWay = new Set<Promise<unknown>>();
  #phase: RuntimePhase = "idle";
  #started: Promise<void> | undefined;
  #stopped: Promise<void> | undefined;

  constructor(options: SubagentRuntimeOptions = {}) {
    const deputy = readSnapshot(options);
    const newId = () => crypto.randomUUID();
    const models = options.models ?? environmentModels(deputy, newId);
    const subagents = inProcessSubagents({ newId, reportFault });
    for (const provider of options.providers ?? []) subagents.register(provider);
    const admission = memoryAdmission({
      runtime: deputy.subagent_runtime,
      leaseSeconds: deputy.subagent_batches.lease_seconds,
      newId,
      onBatchTurn: (grant) => this.#worker?.takeTurn(grant),
    });
    const circuits = new CircuitBreakers(deputy.llm_call.circuit, Date.now);
    const { batchRepository: repository, batchTools: tools = [], owner = "local" } = options;
    if (repository !== undefined) {
      const shared = { models, subagents, circuits, newId, random: Math.random, now: Date.now };
      const runner = agentItemRunner({
        ...shared,
        tools,
        llmCall: deputy.llm_call,
        approvals: deputy.tools.approval,
        policy: () => ({ kind: "allow" }),
        report: reportFault,
        subagentsConfig: deputy.subagents,
      });
      this.#worker = new RuntimeBatches({ repository, owner, deputy, runner, admission, newId, reportFault });
    }
    const worker = this.#worker;
    const batches = options.batchSubmitter ?? (worker && ((threadId: string) => worker.serviceOf(threadId)));
    this.#binding = {
      deputy,
      models,
      admission,
      subagents,
      circuits,
      batches,
      newId,
      guard: (tool) => this.#guard(tool),
    };
  }

  get phase(): RuntimePhase {
    return this.#phase;
  }

  /** The one queue of all graphs on this runtime. */
  get admission(): AdmissionSnapshot {
    return this.#binding.admission.snapshot();
  }

  /**
   * Takes up the batches that are not finished. Needed before a graph is built on a runtime with a batch repository,
   * harmless otherwise. Concurrent calls are one; a start that failed may be tried again; a stopped runtime stays so.
   */
  start(): Promise<void> {
    if (this.#phase === "stopping" || this.#phase === "stopped") return Promise.reject(stoppedError());
    this.#started ??= this.#start();
    return this.#started;
  }

  /**
   * Closes the tools at once, then waits for their calls and for running items. Idempotent. With a `signal` that fired
   * meanwhile it rejects with the signal's reason, but not before everything is drained.
   */
  async stop({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    this.#stopped ??= this.#stop();
    await this.#stopped;
    signal?.throwIfAborted();
  }

  /** For the factory of agents. Throws while there is nothing to build on. */
  bind(): RuntimeBinding {
    if (this.#phase === "stopping" || this.#phase === "stopped") throw stoppedError();
    if (this.#worker !== undefined && this.#phase !== "running") {
      throw new SubagentRuntimeError(
        "this SubagentRuntime has a batch repository: `await runtime.start()` before a graph is built on it",
      );
    }
    return this.#binding;
  }

  async #start(): Promise<void> {
    this.#phase = "starting";
    try {
      await this.#worker?.start();
    } catch (error) {
      this.#started = undefined;
      // A stop that came meanwhile owns the phase now.
      if (this.#stopped === undefined) this.#phase = "idle";
      throw error;
    }
    if (this.#stopped === undefined) this.#phase = "running";
  }

  async #stop(): Promise<void> {
    this.#phase = "stopping";
    await this.#started?.catch(() => undefined);
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    await this.#worker?.stop();
    this.#phase = "stopped";
  }

  #guard(tool: Tool): Tool {
    return {
      ...tool,
      execute: async (args, runtime) => {
        if (this.#phase === "stopping" || this.#phase === "stopped") return unavailable(tool);
        const call = tool.execute(args, runtime);
        this.#underWay.add(call);
        try {
          return await call;
        } finally {
          this.#underWay.delete(call);
        }
      },
    };
  }
}

/** A `task` call is a delegation all the same: the ledger reads its status from the metadata. */
function unavailable({ name }: Tool): ToolOutcome {
  const outcome = { status: "failed", error: STOPPED_TEXT } as const;
  const additionalKwargs = name === "task" ? toDelegationKwargs(outcome) : { subagent_batch_error: "unavailable" };
  return { status: "error", content: STOPPED_TEXT, additionalKwargs };
}

function stoppedError(): SubagentRuntimeError {
  return new SubagentRuntimeError("this SubagentRuntime was stopped: make a new one");
}
