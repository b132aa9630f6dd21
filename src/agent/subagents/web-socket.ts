/**
 * The port of outgoing WebSockets with request headers: each platform opens them in its own way.
 * Contract of an adapter: `open` resolves once the peer has accepted, and no event comes before that; it rejects with a
 * `ConnectionFault`, or with the signal's reason, and then no socket is left; it follows no redirect, because the headers
 * are meant for one address; `closed` comes once and last, also after a `close` of ours that the peer answers.
 */

export interface WebSocketTarget {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Whose connections are counted together. */
  readonly scope: string;
}

export interface WebSocketEvents {
  text(data: string): void;
  binary(): void;
  closed(): void;
}

export interface OpenedWebSocket {
  /** Throws when it is closed. */
  send(text: string): void;
  /** Starts the closing handshake; harmless when repeated. */
  close(code: number): void;
  /** Ends the connection without a handshake, where the platform does not do so by itself; harmless when it has ended. */
  drop?(): void;
}

export type OpenWebSocket = (
  target: WebSocketTarget,
  events: WebSocketEvents,
  signal: AbortSignal,
) => Promise<OpenedWebSocket>;

/** Its message may be shown to everyone: it holds no address, no header and nothing that the peer sent. */
export class ConnectionFault extends Error {
  override readonly name = "ConnectionFault";
}
