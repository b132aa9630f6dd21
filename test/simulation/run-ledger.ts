/**
 * What really happened in a schedule, beside what was stored: which steps ran and committed, which items ran, who held
 * slots. No simulated part reads it; the checks compare storage with it.
 */
import type { AdmissionSnapshot } from "../../src/agent/subagents/admission-controller.ts";
import type { Process, World } from "./world.ts";

/** What storage says of a run at this instant. */
export interface StoredRunFacts {
  readonly status: string;
  readonly cancel_requested: number;
}

export class RunLedger {
  readonly #world: World;
  readonly #committed = new Set<string>();
  readonly executions = new Map<string, number>();
  /** How often each run was driven. */
  readonly drives = new Map<string, number>();
  /** By item: how often it was run, and how each of these ended. */
  readonly itemEnds = new Map<string, string[]>();
  findRun: (runId: string) => readonly StoredRunFacts[] = () => [];
  activeRuns: (runId: string) => readonly string[] = () => [];

  constructor(world: World) {
    this.#world = world;
  }

  drive(runId: string, _withInput: boolean): void {
    this.drives.set(runId, (this.drives.get(runId) ?? 0) + 1);
  }

  /** P2: a step whose result was committed is never run again. Cancel: nothing of a cancelled run begins. */
  execute(process: Process, runId: string, place: number): void {
    const step = `${runId}:${place}`;
    this.executions.set(step, (this.executions.get(step) ?? 0) + 1);
    this.#world.note(`${process.name} runs step ${step}`);
    if (!process.isAlive || process.isGateBroken) return;
    if (this.#committed.has(step))
      this.#world.violate("P2", `step ${place} of run ${runId} was committed and ran again`);
    for (const { status, cancel_requested } of this.findRun(runId)) {
      if (cancel_requested === 1) this.#world.violate("R60", `run ${runId} was cancelled and began step ${place}`);
      if (status !== "running") this.#world.violate("P1", `run ${runId} is ${status} and began step ${place}`);
    }
    const others = this.activeRuns(runId);
    if (others.length > 0) this.#world.violate("P3", `run ${runId} ran a step beside running ${others.join(", ")}`);
  }

  commit(process: Process, runId: string, place: number): void {
    // What a replaced instance commits is kept nowhere.
    if (!process.isAlive || process.isGateBroken) return;
    this.#committed.add(`${runId}:${place}`);
  }

  /** The steps of a run that committed. */
  committedOf(runId: string): readonly string[] {
    return [...this.#committed].filter((step) => step.startsWith(`${runId}:`));
  }

  isCommitted(runId: string, place: number): boolean {
    return this.#committed.has(`${runId}:${place}`);
  }

  /** P8: no more slots are held than there are. */
  hold(process: Process, { running, max_running }: AdmissionSnapshot): Process {
    if (running > max_running) {
      this.#world.violate("P8", `${process.name} granted a slot: ${running} are held, ${max_running} there are`);
    }
    return process;
  }

  letGo(_held: Process): void {}

  endItem(item: string, how: string): void {
    this.itemEnds.set(item, [...(this.itemEnds.get(item) ?? []), how]);
  }
}
