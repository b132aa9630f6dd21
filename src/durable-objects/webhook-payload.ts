/**
 * What a webhook tells of a run that ended: the run as the API shows it, when it was, and the values it ended with.
 * The create's own options (`kwargs`) stay here: they may hold credentials for the graph, and the receiver is another party.
 */
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import { toRun } from "./run-view.ts";

/** Values beyond it are left out: a receiver reads them from the thread. */
export const WEBHOOK_VALUES_CHARS_MAX = 1_000_000;

export interface WebhookRun {
  readonly run: RunRecord;
  readonly threadId: string;
  /** JSON of the state the run ended with; `null` when its checkpoint is gone. */
  readonly values: string | null;
}

export function webhookPayload({ run, threadId, values }: WebhookRun, now: number): string {
  const { kwargs: _kept, ...shown } = toRun(run, threadId);
  const isTooLarge = (values?.length ?? 0) > WEBHOOK_VALUES_CHARS_MAX;
  return JSON.stringify({
    ...shown,
    run_started_at: shown.created_at,
    run_ended_at: shown.updated_at,
    webhook_sent_at: new Date(now).toISOString(),
    values: values === null || isTooLarge ? null : withInterrupts(JSON.parse(values) as object, run.interrupts),
    ...(isTooLarge ? { values_omitted: true } : {}),
  });
}

/** As `wait` and `join` have it. */
function withInterrupts(values: object, interrupts: readonly unknown[] | null): object {
  return interrupts === null ? values : { ...values, __interrupt__: interrupts };
}
