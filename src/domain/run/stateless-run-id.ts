/**
 * The run that a thread was made for has the thread's id, so that `GET /runs/{run_id}/stream` finds it with no row that
 * says where it is (docs/decisions/stateless-runs.md). Run ids order a thread's runs by time, so only an id with its
 * time in it can be one: a thread named by an `Idempotency-Key` gives its run an id of its own.
 */

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export function statelessRunId(threadId: string): string | undefined {
  return UUID_V7.test(threadId) ? threadId : undefined;
}
