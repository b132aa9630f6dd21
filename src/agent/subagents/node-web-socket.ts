/**
 * Opens WebSockets where the global constructor takes request headers, as Node's does. For processes that are no Worker:
 * graphs in LangGraph's own server, `createDeputyAgent` in Node.
 */
import { ConnectionFault, type OpenWebSocket } from "./web-socket.ts";

/** Node's third form of the constructor's second argument; the type of the platform knows protocols only. */
type HeadedWebSocket = new (url: string, options: { headers: Readonly<Record<string, string>> }) => WebSocket;

export const openNodeWebSocket: OpenWebSocket = ({ url, headers }, events, signal) => {
  signal.throwIfAborted();
  const socket = new (WebSocket as unknown as HeadedWebSocket)(url, { headers });
  socket.binaryType = "arraybuffer";
  return new Promise((resolve, reject) => {
    let isOpen = false;
    const onAbort = (): void => {
      reject(signal.reason as Error);
      socket.close();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    socket.addEventListener("open", () => {
      isOpen = true;
      signal.removeEventListener("abort", onAbort);
      resolve({ send: (text) => socket.send(text), close: (code) => socket.close(closeCode(code)) });
    });
    socket.addEventListener("message", ({ data }) => (typeof data === "string" ? events.text(data) : events.binary()));
    // After a failed opening the library tells an error and a close, in either order.
    socket.addEventListener("error", () =>
      reject(new ConnectionFault("the agent cannot be reached, or refuses the connection")),
    );
    socket.addEventListener("close", () => {
      signal.removeEventListener("abort", onAbort);
      if (isOpen) events.closed();
      else reject(new ConnectionFault("the agent cannot be reached, or refuses the connection"));
    });
  });
};

/** A client may name 1000 and its own range only; 1008 is 4008 there. */
function closeCode(code: number): number {
  return code === 1_000 ? code : 3_000 + code;
}
