/**
 * What really happened in a schedule, beside what was stored: which parts of runs ran and committed, which items ran, who
 * held slots. No simulated part reads it; the checks compare storage with it.
 *
 * A part is a task of a step, `<run>:<place>` or `<run>:<place>.<child>`, or a step of a child, with `#<step>` behind it. It
 * is named after the run that brought it; the run that drives it may be another one, which goes on.
 */
import type { ToolMessage } from "@langchain/core/messages";
import type { AdmissionSnapshot } from "../../src/agent/subagents/admission-controller.ts";
import { type StepKind, tasksOf } from "./step-state.ts";
import type { Process, World } from "./world.ts";

/** What storage says of a run at this instant. */
export interface StoredRunFacts {
  readonly status: string;
  readonly cancel_requested: number;
}

/** What a run found when its graph began. */
export interface Begun {
  /** The run that brought the steps. */
  readonly owner: string;
  readonly steps: readonly StepKind[];
  /** Done before. */
  readonly from: number;
}

export class RunLedger {
  readonly #world: World;
  /** The run that drove each committed part; the last one, where it was left behind and done again. */
  readonly #committed = new Map<string, string>();
  /** All that each run committed. */
  readonly #driven = new Map<string, string[]>();
  /** By run: what it began with, the first time. */
  readonly begun = new Map<string, Begun>();
  /** By item: how often it was run, and how each of these ended. */
  readonly itemEnds = new Map<string, string[]>();
  /** The run that started each delegation last. */
  readonly tasks = new Map<string, string>();
  /** Delegations that ended, and how. */
  readonly taskEnds = new Map<string, string>();
  findRun: (runId: string) => readonly StoredRunFacts[] = () => [];
  activeRuns: (runId: string) => readonly string[] = () => [];

  constructor(world: World) {
    this.#world = world;
  }

  drive(runId: string, begun: Begun): void {
    this.#world.count(this.begun.has(runId) ? "a run goes on after a crash" : "a run begins");
    if (!this.begun.has(runId)) this.begun.set(runId, begun);
  }

  /** P2: what was committed is never run again. Cancel: nothing of a cancelled run begins. */
  execute(process: Process, runId: string, part: string): void {
    this.#world.note(`${process.name} runs ${part}${part.startsWith(runId) ? "" : ` for run ${runId}`}`);
    if (!process.isAlive || process.isGateBroken) return this.#world.count("a replaced instance runs a step");
    this.#world.count(part.includes("#") ? "a child runs a step" : "a run runs a step");
    if (this.isPartCommitted(part)) this.#world.violate("P2", `${part} was committed and ran again`);
    for (const { status, cancel_requested } of this.findRun(runId)) {
      if (cancel_requested === 1) this.#world.violate("R60", `run ${runId} was cancelled and began ${part}`);
      if (status !== "running") this.#world.violate("P1", `run ${runId} is ${status} and began ${part}`);
    }
    const others = this.activeRuns(runId);
    if (others.length > 0) this.#world.violate("P3", `run ${runId} ran a step beside running ${others.join(", ")}`);
  }

  commit(process: Process, runId: string, part: string): void {
    // What a replaced instance commits is kept nowhere.
    if (!process.isAlive || process.isGateBroken) return;
    this.#committed.set(part, runId);
    this.#driven.set(runId, [...this.drivenBy(runId), part]);
  }

  /**
   * A client's update makes a checkpoint of its own, and LangGraph leaves behind what was committed at the one before and
   * not yet taken in: the step is done again, because its client asked and not because somebody recovered.
   */
  leaveBehind(part: string): void {
    for (const each of this.#committed.keys())
      if (each === part || each.startsWith(`${part}#`)) this.#committed.delete(each);
  }

  /** What a run committed that was rolled back is not. */
  isPartCommitted(part: string): boolean {
    const driver = this.#committed.get(part);
    return driver !== undefined && this.findRun(driver).length > 0;
  }

  isStepCommitted(owner: string, place: number, kind: StepKind): boolean {
    return tasksOf(kind, place).every((task) => this.isPartCommitted(`${owner}:${task}`));
  }

  /** The parts that a run committed: its own ones, or another's that it went on with. */
  drivenBy(runId: string): readonly string[] {
    return this.#driven.get(runId) ?? [];
  }

  /** P5: an answer is given to the question it was meant for. */
  answer(question: string, answer: unknown): void {
    this.#world.count("a question is answered");
    const meant = /^answer to (\w+)$/.exec(String(answer))?.[1];
    if (meant !== undefined && meant !== question)
      this.#world.violate("P5", `question ${question} was given the answer to ${meant}`);
  }

  startTask(runId: string, taskId: string): void {
    this.tasks.set(taskId, runId);
  }

  /** P5: a result is what the child returned. */
  endTask(process: Process, taskId: string, result: ToolMessage): void {
    if (!process.isAlive || process.isGateBroken) return;
    const status = String(result.additional_kwargs["subagent_status"]);
    this.#world.count(`a child is ${status}`);
    this.taskEnds.set(taskId, status);
    if (status === "completed" && result.text !== `result of ${taskId}`)
      this.#world.violate("P5", `delegation ${taskId} is completed with ${result.text}`);
    const refusal = result.additional_kwargs["subagent_error_code"];
    if (status === "failed" && refusal === undefined)
      this.#world.violate("P5", `delegation ${taskId} failed for no reason of its own: ${result.text}`);
  }

  /** P8: no more slots are held than there are. */
  hold(process: Process, { running, max_running, queued }: AdmissionSnapshot): void {
    this.#world.count("a child is given a slot");
    if (queued > 0) this.#world.count("a child waits for a slot");
    if (running > max_running) {
      this.#world.violate("P8", `${process.name} granted a slot: ${running} are held, ${max_running} there are`);
    }
  }

  endItem(item: string, how: string): void {
    this.#world.count(`an item's attempt ends: ${how}`);
    this.itemEnds.set(item, [...(this.itemEnds.get(item) ?? []), how]);
  }
}
