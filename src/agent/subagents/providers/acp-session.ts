/**
 * One session with an agent over the Agent Client Protocol: connecting, the handshake, the answers to what the agent asks,
 * and closing. One connection and one session a run; nothing is pooled or reconnected.
 * Invariants: no capability of ours is advertised, so files and terminals are refused as unknown methods; a permission is
 * answered by policy at once, and refused outside of the prompt's turn; what names another session is not ours; whoever
 * opens a session closes it, also when opening fails.
 */
import {
  client,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type ClientConnection,
  type InitializeRequest,
  type InitializeResponse,
  type PromptRequest,
  type PromptResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionNotification,
} from "@agentclientprotocol/sdk";
import { boundText } from "../../../domain/delegation/bounded-text.ts";
import type { AcpEndpoint } from "../../../domain/delegation/acp-endpoint.ts";
import type { TextBlock } from "../provider.ts";
import type { Timers } from "../timers.ts";
import { ConnectionFault, type OpenWebSocket } from "../web-socket.ts";
import { ACP_CLOSE_GRACE_MS, ACP_ERROR_CHARS_MAX } from "./acp-limits.ts";
import { AcpLink } from "./acp-link.ts";
import type { AcpTranscript } from "./acp-transcript.ts";

export interface AcpSessionPorts {
  readonly openWebSocket: OpenWebSocket;
  readonly timers: Timers;
  readonly transcript: AcpTranscript;
}

const NO_CAPABILITIES = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };

export class AcpSession {
  readonly #endpoint: AcpEndpoint;
  readonly #ports: AcpSessionPorts;
  readonly #link = new AcpLink();
  readonly #connection: ClientConnection;
  #sessionId: string | undefined;
  /** From the prompt to our cancel. */
  #isWorking = false;
  #closing: Promise<void> | undefined;

  constructor(endpoint: AcpEndpoint, ports: AcpSessionPorts) {
    this.#endpoint = endpoint;
    this.#ports = ports;
    this.#connection = client({ name: "deputy" })
      .onNotification(methods.client.session.update, ({ params }) => this.#update(params))
      .onRequest(methods.client.session.requestPermission, ({ params }) => this.#permit(params))
      .connect(this.#link.stream);
  }

  /** Rejects with a `ConnectionFault` or the signal's reason; the caller closes the session then. */
  async open(scope: string, signal: AbortSignal): Promise<void> {
    const { url, headers, cwd } = this.#endpoint;
    this.#link.attach(await this.#ports.openWebSocket({ url, headers, scope }, this.#link, signal));
    signal.throwIfAborted();
    const { agent } = this.#connection;
    const { protocolVersion } = await agent.request<InitializeResponse, InitializeRequest>(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: NO_CAPABILITIES,
    });
    if (protocolVersion !== PROTOCOL_VERSION) {
      throw new ConnectionFault(`the agent speaks another version of the protocol than ${PROTOCOL_VERSION}`);
    }
    const { sessionId } = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    if (typeof sessionId !== "string" || sessionId === "") throw new ConnectionFault("the agent gave no session id");
    this.#sessionId = sessionId;
  }

  /** Gives the stop reason once the updates before it have been taken. */
  async prompt(blocks: readonly TextBlock[]): Promise<unknown> {
    this.#isWorking = true;
    const { stopReason } = await this.#connection.agent.request<PromptResponse, PromptRequest>(
      methods.agent.session.prompt,
      {
        sessionId: this.#sessionId ?? "",
        prompt: blocks.map((block) => ({ ...block })),
      },
    );
    await this.#delivered();
    return stopReason;
  }

  /** Asks the agent to stop; whether it does is its own business. */
  async cancel(): Promise<void> {
    this.#isWorking = false;
    if (this.#sessionId === undefined) return;
    await this.#connection.agent.notify(methods.agent.session.cancel, { sessionId: this.#sessionId });
  }

  /** Resolves when the socket is closed, or its peer did not answer in time. Repeated calls share one closing. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** What may be told of an error of this session. */
  faultOf(error: unknown): string {
    const fault = this.#link.fault ?? (error instanceof ConnectionFault ? error : undefined);
    if (fault !== undefined) return fault.message;
    if (error instanceof RequestError) {
      return `the agent answered with an error: ${boundText(error.message, ACP_ERROR_CHARS_MAX)}`;
    }
    return "the connection to the agent failed";
  }

  async #close(): Promise<void> {
    this.#link.close();
    this.#connection.close();
    const { timers } = this.#ports;
    const grace = Promise.withResolvers<void>();
    const timer = timers.set(ACP_CLOSE_GRACE_MS, () => {
      this.#link.drop();
      grace.resolve();
    });
    await Promise.race([this.#link.gone, grace.promise]);
    timers.clear(timer);
  }

  #update({ sessionId, update }: SessionNotification): void {
    if (sessionId !== this.#sessionId) return;
    try {
      this.#ports.transcript.take(update);
    } catch (error) {
      this.#link.fail(
        error instanceof ConnectionFault ? error.message : "the agent sent an update that is not understood",
      );
    }
  }

  /** An agent that has answered, or was told to stop, has nothing left to do that could be permitted. */
  #permit({ sessionId, options }: RequestPermissionRequest): RequestPermissionResponse {
    const isTurn = this.#isWorking && !this.#link.isAnswered && sessionId === this.#sessionId;
    const isAllowed = this.#endpoint.permission === "allow" && isTurn;
    const option = isAllowed ? options.find(({ kind }) => kind === "allow_once" || kind === "allow_always") : undefined;
    if (option === undefined) return { outcome: { outcome: "cancelled" } };
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  }

  /** The library starts handlers in the order of messages and awaits inside them: an answer may overtake updates by a few microtasks. */
  #delivered(): Promise<void> {
    return new Promise((resolve) => void setTimeout(resolve, 0));
  }
}
