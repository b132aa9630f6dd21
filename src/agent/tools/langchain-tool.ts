/**
 * A LangChain tool (`tool(…)`, `DynamicStructuredTool`) as one of ours. Owns the translation of its schema, its result
 * and its errors. The tool checks its own arguments again; what it knows of the run comes through the config.
 */
import { ToolMessage } from "@langchain/core/messages";
import type { StructuredToolInterface } from "@langchain/core/tools";
import { toJsonSchema } from "@langchain/core/utils/json_schema";
import { z, type ZodObject } from "zod";
import type { Tool, ToolOutcome, ToolRecovery } from "./tool.ts";

/** Throws when the schema is no object: a call's arguments always are one. */
export function fromLangChainTool(tool: StructuredToolInterface, recovery: ToolRecovery): Tool {
  return {
    name: tool.name,
    description: tool.description,
    parameters: toParameters(tool),
    recovery,
    async execute(args, { config, toolCallId, signal }) {
      const call = { type: "tool_call" as const, id: toolCallId, name: tool.name, args };
      return toOutcome(await tool.invoke(call, { ...config, signal }));
    },
  };
}

export function isLangChainTool(tool: unknown): tool is StructuredToolInterface {
  if (typeof tool !== "object" || tool === null) return false;
  const { invoke, schema, name } = tool as Record<string, unknown>;
  return typeof invoke === "function" && typeof name === "string" && typeof schema === "object" && schema !== null;
}

function toParameters(tool: StructuredToolInterface): ZodObject {
  if (tool.schema instanceof z.ZodObject) return tool.schema;
  const schema = z.fromJSONSchema(toJsonSchema(tool.schema));
  if (schema instanceof z.ZodObject) return schema;
  throw new TypeError(`tool '${tool.name}': its schema must be an object`);
}

function toOutcome(result: unknown): ToolOutcome {
  if (ToolMessage.isInstance(result)) {
    const status = result.status === "error" ? "error" : "success";
    return { status, content: result.text, additionalKwargs: result.additional_kwargs };
  }
  return { status: "success", content: typeof result === "string" ? result : JSON.stringify(result ?? null) };
}
