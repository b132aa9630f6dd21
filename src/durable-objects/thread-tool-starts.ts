/**
 * The port of `once` and `ask` calls over the object's storage. Owns the idempotency key: owner, thread and call, so that
 * no other call of the deployment has it, hashed, so that it tells whoever receives it nothing. Not the run: an `ask` call
 * goes on in the run that brings the answer, and is the same call there.
 */
import { sha256 } from "../agent/sha256.ts";
import type { KnownStarts, StartingCall, ToolStarts } from "../agent/tools/tool-starts.ts";
import type { ToolStartStore } from "../platform/durable-storage/tool-start-store.ts";

export interface ThreadToolStartsPorts {
  readonly storage: DurableObjectStorage;
  readonly store: ToolStartStore;
  readonly thread: () => { readonly owner: string; readonly threadId: string };
}

export class ThreadToolStarts implements ToolStarts {
  readonly #ports: ThreadToolStartsPorts;

  constructor(ports: ThreadToolStartsPorts) {
    this.#ports = ports;
  }

  look({ toolCallId }: StartingCall): KnownStarts {
    const { owner, threadId } = this.#ports.thread();
    return {
      earlier: this.#ports.store.executions(toolCallId),
      idempotencyKey: sha256(JSON.stringify([owner, threadId, toolCallId])),
    };
  }

  /** Waits until the row is on disk: the tool's own requests must not overtake it. */
  async note({ toolCallId, checkpointNs }: StartingCall): Promise<void> {
    const { storage, store } = this.#ports;
    store.add(toolCallId, checkpointNs);
    await storage.sync();
  }
}
