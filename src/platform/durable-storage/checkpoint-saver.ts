/**
 * LangGraph's checkpointer over the SQLite of a Durable Object.
 *
 * Owns the transaction of each `put` and `putWrites`: values are serialised first, then rows and the commit hook share
 * one `transactionSync` without an await, so a crash leaves all of it or none (P1, P2). Calls do not wait for each
 * other. One billed row per checkpoint and per task's writes. Does not own the schema (created through `ensureSchema`
 * by the first write; reads of an object without one find nothing) nor retention (`checkpoint-retention.ts`).
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  getCheckpointId,
  type PendingWrite,
} from "@langchain/langgraph-checkpoint";
import { invariant } from "../../domain/shared/assert.ts";
import { deleteNamespaceRows, deleteThreadRows } from "./checkpoint-deletes.ts";
import {
  loadMetadata,
  packCheckpoint,
  planValues,
  serialiseCheckpoint,
  unpackCheckpoint,
} from "./checkpoint-document.ts";
import type { CheckpointKey } from "./checkpoint-key.ts";
import { selectChildNamespaces, selectKeys } from "./checkpoint-listing.ts";
import { findNewest, placeOf, positionsOf } from "./checkpoint-order.ts";
import { configOf, readDeltaHistory, readTuple } from "./checkpoint-reader.ts";
import {
  type CheckpointRow,
  findCheckpoint,
  findHolders,
  findLatestCheckpoint,
  findTaskWrites,
  saveCheckpoint,
  saveTaskWrites,
} from "./checkpoint-rows.ts";
import { mergeWrites, packWrites, serialiseWrites, unpackWrites } from "./checkpoint-writes.ts";
import type { CommitHook } from "./commit-hook.ts";
import type { SqlExecutor } from "./metered-sql.ts";
import { ensureSchema, hasSchema } from "./object-schema.ts";
import { StateSerializer } from "./state-serializer.ts";
import { storeValue } from "./stored-value.ts";

export interface DurableCheckpointSaverOptions {
  readonly storage: DurableObjectStorage;
  /** Counts rows when given; must execute on the same storage. */
  readonly sql?: SqlExecutor;
  readonly hook?: CommitHook;
  /**
   * Set where the tables are there for as long as the saver is: then neither is a read preceded by a look for them, nor
   * does a write make them.
   */
  readonly hasTables?: true;
}

export class DurableCheckpointSaver extends BaseCheckpointSaver {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlExecutor;
  readonly #hook: CommitHook | undefined;
  readonly #hasTables: boolean;

