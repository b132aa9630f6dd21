/** The request side of the model server's wire: shapes, and reading them as a scripted conversation. */
import type { ConversationMessage } from "../../src/agent/models/script-answer.ts";

export interface WireMessage {
  readonly role: string;
  readonly content?: string | null | readonly { readonly type: string; readonly text?: string }[];
  readonly name?: string;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { name: string; arguments: string } }[];
  readonly tool_call_id?: string;
}

export interface WireRequest {
  readonly model: string;
  readonly messages: readonly WireMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

export function isWireRequest(body: unknown): body is WireRequest {
  return typeof body === "object" && body !== null && Array.isArray((body as WireRequest).messages);
}

const ROLES: Readonly<Record<string, ConversationMessage["role"]>> = {
  system: "system",
  developer: "system",
  user: "human",
  assistant: "assistant",
  tool: "tool",
};

const FRAMEWORK_NAMES = new Set(["loop_warning", "budget_warning", "progress_hint", "summary"]);

export function toConversation(request: WireRequest): ConversationMessage[] {
  return request.messages.map((message) => {
    const text = wireText(message);
    return { role: ROLES[message.role] ?? "unknown", text, hidden: isInjected(message, text) };
  });
}

export function wireText(message: WireMessage): string {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((block) => block.text ?? "").join("");
}

/** The wire has no `hide_from_ui`; what the framework injects starts with a tag of its own or carries its name. */
function isInjected(message: WireMessage, text: string): boolean {
  return FRAMEWORK_NAMES.has(message.name ?? "") || /^\s*<[a-z][a-z_-]*>/.test(text);
}
