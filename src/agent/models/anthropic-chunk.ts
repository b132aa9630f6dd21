/**
 * One chunk of the Anthropic adapter in the form all providers' chunks have: text as a string, thinking beside it, calls,
 * and at the end finish reason, model and usage, as `anthropic-stream-normaliser.ts` laid them into the last event.
 */
import { AIMessageChunk, type AIMessageChunkFields } from "@langchain/core/messages";
import { isPlainObject } from "./request-rules.ts";
import { REASONING_KEY, THINKING_KEY } from "./stored-thinking.ts";

export function toRegularChunk(chunk: AIMessageChunk, id: string): AIMessageChunk {
  const { finish_reason, model_name, usage, [THINKING_KEY]: thinking } = chunk.additional_kwargs;
  const reasoning = joined(chunk.content, "thinking");
  const isLast = typeof finish_reason === "string";
  const fields = {
    id,
    content: joined(chunk.content, "text"),
    tool_call_chunks: chunk.tool_call_chunks ?? [],
    additional_kwargs: {
      ...(reasoning !== "" && { [REASONING_KEY]: reasoning }),
      ...(thinking !== undefined && { [THINKING_KEY]: thinking }),
    },
    ...(isLast && { response_metadata: { finish_reason, model_name } }),
    ...(usage !== undefined && { usage_metadata: usage }),
  };
  return new AIMessageChunk(fields as unknown as AIMessageChunkFields);
}

/** The texts of all blocks of one type; the field is named after it. */
function joined(content: unknown, type: "text" | "thinking"): string {
  if (typeof content === "string") return type === "text" ? content : "";
  if (!Array.isArray(content)) return "";
  return content
    .map((block) => (isPlainObject(block) && block.type === type ? block[type] : ""))
    .filter((text) => typeof text === "string")
    .join("");
}
