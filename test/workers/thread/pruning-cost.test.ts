import { expect, it } from "vitest";
import { CheckpointPruning } from "../../../src/durable-objects/checkpoint-pruning.ts";
import type { ThreadRuntime } from "../../../src/durable-objects/thread-runtime.ts";
import { eventually } from "../../support/eventually.ts";
import { startRun, withWakes } from "../../support/thread-wakes.ts";

const LOOK_MS = 20;

/** Statements of one more pruning that finds nothing to prune, on a thread whose newest `kept` runs are kept. */
async function statementsOfPruning(kept: number): Promise<number> {
  let statements = 0;
  await withWakes(async (thread) => {
    const runtime = await thread.create({ config: { runtime: { checkpoint_runs_kept: kept } } });
    for (let run = 0; run < kept + 2; run += 1) {
      const { runId } = await startRun(runtime, "@ say done");
      await runtime.context.live.get(runId)!.done;
    }
    await eventually(
      () => [...runtime.context.frames.runs()].length,
      (runs) => runs === kept,
    );
    await atRest(runtime);
    const before = runtime.context.meter.totals().statements;
    await new CheckpointPruning(runtime.context).prune();
    statements = runtime.context.meter.totals().statements - before;
  });
  return statements;
}

/** What a run's end still does is over when no statement came between two looks. */
async function atRest(runtime: ThreadRuntime): Promise<void> {
  let before = -1;
  await eventually(
    async () => {
      const now = runtime.context.meter.totals().statements;
      const isStill = now === before;
      before = now;
      if (!isStill) await new Promise((next) => setTimeout(next, LOOK_MS));
      return isStill;
    },
    (isStill) => isStill,
  );
}

it("what a run's end looks at does not grow with the runs that are kept", async () => {
  const few = await statementsOfPruning(2);
  expect(few).toBeGreaterThan(0);
  expect(await statementsOfPruning(8)).toBe(few);
});
