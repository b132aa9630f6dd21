/**
 * The consumer of wakes that the queue gave up on. Owns no items: they are found by the sweep. A dead letter is logged,
 * acknowledged, and its grant goes back to the thread at once instead of at its expiry.
 */
import { parseBatchWake } from "../protocol/queue-messages.ts";
import type { GrantReturn } from "../agent/batches/item-runner.ts";

export interface DeadLetterDeps {
  readonly grants: GrantReturn;
  readonly log: (what: string, details: Readonly<Record<string, unknown>>) => void;
}

export async function consumeDeadLetters(delivery: MessageBatch, deps: DeadLetterDeps): Promise<void> {
  await Promise.all(
    delivery.messages.map(async (message) => {
      const wake = parseBatchWake(message.body);
      deps.log("dead batch wake", { message_id: message.id, batch_id: wake?.batchId, attempts: message.attempts });
      try {
        if (wake !== undefined) {
          const { owner, threadId, batchId, grantId } = wake;
          await deps.grants.returnGrant({ owner, threadId, batchId, grantId });
        }
      } catch (fault) {
        deps.log("dead batch wake: grant not returned", { batch_id: wake?.batchId, fault: String(fault) });
      } finally {
        message.ack();
      }
    }),
  );
}
