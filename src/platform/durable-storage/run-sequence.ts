/**
 * In which order the runs of a thread ended, for a stream of all of them (`thread-stream.ts`). Reads only.
 * Runs of a thread are driven one at a time, so one that ended later was driven later, whenever it was accepted.
 */
import type { SqlExecutor } from "./metered-sql.ts";

/** A run that has ended, and when. */
export interface EndedRun {
  readonly runId: string;
  readonly updatedAt: number;
}

export class RunSequence {
  readonly #sql: SqlExecutor;

  constructor(sql: SqlExecutor) {
    this.#sql = sql;
  }

  /**
   * The first run to end behind `after`, of those that have frames still; the first of all without it. `after` itself is
   * never behind: what waited for an answer ends again when it is cancelled, at a later time.
   */
  nextEnded(after: EndedRun | undefined): string | undefined {
    const rows = this.#sql.exec<{ run_id: string }>(
      `SELECT run_id FROM runs
       WHERE status NOT IN ('pending', 'running') AND (updated_at, run_id) > (?, ?) AND run_id <> ?
         AND EXISTS (SELECT 1 FROM frame_blocks WHERE frame_blocks.run_id = runs.run_id)
       ORDER BY updated_at, run_id LIMIT 1`,
      after?.updatedAt ?? 0,
      after?.runId ?? "",
      after?.runId ?? "",
    );
    return rows.toArray()[0]?.run_id;
  }

  /**
   * Where a run stood that is gone, rolled back or deleted: before whatever was accepted behind it and has ended, since runs
   * are driven in the order they were accepted. Ids rise with that order. `undefined` when nothing of it has ended.
   */
  beforeNextOf(goneRunId: string): EndedRun | undefined {
    const [row] = this.#sql
      .exec<{ at: number | null }>(
        `SELECT MIN(updated_at) AS at FROM runs WHERE run_id > ? AND status NOT IN ('pending', 'running')`,
        goneRunId,
      )
      .toArray();
    return row?.at == null ? undefined : { runId: goneRunId, updatedAt: row.at - 1 };
  }

  /** The run that ended last. */
  newestEnded(): EndedRun | undefined {
    const [row] = this.#sql
      .exec<{ run_id: string; updated_at: number }>(
        `SELECT run_id, updated_at FROM runs WHERE status NOT IN ('pending', 'running')
         ORDER BY updated_at DESC, run_id DESC LIMIT 1`,
      )
      .toArray();
    return row && { runId: row.run_id, updatedAt: row.updated_at };
  }
}
