/**
 * What `scheduled()` does for batches: finds those whose rows have not moved for long and pokes their thread's object.
 * Owns nothing but the paging. The object's own alarm is the sweeper; this is for the case that it was lost. A batch with
 * one long item looks the same as a stuck one, and a poke finds nothing to do there. A batch whose thread was deleted
 * has nobody left to drive it: it is cancelled here.
 */
import type { BatchRepository } from "../domain/batch/batch-repository.ts";

/** An item may run for 780 s without its batch moving; the rest is room for its lease and its settle. */
export const STALE_AFTER_MS = 900_000;
const PAGE = 100;
/** Pages a sweep reads; the next one, a minute later, starts again. */
const PAGES_MAX = 20;

export interface BatchSweepDeps {
  readonly repository: Pick<BatchRepository, "systemListStale" | "cancel" | "systemDiscardLoading" | "systemForget">;
  /** The thread object's `pokeBatches`. */
  readonly poke: (thread: {
    readonly owner: string;
    readonly threadId: string;
    readonly batchIds: readonly string[];
  }) => Promise<"poked" | "no_thread">;
  readonly now: () => number;
  readonly log: (what: string, details: Readonly<Record<string, unknown>>) => void;
}

/** Gives how many batches were found. */
export async function sweepBatches(deps: BatchSweepDeps): Promise<number> {
  const before = deps.now() - STALE_AFTER_MS;
  let after = "";
  let found = 0;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const stale = await deps.repository.systemListStale(before, after, PAGE);
    const threads = Map.groupBy(stale, (batch) => JSON.stringify([batch.owner, batch.threadId]));
    for (const batches of threads.values()) await pokeOne(deps, batches);
    found += stale.length;
    if (stale.length < PAGE) break;
    after = stale.at(-1)?.batchId ?? after;
  }
  return found;
}

async function pokeOne(
  deps: BatchSweepDeps,
  batches: readonly { owner: string; threadId: string; batchId: string }[],
): Promise<void> {
  const [first] = batches;
  if (first === undefined) return;
  const { owner, threadId } = first;
  try {
    const poked = await deps.poke({ owner, threadId, batchIds: batches.map((batch) => batch.batchId) });
    if (poked === "no_thread") for (const { batchId } of batches) await endOrphan(deps, owner, batchId);
  } catch (fault) {
    deps.log("batch sweep: poke failed", { thread_id: threadId, fault: String(fault) });
  }
}

async function endOrphan({ repository, now }: BatchSweepDeps, owner: string, batchId: string): Promise<void> {
  await repository.systemDiscardLoading(batchId);
  await repository.cancel(owner, batchId, now());
  await repository.systemForget(batchId);
}
