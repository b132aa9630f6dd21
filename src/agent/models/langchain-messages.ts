/**
 * A request's messages as chat models of LangChain's take them, and what of an answer must come back in a later one.
 * Owns the needs of two adapters: Anthropic's gets the order, form and signed thinking that ours is sent, and OpenAI's no
 * empty text beside calls, which strict providers refuse. Others are sent what is stored. Pure.
 */
import { AIMessage, type BaseMessage } from "@langchain/core/messages";
import { copyMessage } from "../thread-state/message-forms.ts";
import { toAnthropicConversation } from "./anthropic-messages.ts";
import { isPlainObject } from "./request-rules.ts";
import { REASONING_KEY, type SignedBlock, type StoredThinking, THINKING_KEY } from "./stored-thinking.ts";

export interface LangChainIdentity {
  /** Of the model; what its thinking is stored under. */
  readonly name: string;
  /** LangChain's word for the adapter (`_llmType`). */
  readonly provider: string;
}

export function toLangChainMessages(
  messages: readonly BaseMessage[],
  { name, provider }: LangChainIdentity,
): readonly BaseMessage[] {
  // Whether it thinks is the caller's setting, of which nothing is said here.
  if (provider === "anthropic") return toAnthropicConversation(messages, { model: name, thinking: "unsaid" }).messages;
  return provider === "openai" ? messages.map(withoutEmptyText) : messages;
}

/** The adapter leaves an absent text out of messages in LangChain's standard form, and sends an empty one in others. */
function withoutEmptyText(message: BaseMessage): BaseMessage {
  if (!AIMessage.isInstance(message) || !message.tool_calls?.length || message.text !== "") return message;
  return copyMessage(message, { response_metadata: { output_version: "v1" } });
}

/** The signed thinking in front of an answer, in the form all providers' is stored in; nothing unless all is signed. */
export function keptThinking(content: unknown, { name }: LangChainIdentity): Record<string, unknown> {
  const all: readonly unknown[] = Array.isArray(content) ? content : [];
  const blocks = all.filter(isPlainObject);
  const spoken = blocks.findIndex(({ type }) => type !== "thinking" && type !== "redacted_thinking");
  const thoughts = spoken === -1 ? blocks : blocks.slice(0, spoken);
  const signed = thoughts.flatMap(toSignedBlock);
  if (signed.length === 0 || signed.length < thoughts.length) return {};
  const said = thoughts.map(({ thinking }) => (typeof thinking === "string" ? thinking : "")).join("");
  const stored: StoredThinking = { v: 1, model: name, blocks: signed };
  return { ...(said !== "" && { [REASONING_KEY]: said }), [THINKING_KEY]: stored };
}

function toSignedBlock({ type, thinking = "", signature, data }: Record<string, unknown>): readonly SignedBlock[] {
  if (type === "redacted_thinking") return typeof data === "string" ? [{ type, data }] : [];
  if (type !== "thinking" || typeof thinking !== "string" || typeof signature !== "string") return [];
  return signature === "" ? [] : [{ type, chars: thinking.length, signature }];
}
