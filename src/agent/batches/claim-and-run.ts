/**
 * What a wake is for: claim up to its slots under a lease, run the items, settle them. Wherever the wake came from: a
 * queue, or a pump in this process. The grant is the caller's to return.
 */
import type { BatchWorkRows } from "../../domain/batch/batch-repository.ts";
import type { Wake } from "../../domain/batch/batch.ts";
import { ItemGroup, type ItemGroupPorts } from "./item-group.ts";
import { LeaseKeeper } from "./lease-keeper.ts";

export interface ClaimPorts extends ItemGroupPorts {
  readonly rows: BatchWorkRows;
  readonly newId: () => string;
  readonly leaseMs: number;
  /** Ends the items early, without a settle. */
  readonly signal?: AbortSignal;
}

export type ClaimEnd = "ran" | "empty" | "not_ours";

/** `not_ours`: the grant is another delivery's, or has expired; there is nothing to return. */
export async function claimAndRun(wake: Wake, ports: ClaimPorts): Promise<ClaimEnd> {
  const { rows, newId, now, leaseMs, timers, log } = ports;
  const claimedAt = now();
  const expiresAt = claimedAt + leaseMs;
  const claim = await rows.systemClaim({ wake, leaseToken: newId(), now: claimedAt, leaseExpiresAt: expiresAt });
  if (claim.kind === "expired" || claim.kind === "taken") return "not_ours";
  if (claim.kind === "empty") return "empty";
  const { lease, items, batch } = claim;
  const onFault = (fault: unknown): void => {
    log("batch heartbeat failed", { batch_id: wake.batchId, fault: String(fault) });
  };
  const keeper = new LeaseKeeper({ rows, lease, expiresAt, leaseMs, timers, now, onFault });
  const leaseSignal = ports.signal === undefined ? keeper.signal : AbortSignal.any([keeper.signal, ports.signal]);
  try {
    const files = await rows.systemLoadFiles(wake.batchId);
    await new ItemGroup(ports, { wake, lease, items, batch, files, leaseSignal }).run();
  } finally {
    keeper.stop();
  }
  return "ran";
}
