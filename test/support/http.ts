/**
 * Deputy over HTTP inside the workers tests: the exported handler, with a key of its own. Frames are read as a client
 * reads them.
 */
import { SELF } from "cloudflare:test";

export const ALICE = { "x-api-key": "key-alice", "content-type": "application/json" };
export const BOB = { "x-api-key": "key-bob", "content-type": "application/json" };

export interface Frame {
  readonly event: string;
  readonly data: unknown;
  readonly id: string | undefined;
}

export function send(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = ALICE,
): Promise<Response> {
  return SELF.fetch(`https://deputy.test${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export async function sendJson<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await send(method, path, body);
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? null : JSON.parse(text)) as T;
}

export async function newThread(): Promise<string> {
  return (await sendJson<{ thread_id: string }>("POST", "/threads", {})).thread_id;
}

/** A run body with one human message. */
export function asking(content: string, options: Record<string, unknown> = {}): Record<string, unknown> {
  return { assistant_id: "lead_agent", input: { messages: [{ type: "human", content }] }, ...options };
}

export function parseFrames(text: string): Frame[] {
  return text
    .split("\n\n")
    .filter((block) => block.trim() !== "" && !block.startsWith(":"))
    .map((block) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      return { event: field("event") ?? "", data: JSON.parse(field("data") ?? "null") as unknown, id: field("id") };
    });
}

export async function streamRun(threadId: string, body: Record<string, unknown>): Promise<Frame[]> {
  const response = await send("POST", `/threads/${threadId}/runs/stream`, body);
  const text = await response.text();
  if (!response.ok) throw new Error(`stream: ${response.status} ${text}`);
  return parseFrames(text);
}