  constructor(options: DurableCheckpointSaverOptions) {
    super(new StateSerializer());
    this.#storage = options.storage;
    this.#sql = options.sql ?? options.storage.sql;
    this.#hook = options.hook;
    this.#hasTables = options.hasTables ?? false;
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const row = this.#find(config);
    return row === undefined ? undefined : readTuple({ sql: this.#sql, serde: this.serde }, row);
  }

  /** Newest first within a namespace. Keys are taken at the start; a checkpoint deleted meanwhile is left out. */
  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    if (!this.#hasSchema()) return;
    const filter = Object.entries(options.filter ?? {});
    let wanted = options.limit ?? Infinity;
    const keys = selectKeys(this.#sql, {
      threadId: config.configurable?.["thread_id"] || undefined,
      checkpointNs: config.configurable?.["checkpoint_ns"],
      checkpointId: config.configurable?.["checkpoint_id"] || undefined,
      beforeId: options.before?.configurable?.["checkpoint_id"] || undefined,
      limit: filter.length === 0 ? options.limit : undefined,
    });
    for (const key of keys) {
      if (wanted <= 0) return;
      const row = findCheckpoint(this.#sql, key);
      if (row === undefined || !(await this.#matches(row, filter))) continue;
      wanted -= 1;
      yield await readTuple({ sql: this.#sql, serde: this.serde }, row);
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const key = { ...requireThread(config, "put a checkpoint"), checkpointId: checkpoint.id };
    const parentId: string | undefined = config.configurable?.["checkpoint_id"] || undefined;
    if (!this.#hasTables) ensureSchema(this.#storage);
    const parent =
      parentId === undefined
        ? undefined
        : { checkpointId: parentId, holders: findHolders(this.#sql, { ...key, checkpointId: parentId }) };
    const holders = planValues(checkpoint, newVersions, parent, metadata.source === "fork");
    const body = packCheckpoint(await serialiseCheckpoint(this.serde, checkpoint, metadata, holders));
    this.#storage.transactionSync(() => {
      const row = { ...key, parentId: parentId ?? null, holders, body };
      saveCheckpoint(this.#sql, row, placeOf(this.#sql, key));
      const { checkpointNs, checkpointId } = key;
      this.#hook?.onCheckpoint({ checkpointNs, checkpointId, source: metadata.source, step: metadata.step });
    });
    return configOf(key.threadId, key.checkpointNs, key.checkpointId);
  }

  /**
   * Stores a task's writes. A repeated call is merged into the task's row; the hook sees what was stored by this call
   * only, and is not called when that is nothing.
   */
  override async putWrites(
    config: RunnableConfig,
    writes: PendingWrite[],
    taskId: string,
    taskPath = "",
  ): Promise<void> {
    const key = { ...requireThread(config, "put writes"), checkpointId: requireCheckpointId(config) };
    if (!this.#hasTables) ensureSchema(this.#storage);
    const incoming = await serialiseWrites(this.serde, writes, taskPath);
    this.#storage.transactionSync(() => {
      const stored = findTaskWrites(this.#sql, key, taskId);
      const { merged, accepted } = mergeWrites(stored === undefined ? [] : unpackWrites(stored.body), incoming);
      if (accepted.length === 0) return;
      saveTaskWrites(this.#sql, key, { taskId, body: packWrites(merged), isNew: stored === undefined });
      const { checkpointNs, checkpointId } = key;
      const live = accepted.map((place) => writes[place]!);
      this.#hook?.onWrites({ checkpointNs, checkpointId, taskId, taskPath, writes: live });
    });
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    if (options.channels.length === 0) return {};
    const key = this.#resolve(options.config);
    if (key === undefined) return Object.fromEntries(options.channels.map((channel) => [channel, { writes: [] }]));
    return readDeltaHistory({ sql: this.#sql, serde: this.serde }, key, options.channels);
  }

  override async deleteThread(threadId: string): Promise<void> {
    if (!this.#hasSchema()) return;
    this.#storage.transactionSync(() => deleteThreadRows(this.#sql, threadId));
  }

  /** The id of the thread's newest checkpoint; `null` without one. Synchronous: one row read, its body left. */
  headId(threadId: string): string | null {
    if (!this.#hasSchema()) return null;
    return findNewest(this.#sql, threadId, "")?.checkpointId ?? null;
  }

  /** Where checkpoints stand in the order of puts; positions compare as text. The id of one that is gone. */
  positionsOf(threadId: string, checkpointIds: readonly string[]): string[] {
    return positionsOf(this.#sql, threadId, checkpointIds);
  }

  has(threadId: string, checkpointNs: string, checkpointId: string): boolean {
    if (!this.#hasSchema()) return false;
    return selectKeys(this.#sql, { threadId, checkpointNs, checkpointId, limit: 1 }).length > 0;
  }

  /** Merges into a checkpoint's metadata; false, and nothing written, when it would pass `charsMax` of JSON. One row. */
  async patchMetadata(key: CheckpointKey, patch: Record<string, unknown>, charsMax: number): Promise<boolean> {
    const row = findCheckpoint(this.#sql, key);
    invariant(row !== undefined, "only a stored checkpoint's metadata is patched");
    const merged = { ...(await loadMetadata(this.serde, unpackCheckpoint(row.body))), ...patch };
    if (JSON.stringify(merged).length > charsMax) return false;
    const metadata = await storeValue(this.serde, merged);
    this.#storage.transactionSync(() => {
      // Read again: a pruning may have made it a root meanwhile. Its metadata is written nowhere else.
      const now = findCheckpoint(this.#sql, key);
      invariant(now !== undefined, "the checkpoint was pruned while it was patched");
      saveCheckpoint(this.#sql, { ...now, body: packCheckpoint({ ...unpackCheckpoint(now.body), metadata }) });
    });
    return true;
  }

  /** The namespaces that hold checkpoints of a thread's children. Synchronous: keys only. */
  childNamespaces(threadId: string): string[] {
    if (!this.#hasSchema()) return [];
    return selectChildNamespaces(this.#sql, threadId);
  }

  /** Deletes a child's rows: `nsPrefix` itself and all nested under it. Synchronous: joins the caller's transaction. */
  deleteNamespace(threadId: string, nsPrefix: string): void {
    if (!this.#hasSchema()) return;
    this.#storage.transactionSync(() => deleteNamespaceRows(this.#sql, threadId, nsPrefix));
  }

  #hasSchema(): boolean {
    return this.#hasTables || hasSchema(this.#storage);
  }

  #find(config: RunnableConfig): CheckpointRow | undefined {
    const threadId = threadOf(config);
    if (threadId === undefined || !this.#hasSchema()) return undefined;
    const checkpointNs = namespaceOf(config);
    const checkpointId = getCheckpointId(config);
    if (checkpointId === "") return findLatestCheckpoint(this.#sql, threadId, checkpointNs);
    return findCheckpoint(this.#sql, { threadId, checkpointNs, checkpointId });
  }

  #resolve(config: RunnableConfig): CheckpointKey | undefined {
    const threadId = threadOf(config);
    if (threadId === undefined || !this.#hasSchema()) return undefined;
    const checkpointNs = namespaceOf(config);
    const checkpointId = getCheckpointId(config);
    if (checkpointId !== "") return { threadId, checkpointNs, checkpointId };
    const newest = findNewest(this.#sql, threadId, checkpointNs);
    return newest && { threadId, checkpointNs, checkpointId: newest.checkpointId };
  }

  async #matches(row: CheckpointRow, filter: readonly (readonly [string, unknown])[]): Promise<boolean> {
    if (filter.length === 0) return true;
    const metadata: Record<string, unknown> = await loadMetadata(this.serde, unpackCheckpoint(row.body));
    return filter.every(([field, value]) => isSameJson(metadata[field], value));
  }
}

/** Objects and lists by what they hold; the order of an object's keys does not count. */
function isSameJson(held: unknown, asked: unknown): boolean {
  if (typeof held !== "object" || typeof asked !== "object" || held === null || asked === null) return held === asked;
  if (Array.isArray(held) !== Array.isArray(asked)) return false;
  const [mine, theirs] = [held as Record<string, unknown>, asked as Record<string, unknown>];
  const keys = Object.keys(theirs);
  return keys.length === Object.keys(mine).length && keys.every((key) => isSameJson(mine[key], theirs[key]));
}

function threadOf(config: RunnableConfig): string | undefined {
  return config.configurable?.["thread_id"];
}

function namespaceOf(config: RunnableConfig): string {
  return config.configurable?.["checkpoint_ns"] ?? "";
}

function requireThread(config: RunnableConfig, what: string): { threadId: string; checkpointNs: string } {
  const threadId = threadOf(config);
  if (threadId === undefined) throw new Error(`cannot ${what}: the config names no thread_id`);
  return { threadId, checkpointNs: namespaceOf(config) };
}

function requireCheckpointId(config: RunnableConfig): string {
  const checkpointId: string | undefined = config.configurable?.["checkpoint_id"];
  if (checkpointId === undefined) throw new Error("cannot put writes: the config names no checkpoint_id");
  return checkpointId;
}
