/**
 * One WebSocket as the stream of messages that the protocol's library reads and writes.
 * Owns the bounds of what comes in and of what is answered, and the strictness about it. Invariants: one message a text
 * frame; what is no JSON object, is too long or comes too fast ends the connection with one fault that names none of it; an
 * answer nobody asked for is dropped, and so is what is told after the answer to the prompt; nothing is ever reconnected.
 */
import { type AnyMessage, methods, type Stream } from "@agentclientprotocol/sdk";
import { hasMoreValues } from "../../../domain/shared/json-values.ts";
import { ConnectionFault, type OpenedWebSocket, type WebSocketEvents } from "../web-socket.ts";
import {
  ACP_FRAME_CHARS_MAX,
  ACP_FRAME_VALUES_MAX,
  ACP_PENDING_FRAMES_MAX,
  ACP_RECEIVED_CHARS_MAX,
  ACP_REPLIED_CHARS_MAX,
} from "./acp-limits.ts";

/** Codes of the closing handshake (RFC 6455, 7.4.1). */
const NORMAL_CLOSURE = 1_000;
const UNACCEPTABLE = 1_008;

export class AcpLink implements WebSocketEvents {
  readonly stream: Stream;
  /** The socket is closed, or was never opened and is not wanted any more. */
  readonly gone: Promise<void>;
  readonly #gone = Promise.withResolvers<void>();
  /** Our requests without an answer, by id; true for the prompt. */
  readonly #asked = new Map<unknown, boolean>();
  #incoming!: ReadableStreamDefaultController<AnyMessage>;
  #socket: OpenedWebSocket | undefined;
  #received = 0;
  #replied = 0;
  #isAnswered = false;
  #isClosed = false;
  #fault: ConnectionFault | undefined;

  constructor() {
    this.gone = this.#gone.promise;
    const readable = new ReadableStream<AnyMessage>(
      { start: (controller) => void (this.#incoming = controller) },
      { highWaterMark: ACP_PENDING_FRAMES_MAX },
    );
    this.stream = { readable, writable: new WritableStream({ write: (message) => this.#send(message) }) };
  }

  /** Why the connection ended, when it was not the one who closes it. */
  get fault(): ConnectionFault | undefined {
    return this.#fault;
  }

  /** The answer to the prompt has come in; it may not have been read yet. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  attach(socket: OpenedWebSocket): void {
    this.#socket = socket;
    if (this.#isClosed) socket.close(NORMAL_CLOSURE);
  }

  text(data: string): void {
    if (this.#isClosed) return;
    this.#received += data.length;
    if (data.length > ACP_FRAME_CHARS_MAX) return this.fail("the agent sent a message that is too long");
    if (this.#received > ACP_RECEIVED_CHARS_MAX) return this.fail("the agent sent too much");
    if (hasMoreValues(data, ACP_FRAME_VALUES_MAX)) return this.fail("the agent sent a message of too many values");
    const message = parseMessage(data);
    if (message === undefined) return this.fail("the agent sent something that is no message of the protocol");
    if (this.#isExpected(message)) this.#enqueue(message);
  }

  binary(): void {
    this.fail("the agent sent a binary message");
  }

  closed(): void {
    this.#end(new ConnectionFault("the connection to the agent was lost"));
    this.#gone.resolve();
  }

  /** Ends the connection. The first reason stands. */
  fail(reason: string): void {
    if (!this.#end(new ConnectionFault(reason))) return;
    this.#socket?.close(UNACCEPTABLE);
  }

  /** Starts the closing handshake; `gone` tells its end. */
  close(): void {
    this.#end(undefined);
    if (this.#socket === undefined) this.#gone.resolve();
    else this.#socket.close(NORMAL_CLOSURE);
  }

  /** For a peer that does not answer the closing handshake. */
  drop(): void {
    this.#socket?.drop?.();
  }

  /** The library takes what comes in one go as it likes: what was told after the answer would be taken for a part of it. */
  #isExpected(message: Record<string, unknown>): boolean {
    if ("method" in message) return "id" in message || !this.#isAnswered;
    this.#isAnswered ||= this.#asked.get(message["id"]) === true;
    return this.#asked.delete(message["id"]);
  }

  #enqueue(message: Record<string, unknown>): void {
    if ((this.#incoming.desiredSize ?? 0) <= 0) return this.fail("the agent sends faster than it can be read");
    this.#incoming.enqueue(message as unknown as AnyMessage);
  }

  #send(message: AnyMessage): void {
    if (this.#isClosed || this.#socket === undefined) throw this.#fault ?? new ConnectionFault("not connected");
    const text = JSON.stringify(message);
    if (!("method" in message)) this.#reply(text);
    else if ("id" in message) this.#asked.set(message.id, message.method === methods.agent.session.prompt);
    this.#socket.send(text);
  }

  #reply(text: string): void {
    this.#replied += text.length;
    if (this.#replied <= ACP_REPLIED_CHARS_MAX) return;
    this.fail("the agent asks for too much");
    throw new ConnectionFault("not sent");
  }

  #end(fault: ConnectionFault | undefined): boolean {
    if (this.#isClosed) return false;
    this.#isClosed = true;
    this.#fault = fault;
    // After what came before has been read: an end in between would take the agent's last words with it.
    setTimeout(() => this.#endStream(), 0);
    return true;
  }

  #endStream(): void {
    try {
      this.#incoming.close();
    } catch {
      // The library has cancelled the stream: it knows that the connection is over.
    }
  }
}

/** Batches are no part of the protocol. */
function parseMessage(text: string): Record<string, unknown> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && (value as { jsonrpc?: unknown }).jsonrpc === "2.0"
    ? (value as Record<string, unknown>)
    : undefined;
}
