/**
 * The same rules on the wire: what an OpenAI-compatible server received. The loopback test server calls it on every
 * request of every test, so a violation that an adapter introduces after `assertModelRequest` is seen as well.
 */
import { findToolViolation, ModelRequestError } from "./assert-model-request.ts";
import {
  findRequestViolation,
  isPlainObject,
  parseObject,
  type RequestCallShape,
  type RequestMessageShape,
} from "./request-rules.ts";

/** Throws `ModelRequestError`; `body` is the parsed JSON of `POST /chat/completions`. */
export function assertOpenAiRequestBody(body: unknown): void {
  const messages = isPlainObject(body) && Array.isArray(body.messages) ? (body.messages as unknown[]) : [];
  const tools = isPlainObject(body) && Array.isArray(body.tools) ? (body.tools as unknown[]) : [];
  const broken = findRequestViolation(messages.map(toShape)) ?? findToolViolation(tools.map(toTool));
  if (broken) throw new ModelRequestError(broken);
}

const ROLES: Readonly<Record<string, RequestMessageShape["role"]>> = {
  system: "system",
  developer: "system",
  user: "human",
  assistant: "assistant",
  tool: "tool",
};

function toShape(message: unknown): RequestMessageShape {
  const fields = isPlainObject(message) ? message : {};
  const blocks = Array.isArray(fields.content) ? (fields.content as unknown[]) : [];
  const texts = typeof fields.content === "string" ? [fields.content] : blocks.filter(isText).map(textOf);
  return {
    role: ROLES[String(fields.role)] ?? "unknown",
    texts,
    hasMedia: blocks.some((block) => !isText(block)),
    name: typeof fields.name === "string" ? fields.name : undefined,
    calls: Array.isArray(fields.tool_calls) ? fields.tool_calls.map(toCall) : [],
    resultFor: typeof fields.tool_call_id === "string" ? fields.tool_call_id : undefined,
    hasRawCalls: fields.function_call !== undefined || fields.audio !== undefined,
  };
}

function isText(block: unknown): boolean {
  return isPlainObject(block) && block.type === "text";
}

function textOf(block: unknown): string {
  return isPlainObject(block) && typeof block.text === "string" ? block.text : "";
}

function toCall(call: unknown): RequestCallShape {
  const fields = isPlainObject(call) ? call : {};
  const called = isPlainObject(fields.function) ? fields.function : {};
  return {
    id: typeof fields.id === "string" ? fields.id : undefined,
    name: typeof called.name === "string" ? called.name : undefined,
    args: typeof called.arguments === "string" ? parseObject(called.arguments) : undefined,
  };
}

function toTool(tool: unknown): { name: unknown; parameters: unknown } {
  const called = isPlainObject(tool) && isPlainObject(tool.function) ? tool.function : {};
  return { name: called.name, parameters: called.parameters };
}
