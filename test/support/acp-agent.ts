/**
 * An agent of another process, built on the agent's side of the protocol's library: `node test/support/acp-agent.ts` serves
 * WebSockets on loopback and prints its port, `--stdio` speaks over its standard streams. A prompt is a plan, as JSON, unless the address has one; the
 * query of the connection's URL says how the handshake goes. `GET /log?from=` tells what came in, `GET /reached` and
 * `POST /open` are the two sides of a gate.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable, Writable } from "node:stream";
import {
  agent,
  type AgentContext,
  ndJsonStream,
  RequestError,
  type RequestPermissionResponse,
  type Stream,
} from "@agentclientprotocol/sdk";
import { type WebSocket, WebSocketServer } from "ws";

/** A step of a plan; a text that is no plan is echoed. */
export type AgentStep =
  | { readonly says: string; readonly ends?: string; readonly settles?: true }
  | { readonly fails: string }
  | { readonly holds: string }
  | { readonly thinks: string }
  | { readonly asksPermission: readonly string[] }
  | { readonly calls: string }
  | { readonly ends: string }
  | { readonly exits: number }
  | { readonly raw: string }
  | { readonly binary: string }
  | { readonly floods: number }
  | { readonly chunks: readonly string[]; readonly messageIds?: readonly string[] }
  | { readonly elsewhere: string }
  | { readonly tool: { readonly status: string; readonly text: string } };

interface Connection {
  readonly query: URLSearchParams;
  readonly note: (event: string, details?: unknown) => void;
  readonly socket?: WebSocket;
}

/** `connection` is absent for the standard streams, whose log nobody reads. */
const log: { event: string; connection?: number; details?: unknown }[] = [];
const gates = new Map<string, { reached: PromiseWithResolvers<void>; opened: PromiseWithResolvers<void> }>();
let lastId = 0;

function gateOf(id: string) {
  const gate = gates.get(id) ?? { reached: Promise.withResolvers<void>(), opened: Promise.withResolvers<void>() };
  gates.set(id, gate);
  return gate;
}

/** What came in since `from`, over connections made since: an older one may still be closing. */
function logSince(from: number) {
  const entries = log.slice(from);
  const opened = new Set(entries.filter(({ event }) => event === "connect").map(({ connection }) => connection));
  return entries.filter(({ connection }) => opened.has(connection));
}

function serve(stream: Stream, connection: Connection): void {
  const { query } = connection;
  agent({ name: "test-agent" })
    .onRequest("initialize", async ({ params }) => {
      connection.note("initialize", params);
      if (query.has("slow")) await new Promise(() => {});
      return { protocolVersion: Number(query.get("version") ?? 1), agentCapabilities: {} };
    })
    .onRequest("session/new", async ({ params }) => {
      connection.note("session/new", params);
      if (query.has("slow-session")) await new Promise(() => {});
      // Every session has the same id: a caller may not take it for its own.
      return query.has("no-session") ? ({} as { sessionId: string }) : { sessionId: "session" };
    })
    .onRequest("session/prompt", async ({ params, client }) => {
      const text = params.prompt.map((block) => (block.type === "text" ? block.text : "")).join("");
      connection.note("prompt", text);
      return { stopReason: (await follow(planOf(query.get("plan") ?? text), { client, connection })) as "end_turn" };
    })
    .onNotification("session/cancel", () => connection.note("cancel"))
    .connect(stream);
}

function planOf(text: string): readonly AgentStep[] {
  try {
    const plan: unknown = JSON.parse(text);
    if (Array.isArray(plan)) return plan as AgentStep[];
  } catch {
    // An ordinary prompt.
  }
  return [{ says: `you said: ${text}` }];
}

interface Turn {
  readonly client: AgentContext;
  readonly connection: Connection;
}

async function follow(plan: readonly AgentStep[], turn: Turn): Promise<string> {
  let ends = "end_turn";
  for (const [index, step] of plan.entries()) {
    await perform(step, turn);
    if ("ends" in step && step.ends !== undefined) ends = STOP_REASONS[step.ends] ?? step.ends;
    if ("says" in step && index < plan.length - 1) await useTool(turn, { status: "completed", text: "held" });
  }
  return ends;
}

const STOP_REASONS: Readonly<Record<string, string>> = { length: "max_tokens", content_filter: "refusal" };

