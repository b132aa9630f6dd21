/**
 * Keeps one lease alive while its items run: a heartbeat every third of its life (one row).
 * Owns the lease's clock. Aborts `signal` with why: `cancelled` when a heartbeat tells so (B4), `lost` when the lease was
 * taken away or could not be renewed before it ran out (B1: nothing runs past its lease, whatever D1 answers).
 */
import type { Timers } from "../subagents/timers.ts";
import type { BatchWorkRows, Heartbeat } from "../../domain/batch/batch-repository.ts";
import type { LeaseRef } from "../../domain/batch/batch.ts";

export type LeaseEnd = "cancelled" | "lost";

export interface LeaseKeeperPorts {
  readonly rows: Pick<BatchWorkRows, "systemHeartbeat">;
  readonly lease: LeaseRef;
  readonly expiresAt: number;
  readonly leaseMs: number;
  readonly timers: Timers;
  readonly now: () => number;
  readonly onFault: (fault: unknown) => void;
}

export class LeaseKeeper {
  readonly #ports: LeaseKeeperPorts;
  readonly #abort = new AbortController();
  #beatTimer: unknown;
  /** Fires when the lease runs out, also while a heartbeat hangs. */
  #deadline: unknown;
  #isStopped = false;

  constructor(ports: LeaseKeeperPorts) {
    this.#ports = ports;
    this.#holdUntil(ports.expiresAt);
    this.#schedule();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  stop(): void {
    this.#isStopped = true;
    this.#ports.timers.clear(this.#beatTimer);
    this.#ports.timers.clear(this.#deadline);
  }

  #schedule(): void {
    this.#beatTimer = this.#ports.timers.set(this.#ports.leaseMs / 3, () => void this.#beat());
  }

  #holdUntil(expiresAt: number): void {
    const { timers, now } = this.#ports;
    timers.clear(this.#deadline);
    this.#deadline = timers.set(Math.max(0, expiresAt - now()), () => {
      this.#end("lost");
    });
  }

  async #beat(): Promise<void> {
    const { rows, lease, leaseMs, now, onFault } = this.#ports;
    const expiresAt = now() + leaseMs;
    let beat: Heartbeat | undefined;
    try {
      beat = await rows.systemHeartbeat(lease, expiresAt, now());
    } catch (fault) {
      onFault(fault);
    }
    if (this.#isStopped) return;
    if (beat?.kind === "cancelled" || beat?.kind === "lost") return this.#end(beat.kind);
    if (beat?.kind === "held") this.#holdUntil(expiresAt);
    this.#schedule();
  }

  #end(why: LeaseEnd): void {
    this.stop();
    this.#abort.abort(why);
  }
}
