/**
 * An agent that keeps no rule of the protocol: a WebSocket of its own in this process, whose every frame a test chooses.
 * By itself it answers the handshake and gives the session `s`.
 */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

export interface Received {
  readonly id?: number;
  readonly method?: string;
  readonly result?: unknown;
}

export interface HostilePeer {
  readonly socket: WebSocket;
  readonly received: readonly Received[];
  readonly send: (message: object) => void;
}

/** True when it has dealt with the message itself. */
export type Misbehaviour = (message: Received, peer: HostilePeer) => boolean;

export class HostileAgent {
  readonly peers: HostilePeer[] = [];
  readonly #server: WebSocketServer;
  misbehave: Misbehaviour = () => false;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    server.on("connection", (socket) => this.#accept(socket));
  }

  static async start(): Promise<HostileAgent> {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    return new HostileAgent(server);
  }

  get url(): string {
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    for (const { socket } of this.peers) socket.terminate();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }

  #accept(socket: WebSocket): void {
    const received: Received[] = [];
    const peer = { socket, received, send: (message: object) => socket.send(JSON.stringify(message)) };
    this.peers.push(peer);
    socket.on("error", () => {});
    socket.on("message", (data) => {
      const message = JSON.parse((data as Buffer).toString()) as Received;
      received.push(message);
      if (this.misbehave(message, peer)) return;
      if (message.method === "initialize") peer.send(answer(message, { protocolVersion: 1, agentCapabilities: {} }));
      if (message.method === "session/new") peer.send(answer(message, { sessionId: "s" }));
    });
  }
}

export function answer({ id }: Received, result: unknown): object {
  return { jsonrpc: "2.0", id, result };
}

export function update(update: object): object {
  return { jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update } };
}

export function says(text: string): object {
  return update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
}

/** A request to be allowed something, under the id 7. */
export const ASKS_PERMISSION = {
  jsonrpc: "2.0",
  id: 7,
  method: "session/request_permission",
  params: {
    sessionId: "s",
    toolCall: { toolCallId: "call" },
    options: [{ optionId: "yes", name: "yes", kind: "allow_once" }],
  },
};
