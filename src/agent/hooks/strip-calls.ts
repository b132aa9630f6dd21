/**
 * Removes tool calls from an answer wherever it keeps a copy of them (delegation-behaviour 0): structured calls, the
 * provider's raw copy, content blocks and our marks. A call left in any of them would be sent back to a provider without
 * a result. The id stays, so the message is replaced in place.
 */
import type { AIMessage } from "@langchain/core/messages";
import { PROVIDER_CALL_IDS_KEY } from "../models/model-answer.ts";
import { copyMessage } from "../thread-state/message-forms.ts";

type Fields = Record<string, unknown>;

/** `note`, when given, becomes part of the visible text. */
export function stripCalls(answer: AIMessage, cutIds: ReadonlySet<string>, note?: string): AIMessage {
  const calls = (answer.tool_calls ?? []).filter((call) => call.id === undefined || !cutIds.has(call.id));
  const invalid = (answer.invalid_tool_calls ?? []).filter((call) => call.id === undefined || !cutIds.has(call.id));
  const allIds = new Set([...cutIds, ...providerIds(answer, cutIds)]);
  return copyMessage(answer, {
    content: stripContent(answer.content, allIds, note),
    tool_calls: calls,
    invalid_tool_calls: invalid,
    additional_kwargs: stripKwargs(answer.additional_kwargs, allIds, calls.length),
    response_metadata: stopMetadata(answer.response_metadata, calls.length),
  }) as AIMessage;
}

function providerIds(answer: AIMessage, cutIds: ReadonlySet<string>): readonly string[] {
  const theirs = (answer.additional_kwargs[PROVIDER_CALL_IDS_KEY] ?? {}) as Record<string, string>;
  return [...cutIds].flatMap((id) => theirs[id] ?? []);
}

function stripContent(content: AIMessage["content"], ids: ReadonlySet<string>, note: string | undefined) {
  if (typeof content === "string")
    return [content, note].filter((text) => text !== undefined && text !== "").join("\n\n");
  const blocks = content.filter((block) => !ids.has(String((block as { id?: unknown }).id)));
  return note === undefined ? blocks : [...blocks, { type: "text", text: note }];
}

const CALL_MARKS = [PROVIDER_CALL_IDS_KEY, "deputy_invalid_tool_calls"] as const;

function stripKwargs(kwargs: Fields, ids: ReadonlySet<string>, kept: number): Fields {
  const next: Fields = { ...kwargs };
  if (Array.isArray(kwargs.tool_calls)) {
    const raw = (kwargs.tool_calls as { id?: unknown }[]).filter((call) => !ids.has(String(call.id)));
    if (raw.length > 0 && kept > 0) next.tool_calls = raw;
    else delete next.tool_calls;
  }
  if (kept === 0) delete next.function_call;
  for (const mark of CALL_MARKS) {
    if (next[mark] === undefined) continue;
    next[mark] = Object.fromEntries(Object.entries(next[mark] as Fields).filter(([id]) => !ids.has(id)));
  }
  return next;
}

function stopMetadata(metadata: Fields, kept: number): Fields {
  return kept === 0 && metadata.finish_reason === "tool_calls" ? { ...metadata, finish_reason: "stop" } : metadata;
}
