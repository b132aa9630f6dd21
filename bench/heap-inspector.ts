/**
 * The heap of the Worker's isolate under `wrangler dev`, over the inspector that wrangler offers. Local workerd enforces
 * no memory limit, and `process.memoryUsage()` is zero in it.
 */
import { Inspector } from "./inspector.ts";

const WAKE_MS = 50;

interface HeapUsage {
  readonly usedSize: number;
  readonly embedderHeapUsedSize: number;
  readonly backingStorageSize: number;
}

export class HeapInspector {
  readonly #inspector: Inspector;
  readonly #wake: () => Promise<unknown>;

  private constructor(inspector: Inspector, wake: () => Promise<unknown>) {
    this.#inspector = inspector;
    this.#wake = wake;
  }

  /**
   * `port` is what the server was started with; `wake` makes the Worker serve something, because an idle isolate does
   * not collect. Throws when no Worker is inspected there.
   */
  static async open(port: number, wake: () => Promise<unknown>): Promise<HeapInspector> {
    const inspector = await Inspector.open(port);
    await inspector.call("HeapProfiler.enable");
    return new HeapInspector(inspector, wake);
  }

  /** Bytes in use, garbage included: objects, what the embedder holds for them, and array buffers. */
  async usedBytes(): Promise<number> {
    const usage = (await this.#inspector.call("Runtime.getHeapUsage")) as HeapUsage;
    return usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
  }

  /** Bytes in use behind a full collection: what an isolate at its limit could not free. */
  async liveBytes(): Promise<number> {
    const collected = this.#inspector.call("HeapProfiler.collectGarbage");
    const settled = Promise.allSettled([collected]);
    const pause = () => new Promise<undefined>((next) => setTimeout(next, WAKE_MS));
    do await this.#wake();
    while ((await Promise.race([settled, pause()])) === undefined);
    await collected;
    return this.usedBytes();
  }

  close(): void {
    this.#inspector.close();
  }
}
