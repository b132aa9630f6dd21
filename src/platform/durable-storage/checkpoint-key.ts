/** What addresses a checkpoint. In production an object holds one thread; the key keeps it because LangGraph's does. */
export interface CheckpointKey {
  readonly threadId: string;
  /** Empty for the lead's graph, `tools:<task id>` for a child's, `|` between levels. */
  readonly checkpointNs: string;
  /** UUID v6: sorts by time, unless the clock was set back (`checkpoint-order.ts`). */
  readonly checkpointId: string;
}

/** In the order of every primary key. */
export function keyColumns(key: CheckpointKey): [string, string, string] {
  return [key.threadId, key.checkpointNs, key.checkpointId];
}
