/**
 * From a streamed generation to the one message that is stored: ids by us, strictly read calls, a finish reason, usage
 * only when the provider sent it. Every provider ends here, so an answer means the same whoever gave it.
 * Owns the `additional_kwargs` names of the boundary; readers are the tools node and the request.
 */
import { AIMessage, type AIMessageChunk, type AIMessageFields, type UsageMetadata } from "@langchain/core/messages";
import { checkCalls, type RawCall } from "./checked-calls.ts";
import { ModelFailure } from "./model.ts";
import { isBlank, isPlainObject } from "./request-rules.ts";
import { REASONING_KEY, THINKING_KEY } from "./stored-thinking.ts";

/** { [call id]: { raw, error } }: calls whose arguments or name were not legal; stored with `args: {}`. */
export const INVALID_CALLS_KEY = "deputy_invalid_tool_calls";

/** { [our call id]: the provider's }. */
export const PROVIDER_CALL_IDS_KEY = "deputy_provider_call_ids";

/** Each call is a task of its own: past this an answer is a fault of the model, not a plan. */
export const CALLS_PER_ANSWER_MAX = 128;

const REFUSED = "content_filter";

/** A refusal is an answer, also where the provider sends no words with it: asking again would be refused again. */
export const REFUSAL_TEXT = "The model refused to answer.";

export interface StreamedAnswer {
  readonly id: string;
  readonly chunk: AIMessageChunk;
  readonly providerCallIds: Readonly<Record<string, string>>;
}

/** Throws `ModelFailure` "truncated" without a finish reason and "empty" without text and calls. */
export function toAnswer({ id, chunk, providerCallIds }: StreamedAnswer): AIMessage {
  const finishReason: unknown = chunk.response_metadata.finish_reason;
  if (typeof finishReason !== "string" || finishReason === "") {
    throw new ModelFailure("truncated", "the answer ended without a finish reason");
  }
  const calls = rawCalls(chunk);
  const text = isBlank(chunk.text) && finishReason === REFUSED && calls.length === 0 ? REFUSAL_TEXT : chunk.text;
  if (calls.length === 0 && isBlank(text)) throw new ModelFailure("empty", "the answer has no text and no calls");
  if (calls.length > CALLS_PER_ANSWER_MAX) {
    throw new ModelFailure("stream_error", `the answer has ${calls.length} calls, more than ${CALLS_PER_ANSWER_MAX}`);
  }
  const { toolCalls, invalid } = checkCalls(calls, finishReason);
  const fields = {
    id,
    content: isBlank(text) ? "" : text,
    tool_calls: toolCalls,
    additional_kwargs: {
      ...reasoningOf(chunk),
      ...(Object.keys(providerCallIds).length > 0 && { [PROVIDER_CALL_IDS_KEY]: providerCallIds }),
      ...(Object.keys(invalid).length > 0 && { [INVALID_CALLS_KEY]: invalid }),
    },
    response_metadata: { finish_reason: finishReason, model_name: modelNameOf(chunk) },
    ...usageOf(chunk),
  };
  // The adapter library types `usage_metadata` as never for a message without declared tools.
  return new AIMessage(fields as unknown as AIMessageFields);
}

function rawCalls(chunk: AIMessageChunk): RawCall[] {
  return (chunk.tool_call_chunks ?? []).map((call) => ({
    id: call.id ?? "",
    name: call.name ?? "",
    rawArguments: call.args ?? "",
  }));
}

/** For people to see, and what its provider needs back. Neither is part of the answer. */
function reasoningOf({ additional_kwargs: { [REASONING_KEY]: said, [THINKING_KEY]: signed } }: AIMessageChunk) {
  return {
    ...(typeof said === "string" && said !== "" && { [REASONING_KEY]: said }),
    ...(isPlainObject(signed) && { [THINKING_KEY]: signed }),
  };
}

function modelNameOf(chunk: AIMessageChunk): string | undefined {
  const name: unknown = chunk.response_metadata.model_name;
  return typeof name === "string" ? name : undefined;
}

function usageOf(chunk: AIMessageChunk): { usage_metadata?: UsageMetadata } {
  const usage: unknown = chunk.usage_metadata;
  if (!isPlainObject(usage)) return {};
  // Gathering chunks adds empty details that no provider sent.
  const sent = Object.entries(usage).filter(([, value]) => !isPlainObject(value) || hasNumber(value));
  return { usage_metadata: Object.fromEntries(sent) as unknown as UsageMetadata };
}

function hasNumber(details: Readonly<Record<string, unknown>>): boolean {
  return Object.values(details).some((value) => typeof value === "number");
}
