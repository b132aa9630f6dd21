/**
 * The thread itself: create, read, edit. Owns the thread row; status and times are derived from the runs.
 */
import { decideThreadStatus } from "../domain/run/run-status.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { ThreadRecord } from "../platform/durable-storage/thread-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";
import type { CreateThreadBody, Thread, ThreadInclude, ThreadStateBody, ThreadTtlBody } from "../protocol/threads.ts";
import type { StateService } from "./state-service.ts";
import type { ThreadContext } from "./thread-context.ts";
import { toTtl, toTtlView } from "./thread-expiry.ts";
import type { ThreadCopies } from "./thread-copies.ts";
import { hasHistory, writeHistory } from "./thread-history.ts";
import { threadMetadata } from "./thread-metadata.ts";

/** A thread row is one D1 row and one object row; metadata is what makes it grow. */
const METADATA_CHARS_MAX = 64_000;

/** What stands for a thread until it has a row. */
interface ThreadMaking {
  readonly copies: Pick<ThreadCopies, "begin" | "clearAbandoned">;
  /** Sets the alarm that removes what nobody ended. */
  readonly arm: () => Promise<void>;
}

export class ThreadService {
  readonly #context: ThreadContext;
  readonly #state: StateService;
  readonly #making: ThreadMaking;

  constructor(context: ThreadContext, state: StateService, making: ThreadMaking) {
    this.#context = context;
    this.#state = state;
    this.#making = making;
  }

  /** A thread that is being deleted is gone for whoever asks. */
  exists(): boolean {
    return this.#context.threads.load() !== undefined && !this.#context.threads.isDeleting();
  }

  async create(address: ThreadAddress, body: CreateThreadBody): Promise<RpcResult<Thread>> {
    // One of the same id may be about to get its history; between the look and the row nothing may come.
    while (this.#context.edits.active) await this.#context.edits.settled();
    if (this.exists()) {
      if (body.if_exists === "do_nothing") return this.get();
      return err({ code: "already_exists", message: `thread '${address.thread_id}' already exists` });
    }
    if (hasHistory(body)) {
      const written = await this.#context.edits.run(() => this.#createWithHistory(address, body));
      return written.ok ? this.created() : written;
    }
    this.#insert(address, body);
    return this.created();
  }

  /** All of the history and then the thread, or nothing of both. */
  async #createWithHistory(address: ThreadAddress, body: CreateThreadBody): Promise<RpcResult<null>> {
    const { copies, arm } = this.#making;
    this.#context.name(address.thread_id);
    copies.begin();
    await arm();
    let written: RpcResult<null> | undefined;
    try {
      written = await writeHistory(this.#context, this.#state, body);
      if (written.ok) this.#insert(address, body);
      return written;
    } finally {
      if (written?.ok !== true) copies.clearAbandoned();
    }
  }

  #insert(address: ThreadAddress, body: CreateThreadBody): void {
    this.#context.storage.transactionSync(() => {
      insertThread(this.#context, address, body.metadata);
      if (body.ttl !== undefined) this.#context.threads.saveTtl(toTtl(body.ttl, this.#context.now()));
    });
  }

  /** The thread as it was just stored; lists have it as well, unless D1 is out of reach. */
  async created(): Promise<RpcResult<Thread>> {
    await this.#context.flush.tryFlush();
    return this.get();
  }

  async get(include: readonly ThreadInclude[] = []): Promise<RpcResult<Thread>> {
    const thread = this.#context.thread();
    const state = await this.#state.current();
    if (!state.ok) return state;
    const ttl = include.includes("ttl") ? { ttl: toTtlView(this.#context.threads.ttl()) } : {};
    return ok({ ...this.#toThread(thread, state.value), ...ttl });
  }

  /** Merges; a key set to null is kept as null. A `ttl` counts from now. */
  async patch(metadata: Record<string, unknown>, ttl?: ThreadTtlBody): Promise<RpcResult<Thread>> {
    const thread = this.#context.thread();
    const merged = { ...thread.metadata, ...metadata };
    const tooLarge = refuseMetadata(merged);
    if (tooLarge !== undefined) return tooLarge;
    const now = this.#context.now();
    this.#context.storage.transactionSync(() => {
      this.#context.threads.save({ ...this.#context.thread(), metadata: merged, updatedAt: now });
      if (ttl !== undefined) this.#context.threads.saveTtl(toTtl(ttl, now));
      this.#context.outbox.append([], { now, threadChanged: true });
    });
    await this.#context.flush.tryFlush();
    return this.get();
  }

  #toThread(thread: ThreadRecord, state: ThreadStateBody): Thread {
    const newest = this.#context.runs.newest();
    const asked = state.tasks.filter((task) => task.interrupts.length > 0);
    return {
      thread_id: thread.threadId,
      created_at: new Date(thread.createdAt).toISOString(),
      updated_at: new Date(Math.max(thread.updatedAt, newest?.updatedAt ?? 0)).toISOString(),
      ...(state.created_at === null ? {} : { state_updated_at: state.created_at }),
      metadata: threadMetadata(thread, newest),
      status: decideThreadStatus(newest && { status: newest.status, waitsForAnswer: newest.interrupts !== null }),
      values: state.values,
      interrupts: Object.fromEntries(asked.map((task) => [task.id, task.interrupts])),
    };
  }
}

/** Two rows: the thread, and the note that D1 has to hear of it. Call inside a transaction. */
export function insertThread(
  context: ThreadContext,
  { owner, thread_id: threadId }: ThreadAddress,
  metadata: Record<string, unknown>,
): void {
  const now = context.now();
  context.threads.save({ owner, threadId, metadata, createdAt: now, updatedAt: now, epoch: 0 });
  context.outbox.append([], { now, threadChanged: true });
}

/** Asked before a thread is made, so that a refused create leaves not even a schema. */
export function refuseMetadata(metadata: Record<string, unknown>): RpcResult<never> | undefined {
  if (JSON.stringify(metadata).length <= METADATA_CHARS_MAX) return undefined;
  return err({
    code: "too_large",
    message: `metadata: at most ${METADATA_CHARS_MAX} characters of JSON`,
    details: { path: ["metadata"], limit: METADATA_CHARS_MAX },
  });
}
