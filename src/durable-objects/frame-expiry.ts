/**
 * Removes the frames of runs that ended longer ago than `frames_ttl_seconds`. Which runs still have frames is read from
 * the frames themselves, so that a run's end costs no row for its expiry. Runs of a thread end in the order of their
 * ids, so only the oldest with frames is ever looked at.
 */
import { isTerminal } from "../domain/run/run-status.ts";
import type { FrameLog } from "../platform/durable-storage/frame-log.ts";
import type { RunStore } from "../platform/durable-storage/run-store.ts";
import type { AlarmSource } from "./object-alarm.ts";

/** Expiry may come a little late: one wake then expires several runs. */
const SLACK_MS = 60_000;

export class FrameExpiry implements AlarmSource {
  readonly #frames: FrameLog;
  readonly #runs: RunStore;
  readonly #ttlMs: number;

  constructor(frames: FrameLog, runs: RunStore, ttlMs: number) {
    this.#frames = frames;
    this.#runs = runs;
    this.#ttlMs = ttlMs;
  }

  nextDueAt(): number | undefined {
    const oldest = this.#frames.oldestRun();
    const at = oldest === undefined ? undefined : this.#expiresAt(oldest);
    return at === undefined ? undefined : at + SLACK_MS;
  }

  expire(now: number): void {
    let oldest = this.#frames.oldestRun();
    while (oldest !== undefined) {
      const at = this.#expiresAt(oldest);
      if (at === undefined || at > now) return;
      this.#frames.expire(oldest);
      oldest = this.#frames.oldestRun();
    }
  }

  /** `undefined` while the run is active; a run that is gone expires at once. */
  #expiresAt(runId: string): number | undefined {
    const run = this.#runs.find(runId);
    if (run === undefined) return 0;
    return isTerminal(run.status) ? run.updatedAt + this.#ttlMs : undefined;
  }
}
