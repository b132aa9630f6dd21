/**
 * The thread's Durable Object: handlers only. It owns ThreadState, runs, the event outbox, frames and admission of one
 * thread (architecture section 2), through collaborators composed in `thread-runtime.ts`.
 * The constructor writes nothing, and a question about a thread that does not exist leaves nothing behind.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../env.ts";
import { err, ok } from "../domain/shared/result.ts";
import { ensureSchema, hasSchema } from "../platform/durable-storage/object-schema.ts";
import type { RunRecord } from "../platform/durable-storage/run-store.ts";
import type { Batch, CreateBatchBody } from "../protocol/batches.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { ListRunsQuery, Run } from "../protocol/runs.ts";
import type {
  CancelRunOptions,
  CancelRunsQuery,
  RunCommand,
  ThreadAddress,
  ThreadRpc,
} from "../protocol/thread-rpc.ts";
import type {
  CreateThreadBody,
  HistoryBody,
  SelectedState,
  StateQuery,
  Thread,
  ThreadInclude,
  ThreadTtlBody,
  UpdateStateBody,
} from "../protocol/threads.ts";
import type { CopyChanged, CopyPage, CopyQuery, CopyReceipt, ReceivedCopyPage } from "../protocol/thread-copy.ts";
import type { TokenUsage, TokenUsageQuery } from "../protocol/token-usage.ts";
import { beingDeleted, noThread } from "./no-thread.ts";
import { type FileContent, ThreadFiles } from "./thread-files.ts";
import { principalOf } from "./principal-of.ts";
import type { ThreadObjectDeps } from "./thread-context.ts";
import { checkFreshRun } from "./check-fresh-run.ts";
import { type RunPlace, ThreadRoutes } from "./thread-routes.ts";
import { ThreadRuntime } from "./thread-runtime.ts";
import { refuseMetadata } from "./thread-service.ts";
import { toRun } from "./run-view.ts";
import { sumTokenUsage } from "./token-usage.ts";

/** `worker.ts` exports a subclass that only hands in the dependencies. */
export class ThreadObjectBase extends DurableObject<Env> implements ThreadRpc {
  readonly #deps: ThreadObjectDeps;
  #runtime: ThreadRuntime | undefined;
  #woken: Promise<void> | undefined;
  #deletion: Promise<RpcResult<null>> | undefined;

  constructor(ctx: DurableObjectState, env: Env, deps: ThreadObjectDeps) {
    super(ctx, env);
    this.#deps = deps;
  }

  override async fetch(request: Request): Promise<Response> {
    const routes = new ThreadRoutes({
      existing: (address) => this.#existing(address),
      forRun: (address, command) => this.#forRun(address, command),
    });
    return routes.answer(request);
  }

  override async alarm(): Promise<void> {
    const runtime = await this.#awake();
    // Of a deletion, which the wake has just tried: finished, or tried again by the next alarm.
    if (runtime === undefined || runtime.deletion.isStored()) return;
    if (await runtime.endAbandonedCopy()) {
      this.#runtime = undefined;
      this.#woken = undefined;
      return;
    }
    if (!runtime.threads.exists()) return;
    // One that fails has stored its wish, and an alarm of its own.
    if (runtime.isOver()) await this.#deleteOnce(runtime).catch((fault: unknown) => runtime.context.onFault(fault));
    else await runtime.onAlarm();
  }

  async createThread(address: ThreadAddress, body: CreateThreadBody): Promise<RpcResult<Thread>> {
    const tooLarge = refuseMetadata(body.metadata);
    if (tooLarge !== undefined) return tooLarge;
    const runtime = await this.#accepting();
    if (runtime === undefined) return err(beingDeleted(address));
    const created = await runtime.threads.create(address, body);
    if (created.ok && body.ttl !== undefined) await runtime.arm();
    return created;
  }

  async getThread(address: ThreadAddress, include?: readonly ThreadInclude[]): Promise<RpcResult<Thread>> {
    return this.#on(address, (runtime) => runtime.threads.get(include));
  }

