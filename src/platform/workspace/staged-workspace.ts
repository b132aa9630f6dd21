/**
 * Staged writes of tool calls over a thread's workspace: a call's files commit with its result or not at all.
 *
 * Owns one session per tool-call id and when it ends. Does not own the transaction: `commit` runs inside the saver's.
 * Invariants: what a call stages is seen by that call alone until its commit; a crash before the commit leaves
 * nothing (staged bytes are memory); a commit whose transaction was rolled back can be repeated; a commit that is
 * repeated after it became durable does nothing.
 */
import type { WorkspaceOverlay } from "../../agent/tools/workspace-overlay.ts";
import type { WorkspaceSession, WorkspaceStaging } from "../../agent/tools/workspace.ts";
import type { DurableWorkspace } from "./durable-workspace.ts";

interface StagedCall {
  readonly overlay: WorkspaceOverlay;
  /** The commit that wrote the changes; undefined while none did, or after a rollback took it back. */
  appliedVersion: number | undefined;
}

export class StagedWorkspace implements WorkspaceStaging {
  readonly #workspace: DurableWorkspace;
  readonly #calls = new Map<string, StagedCall>();
  #settling = false;

  constructor(workspace: DurableWorkspace) {
    this.#workspace = workspace;
  }

  /** A call that runs again starts over: what its earlier execution staged is dropped. */
  open(toolCallId: string): WorkspaceSession {
    this.discard(toolCallId);
    const overlay = this.#workspace.sessions.open();
    this.#calls.set(toolCallId, { overlay, appliedVersion: undefined });
    return overlay;
  }

  commit(toolCallId: string): void {
    this.#takeBackRolledBack();
    const call = this.#calls.get(toolCallId);
    if (call === undefined || call.appliedVersion !== undefined) return;
    call.overlay.close();
    const { changed, version } = this.#workspace.commit(call.overlay.changes);
    if (!changed) return this.discard(toolCallId);
    this.#workspace.sessions.close(call.overlay);
    call.appliedVersion = version;
    this.#settleSoon();
  }

  discard(toolCallId: string): void {
    const call = this.#calls.get(toolCallId);
    if (call === undefined) return;
    this.#workspace.sessions.close(call.overlay);
    this.#calls.delete(toolCallId);
  }

  /**
   * The run is over: what its calls staged and did not commit is gone. A call that was cut off would otherwise hold its
   * paths against every later call.
   */
  discardOpen(): void {
    for (const [id, call] of this.#calls) if (call.appliedVersion === undefined) this.discard(id);
  }

  /** Storage is behind a call's commit only when that transaction was rolled back. */
  #takeBackRolledBack(): void {
    const applied = [...this.#calls.values()].filter((call) => call.appliedVersion !== undefined);
    if (applied.length === 0) return;
    const committed = this.#workspace.committedVersion();
    for (const call of applied) {
      if (call.appliedVersion! <= committed) continue;
      call.appliedVersion = undefined;
      this.#workspace.sessions.restore(call.overlay);
    }
  }

  /** The transaction is synchronous, so it has ended, one way or the other, when a microtask runs. */
  #settleSoon(): void {
    if (this.#settling) return;
    this.#settling = true;
    queueMicrotask(() => {
      this.#settling = false;
      this.#settle();
    });
  }

  #settle(): void {
    try {
      this.#takeBackRolledBack();
    } catch {
      // The object was reset: its storage answers no more, and this memory goes with it.
      return;
    }
    for (const [id, call] of this.#calls) if (call.appliedVersion !== undefined) this.discard(id);
  }
}
