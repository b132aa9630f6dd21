/**
 * The boundary's outgoing half: no request reaches a model unless it passes here.
 * Owns reading LangChain messages into the neutral shape of `request-rules.ts`, and the error. Reads only; repairing is
 * `hooks/request-repair.ts`. A failure here is a broken invariant of ours, never the user's mistake, and is not retried.
 */
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ModelRequest, ToolSpec } from "./model.ts";
import {
  findRequestViolation,
  isPlainObject,
  MODEL_NAME_PATTERN,
  type RequestMessageShape,
  type RequestViolation,
} from "./request-rules.ts";

export class ModelRequestError extends Error {
  override readonly name = "ModelRequestError";
  readonly violation: RequestViolation;

  constructor(violation: RequestViolation) {
    super(`model request breaks ${violation.rule} at ${violation.index}: ${violation.detail}`);
    this.violation = violation;
  }
}

/** Throws `ModelRequestError` naming the first broken rule and where. */
export function assertModelRequest(request: ModelRequest): void {
  const broken = findModelRequestViolation(request.messages) ?? findToolViolation(request.tools);
  if (broken) throw new ModelRequestError(broken);
}

export function findModelRequestViolation(messages: readonly BaseMessage[]): RequestViolation | undefined {
  return findRequestViolation(messages.map(toShape));
}

/** Tool names are legal and unique, parameters are an object schema. */
export function findToolViolation(
  tools: readonly { readonly name: unknown; readonly parameters: unknown }[] | readonly ToolSpec[],
): RequestViolation | undefined {
  const names = new Set<unknown>();
  for (const [index, tool] of tools.entries()) {
    const legal = typeof tool.name === "string" && MODEL_NAME_PATTERN.test(tool.name) && !names.has(tool.name);
    if (!legal || !isPlainObject(tool.parameters)) {
      return { rule: "legal_tools", index, detail: `tool ${JSON.stringify(tool.name)}` };
    }
    names.add(tool.name);
  }
  return undefined;
}

/** Blocks that adapters drop before the wire: a message made only of these is empty there. */
const DROPPED_BLOCK_TYPES: ReadonlySet<string> = new Set([
  "tool_use",
  "tool_call",
  "functionCall",
  "reasoning",
  "reasoning_content",
  "thinking",
]);

export function isDroppedBlock(block: unknown): boolean {
  return isPlainObject(block) && typeof block.type === "string" && DROPPED_BLOCK_TYPES.has(block.type);
}

function toShape(message: BaseMessage): RequestMessageShape {
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  return {
    role: roleOf(message),
    texts: textsOf(message.content, calls.length > 0),
    hasMedia: Array.isArray(message.content) && message.content.some(isMedia),
    name: message.name,
    calls: calls.map((call) => ({ id: call.id, name: call.name, args: call.args as unknown })),
    resultFor: ToolMessage.isInstance(message) ? message.tool_call_id : undefined,
    hasRawCalls: hasRawCalls(message),
  };
}

const ROLES: Readonly<Record<string, RequestMessageShape["role"]>> = {
  system: "system",
  human: "human",
  ai: "assistant",
  tool: "tool",
};

export function roleOf(message: BaseMessage): RequestMessageShape["role"] {
  return ROLES[message.getType()] ?? "unknown";
}

/** An assistant message that only calls has no text; as a string that is `""`, and the adapter sends no content. */
function textsOf(content: unknown, calls: boolean): string[] {
  if (typeof content === "string") return content === "" && calls ? [] : [content];
  if (!Array.isArray(content)) return [];
  return content.filter((block) => !isMedia(block) && !isDroppedBlock(block)).map(textOf);
}

/** Anything that is no block at all counts as an empty text: no provider takes it. */
function textOf(block: unknown): string {
  return isPlainObject(block) && typeof block.text === "string" ? block.text : "";
}

export function isMedia(block: unknown): boolean {
  return isPlainObject(block) && block.type !== "text" && !isDroppedBlock(block);
}

/** `@langchain/openai` sends these whenever `tool_calls` is empty (`audio` always): calls nobody answers. */
export const RAW_CALL_KEYS = ["tool_calls", "function_call", "audio"] as const;

function hasRawCalls(message: BaseMessage): boolean {
  return RAW_CALL_KEYS.some((key) => message.additional_kwargs[key] !== undefined);
}
