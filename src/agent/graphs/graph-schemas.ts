/**
 * JSON Schemas of what a graph takes, gives and keeps. Zod schemas say it all; annotations say the names of their channels
 * and which of them holds messages; what says nothing has no schema (null), never a failure.
 */
import {
  getConfigTypeSchema,
  getInputTypeSchema,
  getOutputTypeSchema,
  getStateTypeSchema,
} from "@langchain/langgraph/zod/schema";
import { isMessageChannel } from "./message-ids.ts";

export type JsonSchema = Record<string, unknown>;

export interface GraphSchemasOf {
  readonly graph_id: string;
  readonly input_schema: JsonSchema | null;
  readonly output_schema: JsonSchema | null;
  readonly state_schema: JsonSchema | null;
  readonly config_schema: JsonSchema | null;
  readonly context_schema: JsonSchema | null;
}

/** Messages as a client gives and gets them. */
export const MESSAGES_SCHEMA: JsonSchema = {
  type: "array",
  items: {
    type: "object",
    properties: { type: { type: "string" }, content: {}, id: { type: ["string", "null"] }, name: { type: "string" } },
    required: ["type", "content"],
  },
};

interface Builder {
  readonly _schemaDefinition?: Channels;
  readonly _inputDefinition?: Channels;
  readonly _outputDefinition?: Channels;
}

type Channels = Readonly<Record<string, unknown>>;

export function graphSchemas(graph: object, graphId: string): GraphSchemasOf {
  const { builder = {} } = graph as { builder?: Builder };
  // LangGraph keeps one schema for both: what older graphs call config is context now.
  const context = told(() => getConfigTypeSchema(graph)) ?? null;
  return {
    graph_id: graphId,
    input_schema: told(() => getInputTypeSchema(graph)) ?? namesOf(builder._inputDefinition),
    output_schema: told(() => getOutputTypeSchema(graph)) ?? namesOf(builder._outputDefinition),
    state_schema: told(() => getStateTypeSchema(graph)) ?? namesOf(builder._schemaDefinition),
    config_schema: context,
    context_schema: context,
  };
}

/** A zod type that JSON Schema cannot say makes LangGraph throw. */
function told(ask: () => unknown): JsonSchema | undefined {
  try {
    return ask() as JsonSchema | undefined;
  } catch {
    return undefined;
  }
}

function namesOf(channels: Channels | undefined): JsonSchema | null {
  return channels === undefined ? null : schemaOfChannels(channels);
}

/** An object of these names; `{}` allows anything. */
export function schemaOfChannels(channels: Channels): JsonSchema {
  const properties = Object.entries(channels).map(([name, channel]) => [name, schemaOfChannel(channel)]);
  return { type: "object", properties: Object.fromEntries(properties) as unknown };
}

/** A definition may hold a channel or make one. */
function schemaOfChannel(channel: unknown): JsonSchema {
  const made: unknown = typeof channel === "function" ? (channel as () => unknown)() : channel;
  return isMessageChannel(made) ? MESSAGES_SCHEMA : {};
}
