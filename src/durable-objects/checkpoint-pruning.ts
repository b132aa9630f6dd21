/**
 * Keeps the checkpoints of the last `checkpoint_runs_kept` runs. An older run's checkpoints go when a newer run ends, and
 * its frames with them: a `values` frame is a reference to a checkpoint, and would replay as an empty state.
 */
import { isTerminal } from "../domain/run/run-status.ts";
import { deltaFoldsOf } from "../agent/thread-state/delta-folds.ts";
import { CheckpointRetention, decideKeepFrom } from "../platform/durable-storage/checkpoint-retention.ts";
import type { ThreadContext } from "./thread-context.ts";

export class CheckpointPruning {
  readonly #context: ThreadContext;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  async prune(): Promise<void> {
    const kept = this.#context.deps.config.runtime.checkpoint_runs_kept;
    const newest = this.#context.runs.newestBases(kept);
    const oldest = newest.at(-1);
    if (oldest === undefined) return;
    const keepFrom = decideKeepFrom(this.#positionsOf(newest.map(({ base }) => base)), kept);
    if (keepFrom === null) return;
    this.#expireFrames(keepFrom, oldest.runId);
    await this.#pruneBefore(keepFrom);
  }

  /** Leaves the newest checkpoint alone, whole; between runs. False when that would lose something. */
  async pruneToHead(): Promise<boolean> {
    const { frames } = this.#context;
    const head = this.#context.headCheckpointId();
    if (head === null) return true;
    for (const run of frames.runs()) frames.expire(run);
    return this.#pruneBefore(head);
  }

  #positionsOf(bases: readonly (string | null)[]): (string | null)[] {
    const { saver, threadId } = this.#context;
    const positions = saver.positionsOf(
      threadId,
      bases.map((base) => base ?? ""),
    );
    return bases.map((base, place) => base && (positions[place] ?? base));
  }

  async #pruneBefore(keepFrom: string): Promise<boolean> {
    const { graph } = await this.#context.graphs.forState();
    const retention = new CheckpointRetention({
      storage: this.#context.storage,
      serde: this.#context.saver.serde,
      deltaFolds: deltaFoldsOf(graph.channels),
      sql: this.#context.meter.labelled("pruning"),
    });
    const pruned = await retention.pruneBefore(this.#context.threadId, keepFrom);
    if (!pruned.ok) this.#context.deps.report("checkpoints were not pruned", { ...pruned.error });
    return pruned.ok;
  }

  /**
   * Frames of a run name checkpoints behind its base: they stay as long as those do, whatever was accepted since. Those of
   * the runs that are kept stay: nothing is asked about `oldestKept` and what was accepted after it.
   */
  #expireFrames(keepFrom: string, oldestKept: string): void {
    const { frames, runs } = this.#context;
    for (const runId of frames.runs()) {
      if (runId >= oldestKept) return;
      const run = runs.find(runId);
      const [base] = this.#positionsOf([run?.baseCheckpointId ?? null]);
      if (run === undefined || (isTerminal(run.status) && (base ?? "") < keepFrom)) frames.expire(runId);
    }
  }
}
