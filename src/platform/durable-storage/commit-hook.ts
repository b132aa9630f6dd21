/**
 * What the checkpoint saver offers to those whose facts must commit with LangGraph's: events derived from writes, and
 * staged workspace files. Both methods run inside the saver's `transactionSync`, after its own rows: synchronous SQL
 * only, a throw rolls everything back.
 */
import type { PendingWrite } from "@langchain/langgraph-checkpoint";

export interface WritesCommit {
  readonly checkpointNs: string;
  readonly checkpointId: string;
  readonly taskId: string;
  readonly taskPath: string;
  /** Live values, before serialisation. */
  readonly writes: readonly PendingWrite[];
}

export interface CheckpointCommit {
  readonly checkpointNs: string;
  readonly checkpointId: string;
  readonly source: string;
  readonly step: number;
}

export interface CommitHook {
  onWrites(commit: WritesCommit): void;
  onCheckpoint(commit: CheckpointCommit): void;
}