  async patchThread(
    address: ThreadAddress,
    metadata: Record<string, unknown>,
    ttl?: ThreadTtlBody,
  ): Promise<RpcResult<Thread>> {
    return this.#on(address, async (runtime) => {
      const patched = await runtime.threads.patch(metadata, ttl);
      if (patched.ok && ttl !== undefined) await runtime.arm();
      return patched;
    });
  }

  async deleteThread(address: ThreadAddress): Promise<RpcResult<null>> {
    // One that was begun before is not unknown: whoever asks again hears that it is done, or why it is not.
    const isBegun = hasSchema(this.ctx.storage) && this.#start().deletion.isStored();
    const runtime = await this.#awake();
    if (runtime === undefined) return isBegun ? ok(null) : err(noThread(address));
    if (!isBegun && !runtime.threads.exists()) return err(noThread(address));
    return this.#deleteOnce(runtime);
  }

  async pruneThread(address: ThreadAddress): Promise<RpcResult<null>> {
    return this.#on(address, (runtime) => runtime.pruneToHead());
  }

  async copyPage(address: ThreadAddress, query: CopyQuery): Promise<RpcResult<CopyPage | CopyChanged>> {
    return this.#on(address, (runtime) => runtime.copies.page(query));
  }

  async receiveCopy(address: ThreadAddress, received: ReceivedCopyPage): Promise<RpcResult<CopyReceipt>> {
    ensureSchema(this.ctx.storage);
    const runtime = (await this.#awake()) ?? this.#start();
    const stored = await runtime.copies.receive(address, received, () => runtime.armCopy());
    if (!stored.ok || stored.value.kind === "changed" || received.page.next !== undefined) return stored;
    // What was read before the rows came is not what is there now.
    this.#runtime = undefined;
    this.#woken = undefined;
    const copied = await this.#on(address, (copy) => copy.threads.created());
    return copied.ok ? ok({ kind: "stored", thread: copied.value }) : copied;
  }

  async tokenUsage(address: ThreadAddress, query: TokenUsageQuery): Promise<RpcResult<TokenUsage>> {
    return this.#on(address, async (runtime) => ok(sumTokenUsage(runtime.context, query)));
  }

  async getState(address: ThreadAddress, query: StateQuery): Promise<RpcResult<SelectedState>> {
    return this.#on(address, (runtime) => runtime.state.get(query));
  }

  async updateState(
    address: ThreadAddress,
    body: UpdateStateBody,
  ): Promise<RpcResult<{ checkpoint: Record<string, unknown> }>> {
    return this.#on(address, (runtime) => runtime.state.update(body));
  }

  async patchState(address: ThreadAddress, metadata: Record<string, unknown>): Promise<RpcResult<null>> {
    return this.#on(address, (runtime) => runtime.state.patchMetadata(metadata));
  }

  async history(address: ThreadAddress, body: HistoryBody): Promise<RpcResult<SelectedState[]>> {
    return this.#on(address, (runtime) => runtime.state.history(body));
  }

  async createRun(address: ThreadAddress, command: RunCommand): Promise<RpcResult<Run>> {
    const found = await this.#forRun(address, command);
    if (found === undefined) return err(noThread(address));
    const { runtime, newThread } = found;
    const created = await runtime.runs.create(command, { principal: principalOf(address), newThread });
    // A refused run may have no thread, and then there is nothing to wake for.
    if (created.ok) await runtime.arm();
    return this.#toRun(runtime, created);
  }

  async listRuns(address: ThreadAddress, query: ListRunsQuery): Promise<RpcResult<Run[]>> {
    return this.#on(address, async (runtime) =>
      ok(runtime.runs.list(query).map((run) => toRun(run, runtime.context.threadId))),
    );
  }

  async getRun(address: ThreadAddress, runId: string): Promise<RpcResult<Run>> {
    return this.#on(address, async (runtime) => this.#toRun(runtime, runtime.runs.find(runId)));
  }

  async deleteRun(address: ThreadAddress, runId: string): Promise<RpcResult<null>> {
    return this.#on(address, (runtime) => runtime.runs.delete(runId));
  }

  async cancelRun(address: ThreadAddress, runId: string, options: CancelRunOptions): Promise<RpcResult<null>> {
    return this.#on(address, async (runtime) => {
      const cancelled = await runtime.runs.cancel(runId, options);
      // A run that nobody drives any more is ended by recovery.
      await runtime.recover();
      await runtime.arm();
      return cancelled;
    });
  }

  async cancelRuns(address: ThreadAddress, query: CancelRunsQuery): Promise<RpcResult<null>> {
    return this.#on(address, async (runtime) => {
      const cancelled = await runtime.runs.cancelMany(query);
      await runtime.recover();
      await runtime.arm();
      return cancelled;
    });
  }

  /** Whether a run could start on a thread of its own; nothing is stored, not even for one that could. */
  async checkRun(address: ThreadAddress, command: RunCommand): Promise<RpcResult<null>> {
    return checkFreshRun(this.#deps, address.thread_id, command);
  }

  async cancelTask(address: ThreadAddress, runId: string, taskId: string): Promise<RpcResult<null>> {
    return this.#on(address, async (runtime) => runtime.runs.cancelTask(runId, taskId));
  }

  async flushEvents(address: ThreadAddress): Promise<RpcResult<null>> {
    return this.#on(address, async (runtime) => {
      await runtime.context.flush.flush();
      return ok(null);
    });
  }

  async putFile(
    address: ThreadAddress,
    path: string,
    bytes: Uint8Array,
  ): Promise<RpcResult<{ path: string; size: number; created: boolean }>> {
    return this.#on(address, async (runtime) => new ThreadFiles(runtime.context.workspace).put(path, bytes));
  }

  async getFile(address: ThreadAddress, path: string): Promise<RpcResult<FileContent>> {
    return this.#on(address, async (runtime) => new ThreadFiles(runtime.context.workspace).get(path));
  }

  async deleteFile(address: ThreadAddress, path: string): Promise<RpcResult<null>> {
    return this.#on(address, async (runtime) => new ThreadFiles(runtime.context.workspace).delete(path));
  }

  async createBatch(
    address: ThreadAddress,
    body: CreateBatchBody,
    submissionKey: string | null,
  ): Promise<RpcResult<{ batch: Batch; created: boolean }>> {
    return this.#on(address, (runtime) => runtime.batches.create(body, { submissionKey, role: address.role }));
  }

  async cancelBatch(address: ThreadAddress, batchId: string): Promise<RpcResult<Batch>> {
    return this.#on(address, (runtime) => runtime.batches.cancel(batchId));
  }

  async returnGrant(address: ThreadAddress, grant: { grant_id: string; batch_id: string }): Promise<RpcResult<null>> {
    return this.#on(address, (runtime) => runtime.batches.returnGrant(grant));
  }

  async pokeBatches(address: ThreadAddress, batchIds: readonly string[]): Promise<RpcResult<null>> {
    return this.#on(address, (runtime) => runtime.batches.poke(batchIds));
  }

  /** Whoever asks meanwhile hears of the same end. */
  #deleteOnce(runtime: ThreadRuntime): Promise<RpcResult<null>> {
    this.#deletion ??= this.#delete(runtime).finally(() => {
      this.#deletion = undefined;
    });
    return this.#deletion;
  }

  async #delete(runtime: ThreadRuntime): Promise<RpcResult<null>> {
    try {
      await runtime.deletion.run();
      return ok(null);
    } finally {
      this.#forget(runtime);
    }
  }

  /** The next event composes anew: an empty object, or one that goes on with its deletion. */
  #forget(runtime: ThreadRuntime): void {
    if (this.#runtime !== runtime) return;
    this.#runtime = undefined;
    this.#woken = undefined;
  }

  /** Answers with the thread's runtime, or that there is no such thread. */
  async #on<T>(address: ThreadAddress, act: (runtime: ThreadRuntime) => Promise<RpcResult<T>>): Promise<RpcResult<T>> {
    const runtime = await this.#existing(address);
    return runtime === undefined ? err(noThread(address)) : act(runtime);
  }

  async #existing(_address: ThreadAddress): Promise<ThreadRuntime | undefined> {
    const runtime = await this.#awake();
    return runtime?.threads.exists() === true ? runtime : undefined;
  }

  /** The runtime of a thread that may not exist yet; storage gets its schema here. `undefined` while it is being deleted. */
  async #accepting(): Promise<ThreadRuntime | undefined> {
    const isNew = !hasSchema(this.ctx.storage);
    ensureSchema(this.ctx.storage);
    const runtime = await this.#awake();
    if (runtime?.deletion.isStored() === true) return undefined;
    if (!isNew) (runtime ?? this.#start()).copies.clearAbandoned();
    return runtime ?? this.#start();
  }

  /** For a run: the thread must exist, or `if_not_exists` makes it. */
  async #forRun(address: ThreadAddress, command: RunCommand): Promise<RunPlace | undefined> {
    const existing = await this.#existing(address);
    if (existing !== undefined) return { runtime: existing };
    if (command.body.if_not_exists !== "create") return undefined;
    const runtime = await this.#accepting();
    if (runtime === undefined) throw new Error(beingDeleted(address).message);
    runtime.context.name(address.thread_id);
    return { runtime, newThread: address };
  }

  /** `undefined` while the object has no schema: then there is nothing to wake. */
  async #awake(): Promise<ThreadRuntime | undefined> {
    // Who comes during a deletion finds it done, or the thread as it was when it failed.
    await this.#deletion?.catch(() => undefined);
    if (this.#runtime === undefined && !hasSchema(this.ctx.storage)) return undefined;
    const runtime = this.#start();
    this.#woken ??= runtime.wake();
    try {
      await this.#woken;
    } catch (fault) {
      // The next event wakes it again instead of meeting the same failure.
      this.#woken = undefined;
      throw fault;
    }
    const { deletion } = runtime;
    if (deletion.isDone || deletion.isStored()) this.#forget(runtime);
    return deletion.isDone ? undefined : runtime;
  }

  #start(): ThreadRuntime {
    if (this.#runtime === undefined) {
      ensureSchema(this.ctx.storage);
      this.#runtime = new ThreadRuntime(this.ctx.storage, this.#deps);
    }
    // Each event sees storage as it is.
    this.#runtime.context.memory.forget();
    return this.#runtime;
  }

  #toRun(runtime: ThreadRuntime, result: RpcResult<RunRecord>): RpcResult<Run> {
    return result.ok ? ok(toRun(result.value, runtime.context.threadId)) : result;
  }
}
