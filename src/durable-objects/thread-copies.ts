/**
 * Copies of a thread: as their source, pages of its rows under a stamp that tells whether it changed; as their target,
 * storing the pages. Owns the rule that makes a copy whole: pages of one stamp only, in order, and the new thread's row with
 * the last one. Until then there is no thread, and what was stored goes at an alarm or before the next create.
 */
import { err, ok } from "../domain/shared/result.ts";
import { OBJECT_SCHEMA } from "../platform/durable-storage/object-schema.ts";
import {
  clearCopiedRows,
  copiedBytes,
  readCopyPage,
  saveCopiedRows,
} from "../platform/durable-storage/thread-copy-rows.ts";
import type { RpcResult } from "../protocol/errors.ts";
import { LEAD_GRAPH_ID } from "../protocol/identifiers.ts";
import type { CopyChanged, CopyPage, CopyQuery, CopyReceipt, ReceivedCopyPage } from "../protocol/thread-copy.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";
import { STATELESS_MARK } from "../protocol/threads.ts";
import type { AlarmSource } from "./object-alarm.ts";
import type { ThreadContext } from "./thread-context.ts";
import { insertThread } from "./thread-service.ts";

/** A thread of the deployment's bound on files and twice that of state: 64 pages, a third of what a Worker may ask for. */
export const COPY_BYTES_MAX = 256 * 1_048_576;

/** A page takes well under a second; a gateway that is gone sends none. */
export const COPY_IDLE_MS = 300_000;

/** Labels under which the copied tables are written (`thread-context.ts`). */
const COPIED_LABELS = ["checkpoints", "pruning", "workspace", "delegations", "tool_starts"];

export class ThreadCopies implements AlarmSource {
  readonly #context: ThreadContext;
  /** Of this instance: what another one counted says nothing here. */
  #instance: string | undefined;
  /** The copy under way into this object. */
  #receiving: { readonly copyId: string; readonly nextIndex: number; readonly at: number } | undefined;

  constructor(context: ThreadContext) {
    this.#context = context;
  }

  nextDueAt(): number | undefined {
    return this.#receiving === undefined ? undefined : this.#receiving.at + COPY_IDLE_MS;
  }

  /** One page of this thread. The first one of a thread that is too large, or busy, is refused. */
  async page({ cursor, stamp }: CopyQuery): Promise<RpcResult<CopyPage | CopyChanged>> {
    if (stamp === undefined) await this.#context.edits.settled();
    if (this.#context.runs.activeRuns().length > 0) {
      return err({ code: "thread_busy", message: "thread has an active run; a copy of it would be half done" });
    }
    const now = this.#stamp();
    if (stamp !== undefined && stamp !== now) return ok({ kind: "changed" });
    const { threadId } = this.#context;
    const sql = this.#context.meter.labelled("copy");
    if (stamp === undefined && copiedBytes(sql, threadId) > COPY_BYTES_MAX) {
      const message = `a thread of at most ${COPY_BYTES_MAX} bytes can be copied; prune it or delete files first`;
      return err({ code: "too_large", message, details: { limit: COPY_BYTES_MAX } });
    }
    const { tables, next } = readCopyPage(sql, threadId, cursor);
    const page = { kind: "page", v: 1, stamp: now, schema: OBJECT_SCHEMA.length, tables } as const;
    return ok(next === undefined ? { ...page, metadata: this.#metadata() } : { ...page, next });
  }

  /** Stores a page; with the last one the thread is there. `arm` sets the alarm that removes a copy nobody ends. */
  async receive(
    address: ThreadAddress,
    { copy_id: copyId, index, page }: ReceivedCopyPage,
    arm: () => Promise<void>,
  ): Promise<RpcResult<CopyReceipt>> {
    if (page.schema !== OBJECT_SCHEMA.length) return ok({ kind: "changed" });
    if (index > 0 && (this.#receiving?.copyId !== copyId || this.#receiving.nextIndex !== index)) {
      return ok({ kind: "changed" });
    }
    const now = this.#context.now();
    this.#receiving = { copyId, nextIndex: index + 1, at: now };
    await arm();
    const taken = this.#context.storage.transactionSync(() => {
      if (this.#context.threads.load() !== undefined) return false;
      const sql = this.#context.meter.labelled("copy");
      if (index === 0) clearCopiedRows(sql);
      saveCopiedRows(sql, address.thread_id, page.tables);
      if (page.next === undefined) insertThread(this.#context, address, page.metadata ?? {});
      return true;
    });
    if (!taken) {
      this.#receiving = undefined;
      return err({ code: "already_exists", message: `thread '${address.thread_id}' already exists` });
    }
    if (page.next === undefined) this.#receiving = undefined;
    return ok({ kind: "stored" });
  }

  /** A thread is made here of what is stored before its row: until that is there it may be abandoned like a copy. */
  begin(): void {
    this.clearAbandoned();
    this.#receiving = { copyId: this.#context.newId(), nextIndex: 0, at: this.#context.now() };
  }

  /** Before a thread is made here in another way: a copy under way ends, what it left goes. */
  clearAbandoned(): void {
    this.#receiving = undefined;
    if (this.#context.threads.load() === undefined) clearCopiedRows(this.#context.meter.labelled("copy"));
  }

  /** True when nobody is copying into this object any more. */
  isAbandoned(now: number): boolean {
    return this.#receiving === undefined || this.#receiving.at + COPY_IDLE_MS <= now;
  }

  /** Rises with every row written to what a copy takes. */
  #stamp(): string {
    const byLabel = this.#context.meter.byLabel();
    this.#instance ??= this.#context.newId();
    return [this.#instance, ...COPIED_LABELS.map((label) => byLabel[label]?.rowsWritten ?? 0)].join(":");
  }

  /** A copy has no runs to tell which graph its state is of, and is nobody's stateless run. */
  #metadata(): Record<string, unknown> {
    const { [STATELESS_MARK]: _stateless, ...metadata } = this.#context.thread().metadata;
    const used = this.#context.runs.newestGraphId();
    return used === undefined || used === (metadata["graph_id"] ?? LEAD_GRAPH_ID)
      ? metadata
      : { ...metadata, graph_id: used };
  }
}
