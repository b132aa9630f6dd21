/**
 * A real OpenAI-compatible server on loopback: HTTP and server-sent events, answers from the same script as `scripted`.
 * Owns the wire, and how it misbehaves when a script's `fail` or `quirk` asks for it. Every request is checked with
 * `assertOpenAiRequestBody`; a test that uses the server must find `violations` empty.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { assertOpenAiRequestBody } from "../../src/agent/models/assert-openai-request-body.ts";
import { AttemptCounter } from "../../src/agent/models/attempt-counter.ts";
import { answerFromScript, type ScriptedAnswer } from "../../src/agent/models/script-answer.ts";
import { isWireRequest, toConversation, type WireRequest, wireText } from "./model-wire.ts";
import { toFrames } from "./model-frames.ts";

export interface ModelServer {
  /** The base URL, `/v1` included. */
  readonly url: string;
  readonly requests: readonly WireRequest[];
  /** Requests whose answer stopped in the middle and stays open. */
  readonly stalled: readonly WireRequest[];
  /** Requests a strict provider would have refused, in words. */
  readonly violations: readonly string[];
  /** Requests whose client went away before the answer was whole. */
  readonly aborted: () => number;
  close(): Promise<void>;
}

export interface ModelServerOptions {
  readonly port?: number;
  /** Holds an answer's headers back until it resolves. */
  readonly beforeHeaders?: (request: WireRequest) => Promise<void> | undefined;
}

interface Served {
  readonly beforeHeaders: ModelServerOptions["beforeHeaders"];
  readonly requests: WireRequest[];
  readonly stalled: WireRequest[];
  readonly violations: string[];
  readonly attempts: AttemptCounter;
  aborted: number;
}

export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const served: Served = {
    beforeHeaders: options.beforeHeaders,
    requests: [],
    stalled: [],
    violations: [],
    attempts: new AttemptCounter(),
    aborted: 0,
  };
  const server = createServer((request, response) => {
    serve(served, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests: served.requests,
    stalled: served.stalled,
    violations: served.violations,
    aborted: () => served.aborted,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

async function serve(served: Served, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (request.method !== "POST" || !request.url?.endsWith("/chat/completions"))
    return refuse(response, 404, "not here");
  const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  if (!isWireRequest(body)) return refuse(response, 400, "not a chat completion request");
  served.requests.push(body);
  try {
    assertOpenAiRequestBody(body);
  } catch (error) {
    served.violations.push(String(error));
    return refuse(response, 400, String(error));
  }
  response.on("close", () => {
    if (!response.writableEnded) served.aborted += 1;
  });
  const { asked, begun } = toAsked(body);
  const whole = answerFromScript(toConversation(asked));
  await answer(served, response, { body, answer: begun === undefined ? whole : restOf(whole, begun) });
}

/** A request to go on with a broken answer is the one that was answered so far. */
function toAsked(body: WireRequest): { asked: WireRequest; begun?: string } {
  const [begun, goOn] = body.messages.slice(-2);
  if (begun === undefined || goOn === undefined || !wireText(goOn).startsWith("<continue_answer>"))
    return { asked: body };
  return { asked: { ...body, messages: body.messages.slice(0, -2) }, begun: wireText(begun) };
}

/** What a model says that goes on; by its quirks one that says the last part again, begins anew, or says something else. */
function restOf(whole: ScriptedAnswer, begun: string): ScriptedAnswer {
  const rest = whole.text.startsWith(begun) ? whole.text.slice(begun.length) : `LOST ${begun}`;
  if (whole.quirks.includes("repeat-end")) return { ...whole, text: begun.slice(-30) + rest };
  if (whole.quirks.includes("begin-anew")) return whole;
  return whole.quirks.includes("another-way")
    ? { ...whole, text: `${begun.slice(0, 80)} but otherwise.` }
    : { ...whole, text: rest };
}

/** The answer, or the failure its script asked for. */
async function answer(
  served: Served,
  response: ServerResponse,
  spoken: { body: WireRequest; answer: ScriptedAnswer },
): Promise<void> {
  await served.beforeHeaders?.(spoken.body);
  const asked = spoken.answer.failure;
  const failure = asked && served.attempts.next(spoken.answer.turnKey) <= asked.times ? asked : undefined;
  if (failure?.kind === "status") {
    if (failure.retryAfterSeconds !== undefined) response.setHeader("retry-after", String(failure.retryAfterSeconds));
    return refuse(response, failure.status, "the script asked for it");
  }
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  const quirks = new Set(spoken.answer.quirks);
  for (const frame of toFrames(spoken.answer, { request: spoken.body, quirks, failure })) {
    await write(response, frame, quirks.has("split-frames"));
    if (spoken.answer.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, spoken.answer.delayMs));
    if (response.destroyed) return;
  }
  if (failure?.kind === "stall") {
    served.stalled.push(spoken.body);
    return;
  }
  if (quirks.has("reset")) response.destroy();
  else response.end();
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "model_server", code: status } }));
}

/** Split frames arrive three bytes at a time: in the middle of a field, of a line end and of a character. */
async function write(response: ServerResponse, frame: string, split: boolean): Promise<void> {
  const bytes = Buffer.from(frame, "utf8");
  const step = split ? 3 : bytes.length;
  for (let at = 0; at < bytes.length; at += step) {
    await new Promise<void>((resolve) => response.write(bytes.subarray(at, at + step), () => resolve()));
  }
}
