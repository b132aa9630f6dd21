/**
 * The thread object as the gateway and the consumers call it. RPC methods answer `RpcResult`, never throw a refusal.
 * Streams and long waits go through the object's `fetch` instead (architecture section 5, readers):
 *
 *   POST /runs/stream            body RunCommand, ?namespace=   SSE, with Content-Location and Location
 *   POST /runs/wait              body RunCommand            JSON values, whitespace kept alive until then
 *   GET  /runs/{run_id}/stream   Last-Event-ID, ?stream_mode=&namespace=&cancel_on_disconnect=   SSE
 *   GET  /runs/{run_id}/join     ?cancel_on_disconnect=     JSON values
 *   GET  /stream                 Last-Event-ID, ?lifecycle_only=   SSE of the thread's runs
 *
 * Each carries the address in the `deputy-address` header (JSON `ThreadAddress`); refusals are `ApiRefusal` bodies with
 * their status. `v` is the protocol version: a new gateway meets an old object during a deploy.
 */
import type { CancelAction } from "../domain/run/multitask.ts";
import type { AgentSnapshot } from "../domain/assistant/agent-snapshot.ts";
import type { Role } from "../domain/trust/principal.ts";
import type { CreateBatchBody, Batch } from "./batches.ts";
import type { RpcResult } from "./errors.ts";
import type { CreateRunBody, ListRunsQuery, Run } from "./runs.ts";
import type {
  CreateThreadBody,
  HistoryBody,
  SelectedState,
  StateQuery,
  Thread,
  ThreadInclude,
  ThreadTtlBody,
  UpdateStateBody,
} from "./threads.ts";

import type { CopyChanged, CopyPage, CopyQuery, CopyReceipt, ReceivedCopyPage } from "./thread-copy.ts";
import type { TokenUsage, TokenUsageQuery } from "./token-usage.ts";

export const THREAD_RPC_VERSION = 1;

/** Who asks, and for which thread. The object is named by owner and thread id, so the two always match it. */
export interface ThreadAddress {
  readonly v: 1;
  readonly owner: string;
  readonly thread_id: string;
  readonly role: Role;
  /** The thread of a stateless run: made with the run that `if_not_exists` lets make it, and marked. */
  readonly stateless?: true;
}

export const THREAD_ADDRESS_HEADER = "deputy-address";

/** The `Idempotency-Key` of a create, and what its body is compared by. */
export interface RunIdempotency {
  readonly key: string;
  readonly body_hash: string;
}

/** A validated create; the object mints the run id. `headers` are the client's `x-*` headers, API key excepted. */
export interface RunCommand {
  readonly graph_id: string;
  readonly body: CreateRunBody;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of the assistant, as it is now; absent in rows of an older version. */
  readonly assistant_version?: number;
  /** Of a run of the lead agent: its agent as it is now. */
  readonly agent?: AgentSnapshot;
  readonly idempotency?: RunIdempotency;
}

export interface CancelRunOptions {
  /** Answer after the end. */
  readonly wait: boolean;
  /** `interrupt` where a gateway of an older version says nothing. */
  readonly action?: CancelAction;
  readonly reason?: string | undefined;
}

/** Runs by their ids, or active ones by their status. */
export interface CancelRunsQuery {
  readonly run_ids?: readonly string[] | undefined;
  readonly status: "pending" | "running" | "all";
  readonly action: CancelAction;
  readonly reason?: string | undefined;
}

export interface FileListing {
  readonly path: string;
  readonly entries: readonly { path: string; kind: "file" | "directory"; size: number; modified_at: string }[];
}

export interface ThreadRpc {
  createThread(address: ThreadAddress, body: CreateThreadBody): Promise<RpcResult<Thread>>;
  getThread(address: ThreadAddress, include?: readonly ThreadInclude[]): Promise<RpcResult<Thread>>;
  patchThread(
    address: ThreadAddress,
    metadata: Record<string, unknown>,
    ttl?: ThreadTtlBody,
  ): Promise<RpcResult<Thread>>;
  deleteThread(address: ThreadAddress): Promise<RpcResult<null>>;
  /** Removes all checkpoints but the newest. */
  pruneThread(address: ThreadAddress): Promise<RpcResult<null>>;
  /** One page of the rows that make the thread's state and files; refused while a run is active. */
  copyPage(address: ThreadAddress, query: CopyQuery): Promise<RpcResult<CopyPage | CopyChanged>>;
  /** Stores a page in a thread that is there with the last one. */
  receiveCopy(address: ThreadAddress, received: ReceivedCopyPage): Promise<RpcResult<CopyReceipt>>;
  tokenUsage(address: ThreadAddress, query: TokenUsageQuery): Promise<RpcResult<TokenUsage>>;

  getState(address: ThreadAddress, query: StateQuery): Promise<RpcResult<SelectedState>>;
  updateState(
    address: ThreadAddress,
    body: UpdateStateBody,
  ): Promise<RpcResult<{ checkpoint: Record<string, unknown> }>>;
  /** Merges into the metadata of the newest checkpoint. */
  patchState(address: ThreadAddress, metadata: Record<string, unknown>): Promise<RpcResult<null>>;
  history(address: ThreadAddress, body: HistoryBody): Promise<RpcResult<SelectedState[]>>;

  createRun(address: ThreadAddress, command: RunCommand): Promise<RpcResult<Run>>;
  listRuns(address: ThreadAddress, query: ListRunsQuery): Promise<RpcResult<Run[]>>;
  getRun(address: ThreadAddress, runId: string): Promise<RpcResult<Run>>;
  deleteRun(address: ThreadAddress, runId: string): Promise<RpcResult<null>>;
  cancelRun(address: ThreadAddress, runId: string, options: CancelRunOptions): Promise<RpcResult<null>>;
  /** In bulk; nothing is cancelled when a named run is unknown. */
  cancelRuns(address: ThreadAddress, query: CancelRunsQuery): Promise<RpcResult<null>>;
  /** Whether the run could start on a thread of its own. Stores nothing. */
  checkRun(address: ThreadAddress, command: RunCommand): Promise<RpcResult<null>>;
  cancelTask(address: ThreadAddress, runId: string, taskId: string): Promise<RpcResult<null>>;

  /** Flushes the event outbox, so that a reader of D1 that follows never misses the tail. */
  flushEvents(address: ThreadAddress): Promise<RpcResult<null>>;

  putFile(
    address: ThreadAddress,
    path: string,
    bytes: Uint8Array,
  ): Promise<RpcResult<{ path: string; size: number; created: boolean }>>;
  getFile(
    address: ThreadAddress,
    path: string,
  ): Promise<RpcResult<{ kind: "file"; bytes: Uint8Array } | ({ kind: "directory" } & FileListing)>>;
  deleteFile(address: ThreadAddress, path: string): Promise<RpcResult<null>>;

  createBatch(
    address: ThreadAddress,
    body: CreateBatchBody,
    submissionKey: string | null,
  ): Promise<RpcResult<{ batch: Batch; created: boolean }>>;
  cancelBatch(address: ThreadAddress, batchId: string): Promise<RpcResult<Batch>>;
  /** A consumer gives back its grant at the end of a group; the object grants on. */
  returnGrant(address: ThreadAddress, grant: { grant_id: string; batch_id: string }): Promise<RpcResult<null>>;
  /** The cron found these batches unmoved for long. */
  pokeBatches(address: ThreadAddress, batchIds: readonly string[]): Promise<RpcResult<null>>;
}
