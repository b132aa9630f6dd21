/**
 * The heap of the Worker's isolate under `wrangler dev`, over the inspector that wrangler offers. Local workerd enforces
 * no memory limit, and `process.memoryUsage()` is zero in it.
 */
import { WebSocket } from "ws";

/** How wrangler's inspector names the Worker among its targets. */
const TARGET_TITLE = "Cloudflare Worker";
const PROBE_TIMEOUT_MS = 5_000;
/** A busy isolate answers between two of its own tasks. */
const ANSWER_TIMEOUT_MS = 120_000;
const WAKE_MS = 50;
/** Wrangler's proxy serves clients of this machine that say where they come from. */
const HEADERS = { Origin: "http://127.0.0.1", "User-Agent": "deputy-bench" };

interface Target {
  readonly title: string;
  readonly webSocketDebuggerUrl: string;
}

interface HeapUsage {
  readonly usedSize: number;
  readonly embedderHeapUsedSize: number;
  readonly backingStorageSize: number;
}

export class HeapInspector {
  readonly #socket: WebSocket;
  readonly #wake: () => Promise<unknown>;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket, wake: () => Promise<unknown>) {
    this.#socket = socket;
    this.#wake = wake;
    socket.on("message", (data) => {
      const { id, result } = JSON.parse((data as Buffer).toString()) as { id?: number; result?: unknown };
      if (id === undefined) return;
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  /**
   * `port` is what the server was started with; `wake` makes the Worker serve something, because an idle isolate does
   * not collect. Throws when no Worker is inspected there.
   */
  static async open(port: number, wake: () => Promise<unknown>): Promise<HeapInspector> {
    const socket = new WebSocket(await targetUrl(port), { headers: HEADERS });
    await new Promise((opened, failed) => socket.once("open", opened).once("error", failed));
    const inspector = new HeapInspector(socket, wake);
    await inspector.#call("HeapProfiler.enable");
    return inspector;
  }

  /** Bytes in use, garbage included: objects, what the embedder holds for them, and array buffers. */
  async usedBytes(): Promise<number> {
    const usage = (await this.#call("Runtime.getHeapUsage")) as HeapUsage;
    return usage.usedSize + usage.embedderHeapUsedSize + usage.backingStorageSize;
  }

  /** Bytes in use behind a full collection: what an isolate at its limit could not free. */
  async liveBytes(): Promise<number> {
    const collected = this.#call("HeapProfiler.collectGarbage");
    const settled = Promise.allSettled([collected]);
    const pause = () => new Promise<undefined>((next) => setTimeout(next, WAKE_MS));
    do await this.#wake();
    while ((await Promise.race([settled, pause()])) === undefined);
    await collected;
    return this.usedBytes();
  }

  close(): void {
    this.#socket.close();
  }

  #call(method: string): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = (this.#lastId += 1);
    const timer = setTimeout(() => reject(new Error(`the inspector did not answer ${method}`)), ANSWER_TIMEOUT_MS);
    this.#waiting.set(id, (result) => {
      clearTimeout(timer);
      resolve(result);
    });
    this.#socket.send(JSON.stringify({ id, method }));
    return promise;
  }
}

async function targetUrl(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/json`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
  const targets: readonly Target[] = await response.json<Target[]>();
  const url = targets.find(({ title }) => title === TARGET_TITLE)?.webSocketDebuggerUrl;
  if (url === undefined) throw new Error(`no Worker is inspected on port ${port}: ${JSON.stringify(targets)}`);
  return url;
}
