/**
 * Opens WebSockets in a Worker: by `fetch` with an upgrade, the one way there to send headers with it.
 * Owns the translation of the answer. The upgrade waits for headers like any other request, so it takes its turn at the
 * gate of its thread's model requests (architecture section 6).
 */
import { ConnectionFault, type OpenWebSocket } from "../agent/subagents/web-socket.ts";
import type { HeaderGates } from "../agent/models/header-gate.ts";

export function fetchWebSocket(gates: HeaderGates): OpenWebSocket {
  // Called without a receiver: workerd refuses its global `fetch` as a method of another object.
  const send: typeof fetch = (input, init) => fetch(input, init);
  return async ({ url, headers, scope }, events, signal) => {
    const connection = new AbortController();
    const response = await upgrade(gates.wrap(send, scope), { url, headers, signal, connection });
    const socket = response.webSocket;
    if (socket === null) {
      await response.body?.cancel();
      throw new ConnectionFault(`the agent refuses the connection with status ${response.status}`);
    }
    socket.addEventListener("message", ({ data }) => (typeof data === "string" ? events.text(data) : events.binary()));
    let isClosed = false;
    const onClosed = (): void => {
      if (isClosed) return;
      isClosed = true;
      events.closed();
    };
    socket.addEventListener("close", onClosed);
    socket.addEventListener("error", onClosed);
    socket.accept();
    return {
      send: (text) => socket.send(text),
      close: (code) => {
        if (socket.readyState === WebSocket.OPEN) socket.close(code);
      },
      // workerd keeps a socket whose peer does not answer the handshake, and goes on reading from it.
      drop: () => connection.abort(),
    };
  };
}

interface Upgrade {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Its abort ends the connection, open or opening. */
  readonly connection: AbortController;
}

/** The signal is the opening's alone: workerd would drop the open connection at it, before the agent is told to stop. */
async function upgrade(send: typeof fetch, { url, headers, signal, connection }: Upgrade): Promise<Response> {
  signal.throwIfAborted();
  const onAbort = (): void => connection.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // `fetch` knows no `ws:`; the upgrade is what makes it one. A redirect would carry the headers elsewhere.
    const address = url.replace(/^ws/, "http");
    const init = {
      headers: { ...headers, Upgrade: "websocket" },
      redirect: "manual",
      signal: connection.signal,
    } as const;
    return await send(address, init);
  } catch (error) {
    signal.throwIfAborted();
    throw new ConnectionFault("the agent cannot be reached", { cause: error });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