async function perform(step: AgentStep, turn: Turn): Promise<void> {
  const { client, connection } = turn;
  if ("says" in step) return say(client, step.says === "" ? [] : [step.says.slice(0, 3), step.says.slice(3)]);
  if ("chunks" in step) return say(client, step.chunks, step.messageIds);
  if ("fails" in step) throw new RequestError(-32000, step.fails, { secret: "payload-of-the-error" });
  if ("holds" in step) {
    const gate = gateOf(step.holds);
    gate.reached.resolve();
    return gate.opened.promise;
  }
  if ("thinks" in step) {
    const content = { type: "text" as const, text: step.thinks };
    const update = { sessionUpdate: "agent_thought_chunk" as const, content };
    return client.notify("session/update", { sessionId: "session", update });
  }
  if ("elsewhere" in step) {
    const content = { type: "text" as const, text: step.elsewhere };
    const sessionId = "of-somebody-else";
    return client.notify("session/update", { sessionId, update: { sessionUpdate: "agent_message_chunk", content } });
  }
  if ("tool" in step) return useTool(turn, step.tool);
  if ("asksPermission" in step) return say(client, [JSON.stringify(await askPermission(client, step.asksPermission))]);
  if ("calls" in step)
    return say(client, [await codeOf(client.request(step.calls, { sessionId: "session", path: "/etc/passwd" }))]);
  if ("raw" in step) return connection.socket?.send(step.raw);
  if ("binary" in step) return connection.socket?.send(Buffer.from(step.binary));
  if ("exits" in step) process.exit(step.exits);
  if ("floods" in step) {
    for (let sent = 0; sent < step.floods; sent += 1) await say(client, ["x".repeat(10_000)]);
  }
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "answered",
    (error: RequestError) => `refused ${error.code}`,
  );
}

async function say(client: AgentContext, texts: readonly string[], messageIds: readonly string[] = []): Promise<void> {
  for (const [index, text] of texts.entries()) {
    const messageId = messageIds[index];
    await client.notify("session/update", {
      sessionId: "session",
      update: {
        sessionUpdate: "agent_message_chunk",
        content: { type: "text", text },
        ...(messageId === undefined ? {} : { messageId }),
      },
    });
  }
}

async function useTool({ client }: Turn, { status, text }: { status: string; text: string }): Promise<void> {
  lastId += 1;
  const toolCallId = `call-${lastId}`;
  const call = { toolCallId, title: "Look around", kind: "read" as const, rawInput: { where: "here" } };
  await client.notify("session/update", {
    sessionId: "session",
    update: { sessionUpdate: "tool_call", ...call, status: "pending" },
  });
  await client.notify("session/update", {
    sessionId: "session",
    update: {
      sessionUpdate: "tool_call_update",
      toolCallId,
      status: status as "completed",
      content: [{ type: "content", content: { type: "text", text } }],
    },
  });
}

async function askPermission(client: AgentContext, kinds: readonly string[]) {
  const options = kinds.map((kind, index) => ({ optionId: `option-${index}`, name: kind, kind: kind as "allow_once" }));
  const { outcome } = await client.request<RequestPermissionResponse>("session/request_permission", {
    sessionId: "session",
    toolCall: { toolCallId: "call-0", title: "Delete everything" },
    options,
  });
  return outcome;
}

/** One message a text frame, as the client's side has it. */
function streamOf(socket: WebSocket): Stream {
  const readable = new ReadableStream({
    start(controller) {
      socket.on("message", (data) => controller.enqueue(JSON.parse((data as Buffer).toString())));
      socket.on("close", () => controller.close());
    },
  });
  const writable = new WritableStream({ write: (message) => socket.send(JSON.stringify(message)) });
  return { readable, writable };
}

function accept(socket: WebSocket, request: IncomingMessage): void {
  const query = new URL(request.url ?? "/", "ws://agent").searchParams;
  lastId += 1;
  const connection = lastId;
  const noteHere = (event: string, details?: unknown): void => {
    log.push({ event, connection, ...(details === undefined ? {} : { details }) });
  };
  noteHere("connect", { authorization: request.headers.authorization ?? null });
  socket.on("close", (code) => noteHere("close", { code }));
  // A peer that never answers the closing handshake: what it is sent is not read.
  if (query.has("deaf")) setTimeout(() => request.socket.pause(), 300);
  serve(streamOf(socket), { query, note: noteHere, socket });
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://agent");
  const gate = gateOf(url.searchParams.get("gate") ?? "");
  if (url.pathname === "/reached") await gate.reached.promise;
  if (url.pathname === "/open") gate.opened.resolve();
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(url.pathname === "/log" ? logSince(Number(url.searchParams.get("from") ?? 0)) : {}));
}

function listen(): void {
  const server = createServer((request, response) => void answer(request, response));
  const sockets = new WebSocketServer({ noServer: true });
  server.on("upgrade", (request, socket, head) => {
    const { searchParams, pathname } = new URL(request.url ?? "/", "ws://agent");
    if (searchParams.has("hang")) return;
    if (searchParams.has("moved")) {
      socket.end(
        `HTTP/1.1 302 Found\r\nLocation: http://${request.headers.host}${pathname}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
      );
      return;
    }
    if (searchParams.has("refuse")) {
      socket.end("HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    sockets.handleUpgrade(request, socket, head, (accepted) => accept(accepted, request));
  });
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${JSON.stringify(server.address())}\n`));
}

if (process.argv.includes("--stdio")) {
  const stdin = Readable.toWeb(process.stdin) as unknown as ReadableStream<Uint8Array>;
  const stdout = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>;
  serve(ndJsonStream(stdout, stdin), { query: new URLSearchParams(), note: () => {} });
} else {
  listen();
}
