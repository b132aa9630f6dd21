/**
 * One stored message as a provider may see it, whatever was stored: a known role, a legal name, no empty text, no raw
 * copies of calls. Owns single messages only; calls and their results are `pair-results.ts`.
 */
import { AIMessage, type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { isDroppedBlock, isMedia, RAW_CALL_KEYS } from "../models/assert-model-request.ts";
import { isBlank, isPlainObject, MODEL_NAME_PATTERN } from "../models/request-rules.ts";
import { copyMessage } from "../thread-state/message-forms.ts";

/** What a tool that printed nothing is shown to have said; an empty result is refused by some providers. */
export const NO_OUTPUT_TEXT = "(no output)";

/** `undefined` for what has no place in a request: removals, function results, messages without any content. */
export function cleanMessage(stored: BaseMessage): BaseMessage | undefined {
  const message = toKnownRole(stored);
  if (!message) return undefined;
  const content = cleanContent(message.content);
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []).length : 0;
  const isTool = message.getType() === "tool";
  if (content === "" && calls === 0 && !isTool) return undefined;
  return copyMessage(message, {
    content: content === "" && isTool ? NO_OUTPUT_TEXT : content,
    name: message.name !== undefined && MODEL_NAME_PATTERN.test(message.name) ? message.name : undefined,
    additional_kwargs: withoutRawCalls(message.additional_kwargs),
  });
}

/** Generic messages speak as user or assistant; any other role is data of unknown authorship, so a human message (P6). */
function toKnownRole(message: BaseMessage): BaseMessage | undefined {
  const type: string = message.getType();
  if (type === "remove" || type === "function") return undefined;
  if (type !== "generic") return message;
  const role: unknown = (message as { role?: unknown }).role;
  const Class = role === "assistant" || role === "ai" ? AIMessage : HumanMessage;
  const { content, id, name, additional_kwargs } = message;
  const kept = { content, additional_kwargs: withoutRawCalls(additional_kwargs) };
  return new Class({ ...kept, ...(id !== undefined && { id }), ...(name !== undefined && { name }) });
}

/** `""` when nothing is left. Blocks that adapters drop stay beside others and do not count as content. */
function cleanContent(content: unknown): BaseMessage["content"] {
  if (typeof content === "string") return isBlank(content) ? "" : content;
  if (!Array.isArray(content)) return "";
  const kept = content.filter((block) => isDroppedBlock(block) || isMedia(block) || isFilledText(block));
  return kept.some((block) => !isDroppedBlock(block)) ? (kept as BaseMessage["content"]) : "";
}

function isFilledText(block: unknown): boolean {
  return isPlainObject(block) && typeof block.text === "string" && !isBlank(block.text);
}

function withoutRawCalls(kwargs: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const raw: readonly string[] = RAW_CALL_KEYS;
  return Object.fromEntries(Object.entries(kwargs).filter(([key]) => !raw.includes(key)));
}
