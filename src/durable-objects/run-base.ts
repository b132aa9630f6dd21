/**
 * What a run starts from, kept so that a rollback brings back exactly that: root checkpoints, children's namespaces, the
 * writes on them, delegations in flight and started tools.
 *
 * An ordinary run starts from a checkpoint that nothing hangs on, and keeps nothing: its base's id is enough. A run that
 * goes on where another one waits keeps the waiting step's writes, delegations and started calls; the checkpoints of
 * children that end in it stay until it has ended.
 * Every function is synchronous and joins the caller's transaction.
 */
import {
  type CheckpointPlace,
  copyWrites,
  deleteNewerRows,
  forgetCopies,
  restoreWrites,
} from "../platform/durable-storage/checkpoint-rollback.ts";
import { findHeads, newestOf } from "../platform/durable-storage/checkpoint-order.ts";
import type { RunBaseExtras, RunRecord } from "../platform/durable-storage/run-store.ts";
import type { ThreadContext } from "./thread-context.ts";

/** Of the run that starts now; `undefined` where its base is a root checkpoint and nothing else. */
export function captureBase(
  context: ThreadContext,
  run: Pick<RunRecord, "runId" | "command">,
): RunBaseExtras | undefined {
  const sql = checkpointSql(context);
  const heads = findHeads(sql, context.threadId);
  const copies = { threadId: context.threadId, runId: run.runId };
  const copied = copyWrites(sql, copies, [...heads.map(toPlace), ...forkPlaces(run, heads)]);
  const delegations = context.delegations.all();
  const toolStarts = context.toolStarts.all();
  const newestCheckpointId = newestOf(heads)?.checkpointId ?? null;
  const isPlain = heads.length <= 1 && copied.length === 0 && delegations.length === 0 && toolStarts.length === 0;
  return isPlain ? undefined : { v: 1, newestCheckpointId, copied, delegations, toolStarts };
}

/** The thread's state is afterwards what it was when the run started. */
export function restoreBase(context: ThreadContext, run: RunRecord): void {
  const sql = checkpointSql(context);
  const { threadId } = context;
  const extras = run.baseExtras;
  deleteNewerRows(sql, threadId, extras === undefined ? run.baseCheckpointId : extras.newestCheckpointId);
  const heads = findHeads(sql, threadId);
  const places = [...heads.map(toPlace), ...forkPlaces(run, heads), ...(extras?.copied ?? [])];
  restoreWrites(sql, { threadId, runId: run.runId }, distinct(places));
  for (const { taskId } of context.delegations.ofRun(run.runId)) context.delegations.delete(taskId);
  for (const delegation of extras?.delegations ?? []) context.delegations.save(delegation);
  context.toolStarts.clear();
  for (const started of extras?.toolStarts ?? []) context.toolStarts.restore(started);
}

/** The run can no longer be rolled back: what was kept for that goes, a child's checkpoints whose result it committed too. */
export function forgetBase(context: ThreadContext, run: RunRecord): void {
  if (run.baseExtras === undefined || run.baseExtras.isForgotten) return;
  forgetCopies(checkpointSql(context), { threadId: context.threadId, runId: run.runId });
  for (const { taskId, checkpointNs } of run.baseExtras.delegations) {
    if (context.delegations.find(taskId) !== undefined) continue;
    context.saver.deleteNamespace(context.threadId, checkpointNs);
    context.toolStarts.deleteUnder(checkpointNs);
  }
}

/** True for the checkpoints of a child that the thread's running run found: they are part of what it may go back to. */
export function isOfBase(run: RunRecord | undefined, checkpointNs: string): boolean {
  return run?.baseExtras?.delegations.some((delegation) => delegation.checkpointNs === checkpointNs) === true;
}

/** A run that forks writes on the checkpoint it forks from. */
function forkPlaces({ command }: Pick<RunRecord, "command">, heads: readonly CheckpointPlace[]): CheckpointPlace[] {
  const body = command.body as { checkpoint_id?: string | null; checkpoint?: { checkpoint_id?: string | null } | null };
  const forkedFrom = body.checkpoint_id ?? body.checkpoint?.checkpoint_id;
  if (!forkedFrom || heads.some((head) => head.checkpointNs === "" && head.checkpointId === forkedFrom)) return [];
  return [{ checkpointNs: "", checkpointId: forkedFrom }];
}

function toPlace({ checkpointNs, checkpointId }: CheckpointPlace): CheckpointPlace {
  return { checkpointNs, checkpointId };
}

function distinct(places: readonly CheckpointPlace[]): CheckpointPlace[] {
  return [...new Map(places.map((place) => [`${place.checkpointNs}/${place.checkpointId}`, place])).values()];
}

function checkpointSql(context: ThreadContext) {
  return context.meter.labelled("checkpoints");
}
