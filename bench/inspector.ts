/** The inspector that `wrangler dev` offers of the Worker's isolate: calls and events of the DevTools protocol. */
import { WebSocket } from "ws";

/** How wrangler's inspector names the Worker among its targets. */
const TARGET_TITLE = "Cloudflare Worker";
const PROBE_TIMEOUT_MS = 5_000;
/** A busy isolate answers between two of its own tasks. */
const ANSWER_TIMEOUT_MS = 120_000;
/** Wrangler's proxy serves clients of this machine that say where they come from. */
const HEADERS = { Origin: "http://127.0.0.1", "User-Agent": "deputy-bench" };

interface Target {
  readonly title: string;
  readonly webSocketDebuggerUrl: string;
}

export class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: unknown) => void>();
  readonly #events = new Map<string, (params: unknown) => void>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => {
      const message = JSON.parse((data as Buffer).toString()) as {
        id?: number;
        result?: unknown;
        method?: string;
        params?: unknown;
      };
      if (message.method !== undefined) this.#events.get(message.method)?.(message.params);
      if (message.id === undefined) return;
      this.#waiting.get(message.id)?.(message.result);
      this.#waiting.delete(message.id);
    });
  }

  /** `port` is what the server was started with. Throws when no Worker is inspected there. */
  static async open(port: number): Promise<Inspector> {
    const socket = new WebSocket(await targetUrl(port), { headers: HEADERS });
    await new Promise((opened, failed) => socket.once("open", opened).once("error", failed));
    return new Inspector(socket);
  }

  on(method: string, listener: (params: unknown) => void): void {
    this.#events.set(method, listener);
  }

  call(method: string, params: object = {}): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = (this.#lastId += 1);
    const timer = setTimeout(() => reject(new Error(`the inspector did not answer ${method}`)), ANSWER_TIMEOUT_MS);
    this.#waiting.set(id, (result) => {
      clearTimeout(timer);
      resolve(result);
    });
    this.#socket.send(JSON.stringify({ id, method, params }));
    return promise;
  }

  close(): void {
    this.#socket.close();
  }
}

async function targetUrl(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/json`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
  const targets: readonly Target[] = await response.json<Target[]>();
  const url = targets.find(({ title }) => title === TARGET_TITLE)?.webSocketDebuggerUrl;
  if (url === undefined) throw new Error(`no Worker is inspected on port ${port}: ${JSON.stringify(targets)}`);
  return url;
}
