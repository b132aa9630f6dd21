/**
 * Retention: an object keeps the checkpoints of its last K runs (`runtime.checkpoint_runs_kept`).
 *
 * Owns when rows of the checkpointer are deleted for age. Invariants: the state of every kept checkpoint reads the same
 * before and after; rows and deletes of a namespace change in one transaction; what cannot be cut without loss is kept
 * and reported. Called between runs: a run that is live on a checkpoint older than the cut would lose its ancestors.
 */
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import {
  type CutSource,
  type DeltaFolds,
  findNewRoots,
  toRootRow,
  type UnknownDeltaChannel,
} from "./checkpoint-cut.ts";
import { deleteNamespaceRows, deleteOlderRows } from "./checkpoint-deletes.ts";
import { POSITION, positionOf } from "./checkpoint-order.ts";
import { type CheckpointRow, saveCheckpoint } from "./checkpoint-rows.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import { hasSchema } from "./object-schema.ts";

/** A checkpoint was added below the cut while the roots were prepared; the next pruning takes it along. */
interface RootsChanged {
  readonly reason: "roots_changed";
}

export type PruneRefusal = UnknownDeltaChannel | RootsChanged;

export interface CheckpointRetentionOptions {
  readonly storage: DurableObjectStorage;
  readonly serde: SerializerProtocol;
  readonly deltaFolds: DeltaFolds;
  /** Counts rows when given; must execute on the same storage. */
  readonly sql?: SqlExecutor;
}

/**
 * Where to keep from: the oldest position that any of the last `runsKept` runs started at. `bases` are those of the runs'
 * base checkpoints, newest run first, `null` for a run that started an empty thread. `null` means there is nothing to
 * prune yet.
 */
export function decideKeepFrom(bases: readonly (string | null)[], runsKept: number): string | null {
  if (bases.length < runsKept) return null;
  const kept = bases.slice(0, runsKept);
  return kept.reduce((oldest, base) => (oldest === null || base === null ? null : base < oldest ? base : oldest));
}

export class CheckpointRetention {
  readonly #storage: DurableObjectStorage;
  readonly #source: CutSource;

  constructor({ storage, serde, deltaFolds, sql = storage.sql }: CheckpointRetentionOptions) {
    this.#storage = storage;
    this.#source = { sql, serde, deltaFolds };
  }

  /** Deletes the thread's checkpoints older than `keepFromId`, children's included. Done twice, it changes nothing. */
  async pruneBefore(threadId: string, keepFromId: string): Promise<Result<null, PruneRefusal>> {
    if (!hasSchema(this.#storage)) return ok(null);
    const keepFrom = positionOf(this.#source.sql, threadId, keepFromId);
    const root = await this.#cut(threadId, "", keepFrom);
    if (!root.ok) return root;
    for (const { ns, newest } of this.#olderNamespaces(threadId, keepFrom)) {
      const nested = isOfTask(ns)
        ? this.#deleteFinishedTask(threadId, ns, newest < keepFrom)
        : await this.#cutPersistentChild(threadId, ns, keepFrom);
      if (!nested.ok) return nested;
    }
    return ok(null);
  }

  /** From here on in positions. */
  async #cut(threadId: string, ns: string, keepFrom: string): Promise<Result<null, PruneRefusal>> {
    const { sql } = this.#source;
    const roots = findNewRoots(sql, threadId, ns, keepFrom);
    const rows: CheckpointRow[] = [];
    for (const checkpointId of roots) {
      const row = await toRootRow(this.#source, { threadId, checkpointNs: ns, checkpointId });
      if (!row.ok) return row;
      if (row.value !== undefined) rows.push(row.value);
    }
    return this.#storage.transactionSync(() => {
      const now = findNewRoots(sql, threadId, ns, keepFrom);
      if (now.join() !== roots.join()) return err({ reason: "roots_changed" });
      for (const row of rows) saveCheckpoint(sql, row);
      deleteOlderRows(sql, threadId, ns, keepFrom);
      return ok(null);
    });
  }

  /** Rows of a task that ended before the kept checkpoints: nothing kept can resume it. */
  #deleteFinishedTask(threadId: string, ns: string, finished: boolean): Result<null, PruneRefusal> {
    if (finished) this.#storage.transactionSync(() => deleteNamespaceRows(this.#source.sql, threadId, ns));
    return ok(null);
  }

  /** A subgraph with its own memory across runs: its newest older checkpoint is still its state at the cut. */
  async #cutPersistentChild(threadId: string, ns: string, keepFrom: string): Promise<Result<null, PruneRefusal>> {
    const query = `SELECT max(${POSITION}) AS newest FROM checkpoints
      WHERE thread_id = ? AND checkpoint_ns = ? AND ${POSITION} < ?`;
    const { newest } = this.#source.sql.exec<{ newest: string | null }>(query, threadId, ns, keepFrom).one();
    return newest === null ? ok(null) : this.#cut(threadId, ns, newest);
  }

  #olderNamespaces(threadId: string, keepFrom: string): { ns: string; newest: string }[] {
    const query = `SELECT checkpoint_ns AS ns, max(${POSITION}) AS newest FROM checkpoints
      WHERE thread_id = ? AND checkpoint_ns > '' GROUP BY checkpoint_ns HAVING min(${POSITION}) < ?`;
    return this.#source.sql.exec<{ ns: string; newest: string }>(query, threadId, keepFrom).toArray();
  }
}

/** LangGraph names a task's namespace `node:<task id>`, that of a subgraph with its own memory plainly `node`. */
function isOfTask(ns: string): boolean {
  return ns.includes(":");
}
