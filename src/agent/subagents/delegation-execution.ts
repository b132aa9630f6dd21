/**
 * One execution of one child, interactive or batch item: the core both share (R32).
 * Owns its terminal cell, its abort signal, its time budget and its token count. Does not own admission, events or the
 * provider. Invariants: the result settles first and the signal follows (abort listeners run synchronously and would
 * re-enter, R60); the token snapshot is taken with the terminal write and frozen with it; nothing polls (R53);
 * what a child or an agent of another process said is well-formed Unicode from here on: half of a surrogate pair in a
 * thread's history makes providers refuse every later request.
 */
import { isGraphBubbleUp } from "@langchain/langgraph";
import { decideOutcome, CANCELLED_BY_USER } from "../../domain/delegation/settle-outcome.ts";
import type { DelegationOutcome } from "../../domain/delegation/delegation-outcome.ts";
import type { ChatModel } from "../models/model.ts";
import { textOf, type SubagentRun } from "./provider.ts";
import { TerminalCell } from "./terminal-cell.ts";
import type { Timers } from "./timers.ts";
import { TokenCollector } from "./token-collector.ts";

/** How long a child that ignores its signal keeps its slot: past it the slot is more useful than the order. */
export const QUIESCENCE_GRACE_MS = 5_000;

export interface ExecutionSpec {
  readonly agentName: string;
  readonly model: ChatModel;
  readonly maxTurns: number;
  readonly timeoutMs: number;
  readonly timers: Timers;
}

export class DelegationExecution {
  readonly tokens: TokenCollector;
  readonly #spec: ExecutionSpec;
  readonly #cell = new TerminalCell();
  readonly #abort = new AbortController();

  constructor(spec: ExecutionSpec) {
    this.#spec = spec;
    this.tokens = new TokenCollector(spec.agentName, spec.model.name);
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  get isSettled(): boolean {
    return this.#cell.status !== "in_progress";
  }

  /** Resolves at the terminal write. Rejects only with a signal of LangGraph's. */
  get settled(): Promise<DelegationOutcome> {
    return this.#cell.settled;
  }

  /** False when it had ended before. */
  settle(outcome: DelegationOutcome): boolean {
    const texts = { result: outcome.result?.toWellFormed(), error: outcome.error?.toWellFormed() };
    const told = { usage: this.tokens.total(), modelName: this.#spec.model.name };
    return this.#cell.settle({ ...outcome, ...texts, ...told });
  }

  fail(error: unknown): boolean {
    return this.settle({ status: "failed", error: error instanceof Error ? error.message : String(error) });
  }

  cancel(): boolean {
    return this.#stop({ status: "cancelled", error: CANCELLED_BY_USER });
  }

  /** Runs a child to its end. Resolves when it is quiescent, or the grace is over; never rejects. */
  async drive(start: () => Promise<SubagentRun>): Promise<void> {
    const { timers, timeoutMs } = this.#spec;
    const timer = timers.set(timeoutMs, () => this.#timeOut());
    let run: SubagentRun | undefined;
    try {
      run = await this.#started(start());
      const result = await Promise.race([run?.result, this.#settledOtherwise()]);
      if (result !== undefined) {
        const { stopReason, diagnostic } = result;
        this.settle(decideOutcome({ text: textOf(result), stopReason, diagnostic }, this.#spec.maxTurns));
      }
    } catch (error) {
      this.#fail(error, run !== undefined);
    } finally {
      timers.clear(timer);
      if (run !== undefined) await this.#quiesce(run);
    }
  }

  /** `undefined` when the delegation ended before its child existed; a child that appears after that is disposed. */
  async #started(starting: Promise<SubagentRun>): Promise<SubagentRun | undefined> {
    const run = await Promise.race([starting, this.#settledOtherwise()]);
    if (run === undefined) starting.then((late) => late.dispose()).catch(() => undefined);
    return run;
  }

  async #settledOtherwise(): Promise<undefined> {
    await this.settled;
    return undefined;
  }

  /** Before a run exists every throw is a failed start; afterwards only signals of LangGraph's and faults get here. */
  #fail(error: unknown, isRunning: boolean): void {
    if (isRunning && error instanceof Error && isGraphBubbleUp(error)) return this.#cell.abandon(error);
    this.fail(error);
  }

  #timeOut(): void {
    const seconds = Math.round(this.#spec.timeoutMs / 1_000);
    this.#stop({ status: "timed_out", error: `Execution timed out after ${seconds} seconds` });
  }

  #stop(outcome: DelegationOutcome): boolean {
    const first = this.settle(outcome);
    if (first) this.#abort.abort(new DOMException(outcome.error, "AbortError"));
    return first;
  }

  async #quiesce(run: SubagentRun): Promise<void> {
    const { timers } = this.#spec;
    const grace = Promise.withResolvers<void>();
    const timer = timers.set(QUIESCENCE_GRACE_MS, () => grace.resolve());
    await Promise.race([run.dispose().catch(() => undefined), grace.promise]);
    timers.clear(timer);
  }
}
