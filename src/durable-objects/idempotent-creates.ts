/**
 * Creates that carry an `Idempotency-Key`: the same key and body are the same run, whoever sent them first and whatever
 * became of it since. Owns the order of creates of one key and how long a key counts; the row is written by acceptance,
 * in its transaction, so a crash leaves the run with its key or neither.
 */
import { err, ok } from "../domain/shared/result.ts";
import type { IdempotencyStore } from "../platform/durable-storage/idempotency-store.ts";
import type { RunRecord, RunStore } from "../platform/durable-storage/run-store.ts";
import type { RpcResult } from "../protocol/errors.ts";
import type { RunCommand, RunIdempotency } from "../protocol/thread-rpc.ts";

/** A client that has not learned in a day what became of its create looks the run up. */
export const IDEMPOTENCY_TTL_MS = 86_400_000;

/** Keys of one thread that count at once: one create in nine seconds, all day. */
export const IDEMPOTENCY_KEYS_MAX = 10_000;

export interface TakenRun {
  readonly run: RunRecord;
  /** The key stood for it already: it is started, or over. */
  readonly isRepeat: boolean;
}

export interface IdempotencyPorts {
  readonly keys: IdempotencyStore;
  readonly runs: RunStore;
  readonly now: () => number;
}

export class IdempotentCreates {
  readonly #ports: IdempotencyPorts;
  readonly #byKey = new Map<string, Promise<unknown>>();

  constructor(ports: IdempotencyPorts) {
    this.#ports = ports;
  }

  /** Creates of one key go one after the other: the second finds what the first was told. */
  async take(command: RunCommand, create: () => Promise<RpcResult<RunRecord>>): Promise<RpcResult<TakenRun>> {
    const { idempotency } = command;
    if (idempotency === undefined) return toTaken(await create());
    const { key } = idempotency;
    const earlier = this.#byKey.get(key) ?? Promise.resolve();
    const taken = earlier.catch(() => undefined).then(() => this.#take(idempotency, create));
    this.#byKey.set(key, taken);
    try {
      return await taken;
    } finally {
      if (this.#byKey.get(key) === taken) this.#byKey.delete(key);
    }
  }

  /** Call in the transaction that accepts the run. The key of a run's own thread counts as long as that thread. */
  note({ idempotency }: RunCommand, runId: string, isOwnThread: boolean): void {
    if (idempotency === undefined) return;
    const { keys, now } = this.#ports;
    // Those that are over: one of them may be this very key.
    keys.expire(now());
    const expiresAt = isOwnThread ? null : now() + IDEMPOTENCY_TTL_MS;
    keys.add({ key: idempotency.key, bodyHash: idempotency.body_hash, runId, expiresAt });
  }

  async #take(idempotency: RunIdempotency, create: () => Promise<RpcResult<RunRecord>>): Promise<RpcResult<TakenRun>> {
    return this.#repeat(idempotency) ?? this.#full() ?? toTaken(await create());
  }

  #repeat({ key, body_hash: bodyHash }: RunIdempotency): RpcResult<TakenRun> | undefined {
    const known = this.#ports.keys.find(key);
    if (known === undefined || (known.expiresAt !== null && known.expiresAt <= this.#ports.now())) return undefined;
    if (known.bodyHash !== bodyHash) {
      return conflict("this Idempotency-Key was used for another body", known.runId);
    }
    const run = this.#ports.runs.find(known.runId);
    // It ran once, and somebody removed it: to run it again would be a second execution.
    if (run === undefined) return conflict("the run of this Idempotency-Key was removed", known.runId);
    return ok({ run, isRepeat: true });
  }

  #full(): RpcResult<never> | undefined {
    const { keys, now } = this.#ports;
    if (keys.count() < IDEMPOTENCY_KEYS_MAX) return undefined;
    keys.expire(now());
    if (keys.count() < IDEMPOTENCY_KEYS_MAX) return undefined;
    const message = `Idempotency-Key: ${IDEMPOTENCY_KEYS_MAX} keys of this thread count already`;
    return err({ code: "rate_limited", message, details: { limit: IDEMPOTENCY_KEYS_MAX } });
  }
}

function conflict(message: string, runId: string): RpcResult<never> {
  return err({ code: "idempotency_conflict", message, details: { run_id: runId } });
}

function toTaken(created: RpcResult<RunRecord>): RpcResult<TakenRun> {
  return created.ok ? ok({ run: created.value, isRepeat: false }) : created;
}
