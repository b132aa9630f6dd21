/**
 * The consumer of batch wakes: claim under a lease, run, settle, return the grant. Stateless; D1 rows are the truth and a
 * message only says where to look.
 *
 * - Every message is acknowledged on its own, whatever happened: a wake is disposable (B6), and one that throws would have
 *   the whole queue batch delivered again. What it left undone is found by the thread's sweep.
 * - The grant goes back exactly once, after the last item has stopped. A wake that is expired, or whose grant another
 *   delivery holds, has nothing to give back.
 */
import type { Wake } from "../domain/batch/batch.ts";
import { parseBatchWake } from "../protocol/queue-messages.ts";
import { claimAndRun, type ClaimPorts } from "../agent/batches/claim-and-run.ts";
import type { GrantReturn } from "../agent/batches/item-runner.ts";

export interface BatchConsumerDeps extends ClaimPorts {
  readonly grants: GrantReturn;
}

/** Wakes of one delivery run side by side: an item may take 13 of the invocation's 15 minutes. */
export async function consumeBatchWakes(delivery: MessageBatch, deps: BatchConsumerDeps): Promise<void> {
  await Promise.all(
    delivery.messages.map(async (message) => {
      try {
        const wake = parseBatchWake(message.body);
        if (wake === undefined) deps.log("unreadable batch wake", { message_id: message.id });
        else await consumeWake(wake, deps);
      } catch (fault) {
        deps.log("batch wake failed", { message_id: message.id, fault: String(fault) });
      } finally {
        message.ack();
      }
    }),
  );
}

async function consumeWake(wake: Wake, deps: BatchConsumerDeps): Promise<void> {
  const end = await claimAndRun(wake, deps).catch((fault: unknown) => {
    deps.log("batch claim or run failed", { batch_id: wake.batchId, fault: String(fault) });
    return "ran" as const;
  });
  if (end === "not_ours") return;
  const { owner, threadId, batchId, grantId } = wake;
  await deps.grants.returnGrant({ owner, threadId, batchId, grantId });
}
