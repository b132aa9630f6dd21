/**
 * What a thread's object remembers of one of its live batches. The rows of the batch are in D1; this is only which of
 * them were offered, so that an object that died goes on where it was.
 * PERSISTED: `v` and the shape of `OfferWindow`; a change needs a new version and a fixture of the old one.
 */
import type { OfferWindow } from "./offer-window.ts";

export interface StoredWindow {
  readonly v: 1;
  readonly batchId: string;
  /** `submitting` precedes the rows in D1, so a load that died is found; `ended` remains while grants are out. */
  readonly phase: "submitting" | "running" | "ended";
  readonly window: OfferWindow;
}

/** Synchronous: a window is saved in the same turn as the grant that it names. */
export interface BatchWindowStore {
  load(batchId: string): StoredWindow | undefined;
  save(stored: StoredWindow, dueAt: number | undefined): void;
  delete(batchId: string): void;
  /** Batches in phase `running`, by id. */
  running(): readonly string[];
  /** Batches in any phase, by id. */
  all(): readonly string[];
  /** Those due at `now`, the longest due first. */
  due(now: number): readonly string[];
  nextDueAt(): number | undefined;
}
