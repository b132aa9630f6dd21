/**
 * LangChain and LangGraph values as the LangGraph API writes them. Owns the flat message dict (langgraph-api.md B3);
 * everything else passes through as JSON. Channels that are Deputy's own bookkeeping are left out.
 */
import { type AIMessage, type AIMessageChunk, BaseMessage, type ToolMessage } from "@langchain/core/messages";

const HIDDEN_CHANNELS = new Set(["run_progress"]);

export type WireMessage = Record<string, unknown> & { readonly type: string; readonly id: string | null };

/** A message as one flat dict: `type`, `content`, `id` and the fields of its kind. */
export function toWireMessage(message: BaseMessage): WireMessage {
  const base = {
    type: message.getType(),
    id: message.id ?? null,
    content: message.content,
    ...(message.name === undefined ? {} : { name: message.name }),
    additional_kwargs: message.additional_kwargs,
    response_metadata: message.response_metadata,
  };
  if (message.getType() === "ai") {
    const { tool_calls, invalid_tool_calls, usage_metadata, tool_call_chunks } = message as AIMessage & AIMessageChunk;
    return {
      ...base,
      tool_calls: tool_calls ?? [],
      invalid_tool_calls: invalid_tool_calls ?? [],
      ...(tool_call_chunks === undefined ? {} : { tool_call_chunks }),
      ...(usage_metadata === undefined ? {} : { usage_metadata }),
    };
  }
  if (message.getType() !== "tool") return base;
  const { tool_call_id, status, artifact } = message as ToolMessage;
  return {
    ...base,
    tool_call_id,
    status: status ?? "success",
    ...(artifact === undefined ? {} : { artifact: toWire(artifact) }),
  };
}

/** Any channel value, update or custom payload as plain JSON data. */
export function toWire(value: unknown): unknown {
  if (BaseMessage.isInstance(value)) return toWireMessage(value);
  if (Array.isArray(value)) return value.map(toWire);
  if (value !== null && typeof value === "object" && !(value instanceof Date)) {
    if (typeof (value as { toJSON?: unknown }).toJSON === "function") return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toWire(inner)]));
  }
  return value;
}

/** State values for a client: messages as dicts, our own bookkeeping and LangGraph's left out. */
export function toWireValues(values: unknown): Record<string, unknown> {
  if (values === null || typeof values !== "object") return {};
  return Object.fromEntries(
    Object.entries(values)
      .filter(
        ([channel, value]) => !HIDDEN_CHANNELS.has(channel) && !channel.startsWith("__pregel") && value !== undefined,
      )
      .map(([channel, value]) => [channel, toWire(value)]),
  );
}

/** What a node is given or gives, which is often the state or a part of it: then as `toWireValues` shows it. */
export function toWireState(value: unknown): unknown {
  if (value === null || typeof value !== "object" || Array.isArray(value) || BaseMessage.isInstance(value)) {
    return toWire(value);
  }
  return typeof (value as { toJSON?: unknown }).toJSON === "function" ? toWire(value) : toWireValues(value);
}
