/**
 * Starts runs of one thread: after acceptance, and again after a crash. Owns which start a stored run gets; the driver
 * owns the run from there on.
 */
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { RunDriver, RunStart } from "./run-driver.ts";
import { restoreLeadInput } from "./run-input.ts";
import type { ThreadContext } from "./thread-context.ts";

export class RunScheduler {
  readonly #context: ThreadContext;
  readonly #driver: RunDriver;

  constructor(context: ThreadContext, driver: RunDriver) {
    this.#context = context;
    this.#driver = driver;
  }

  /** Starts driving a run whose row says running. */
  start(run: RunRecord, start: "input" | "resume"): void {
    // Not awaited: a run lives on after the request that started it. The driver never rejects.
    void this.#driver.drive(run, start === "input" ? startOf(run) : { kind: "resume" });
    this.#context.flush.kick();
  }
}

function startOf(run: RunRecord): RunStart {
  const { input } = run.command.body;
  if (input === null || input === undefined) return { kind: "resume" };
  return { kind: "input", input: run.graphId === LEAD_GRAPH_ID ? restoreLeadInput(input) : input };
}
