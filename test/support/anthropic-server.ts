/**
 * A real server of Anthropic's Messages API on loopback: HTTP and server-sent events, answers from the same script as
 * `scripted`. Thinks when it is asked to, signs what it thought, and knows its signatures again. A request that breaks a
 * rule of `anthropic-rules.ts` gets the 400 it would get; a test that uses the server must find `violations` empty.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { AttemptCounter } from "../../src/agent/models/attempt-counter.ts";
import {
  answerFromScript,
  type ConversationMessage,
  type ScriptedAnswer,
} from "../../src/agent/models/script-answer.ts";
import { toAnthropicFrames } from "./anthropic-frames.ts";
import { findAnthropicViolation } from "./anthropic-rules.ts";

export interface AnthropicBlock {
  readonly type: string;
  readonly [field: string]: unknown;
}

export interface AnthropicRequest {
  readonly model: string;
  readonly max_tokens: number;
  readonly system?: unknown;
  readonly messages: readonly { readonly role: string; readonly content: string | readonly AnthropicBlock[] }[];
  readonly tools?: readonly { readonly name: string }[];
  readonly thinking?: { readonly type: string; readonly budget_tokens?: number };
  readonly [field: string]: unknown;
}

export interface AnthropicServer {
  /** The base URL, without `/v1`. */
  readonly url: string;
  readonly requests: readonly AnthropicRequest[];
  readonly headers: readonly IncomingMessage["headers"][];
  readonly violations: readonly string[];
  /** Requests whose client went away before the answer was whole. */
  readonly aborted: () => number;
  close(): Promise<void>;
}

class Served {
  readonly requests: AnthropicRequest[] = [];
  readonly headers: IncomingMessage["headers"][] = [];
  readonly violations: string[] = [];
  readonly attempts = new AttemptCounter();
  readonly issued = new Map<string, string>();
  aborted = 0;
}

export async function startAnthropicServer(): Promise<AnthropicServer> {
  const served = new Served();
  const server = createServer((request, response) => {
    serve(served, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests: served.requests,
    headers: served.headers,
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
  const key = request.headers["x-api-key"];
  if (request.method !== "POST" || request.url !== "/v1/messages") return refuse(response, 404, "not here");
  if (!key || !request.headers["anthropic-version"]) return refuse(response, 401, "no key or no version");
  const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as AnthropicRequest;
  served.requests.push(body);
  served.headers.push(request.headers);
  const broken = findAnthropicViolation(body, served.issued);
  if (broken !== undefined) {
    served.violations.push(broken);
    return refuse(response, 400, broken);
  }
  response.on("close", () => {
    if (!response.writableEnded) served.aborted += 1;
  });
  await answer(served, response, body);
}

async function answer(served: Served, response: ServerResponse, body: AnthropicRequest): Promise<void> {
  const spoken = toSpoken(body);
  const asked = spoken.failure;
  const failure = asked && served.attempts.next(spoken.turnKey) <= asked.times ? asked : undefined;
  if (failure?.kind === "status") {
    if (failure.retryAfterSeconds !== undefined) response.setHeader("retry-after", String(failure.retryAfterSeconds));
    return refuse(response, failure.status, "the script asked for it");
  }
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache" });
  await stream(response, spoken, {
    model: body.model,
    thinks: body.thinking !== undefined && body.thinking.type !== "disabled",
    quirks: new Set(spoken.quirks),
    failure,
    issue: (signature, thinking) => served.issued.set(signature, thinking),
  });
}

/** A request to go on with a broken answer is the one that was answered so far; what is left of that comes. */
function toSpoken(body: AnthropicRequest): ScriptedAnswer {
  const [begun, goOn] = body.messages.slice(-2);
  if (begun === undefined || goOn === undefined || !textOf(goOn.content).startsWith("<continue_answer>"))
    return answerFromScript(toConversation(body));
  const whole = answerFromScript(toConversation({ ...body, messages: body.messages.slice(0, -2) }));
  const said = textOf(begun.content);
  return { ...whole, text: whole.text.startsWith(said) ? whole.text.slice(said.length) : `LOST ${said}` };
}

async function stream(
  response: ServerResponse,
  spoken: ScriptedAnswer,
  options: Parameters<typeof toAnthropicFrames>[1],
): Promise<void> {
  for (const frame of toAnthropicFrames(spoken, options)) {
    await new Promise<void>((resolve) => response.write(frame, () => resolve()));
    if (spoken.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, spoken.delayMs));
    if (response.destroyed) return;
  }
  if (options.failure?.kind === "stall") return;
  if (options.quirks.has("reset")) response.destroy();
  else response.end();
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  404: "not_found_error",
  429: "rate_limit_error",
  529: "overloaded_error",
};

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ type: "error", error: { type: ERROR_TYPES[status] ?? "api_error", message } }));
}

function toConversation({ messages }: AnthropicRequest): ConversationMessage[] {
  return messages.flatMap(({ role, content }): ConversationMessage[] => {
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    if (role === "assistant") return [{ role, text: textOf(blocks) }];
    return blocks.map((block) =>
      block.type === "tool_result"
        ? { role: "tool" as const, text: textOf(block["content"] as readonly AnthropicBlock[] | string) }
        : { role: "human" as const, text: textOf([block]), hidden: /^\s*<[a-z][a-z_-]*>/.test(textOf([block])) },
    );
  });
}

function textOf(content: string | readonly AnthropicBlock[]): string {
  if (typeof content === "string") return content;
  return content.map(({ text }) => (typeof text === "string" ? text : "")).join("");
}
