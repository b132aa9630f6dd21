/**
 * A request's messages in the order and form Anthropic takes: turns that alternate and end with the user, all results of
 * calls first in theirs, no empty text, ids it accepts, and signed thinking where it demands or allows it.
 * Pure. `assertModelRequest` holds for what comes in; what goes out are LangChain messages of Anthropic's own blocks, which
 * the adapter sends as they are.
 */
import { AIMessage, type BaseMessage, HumanMessage, SystemMessage, ToolMessage } from "@langchain/core/messages";
import { type AnthropicBlock, toAnthropicBlocks, toTextBlocks } from "./anthropic-blocks.ts";
import { readThinking } from "./stored-thinking.ts";

/** `on`: asked for. `off`: told not to. `unsaid`: nothing is said to a model that thinks always. */
export type ThinkingMode = "on" | "off" | "unsaid";

export interface AnthropicConversation {
  readonly messages: BaseMessage[];
  /** `off` where thinking was asked for and the turn that goes on began without it: the provider would refuse. */
  readonly thinking: ThinkingMode;
  /** Names of the tools that calls in it used. */
  readonly calledTools: readonly string[];
}

/** A request that ends with an answer asks for its continuation, which current models refuse. */
export const GO_ON_TEXT = "Go on.";

interface Turn {
  readonly role: "user" | "assistant";
  readonly messages: BaseMessage[];
}

/** `model` is the provider's id. */
export function toAnthropicConversation(
  messages: readonly BaseMessage[],
  { model, thinking }: { readonly model: string; readonly thinking: ThinkingMode },
): AnthropicConversation {
  const system = messages.filter((message) => message.getType() === "system").flatMap(toSystem);
  const turns = toTurns(messages.filter((message) => message.getType() !== "system"));
  const mode = thinking === "on" && !mayThink(turns, model) ? "off" : thinking;
  const ids = new WireIds();
  const converted = turns.map((turn) =>
    turn.role === "user"
      ? new HumanMessage({ content: userBlocks(turn, ids) as never })
      : new AIMessage({ content: assistantBlocks(turn, ids, mode === "off" ? undefined : model) as never }),
  );
  if (turns.at(-1)?.role === "assistant") converted.push(new HumanMessage(GO_ON_TEXT));
  const calledTools = new Set(messages.flatMap((message) => callsOf(message).map((call) => call.name)));
  return { messages: [...system, ...converted], thinking: mode, calledTools: [...calledTools] };
}

function toSystem({ content }: BaseMessage): readonly SystemMessage[] {
  if (typeof content === "string") return [new SystemMessage(content)];
  const blocks = toTextBlocks(content);
  return blocks.length === 0 ? [] : [new SystemMessage({ content: blocks as never })];
}

function toTurns(messages: readonly BaseMessage[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    const role = message.getType() === "ai" ? "assistant" : "user";
    const last = turns.at(-1);
    if (last?.role === role) last.messages.push(message);
    else turns.push({ role, messages: [message] });
  }
  return turns;
}

/** While calls are being answered, the turn that made them must have begun with thinking (of the same model). */
function mayThink(turns: readonly Turn[], model: string): boolean {
  const goesOn = turns.at(-1)?.messages.some((message) => ToolMessage.isInstance(message)) ?? false;
  const [first] = turns.findLast(({ role }) => role === "assistant")?.messages ?? [];
  return !goesOn || (first !== undefined && readThinking(first, model).length > 0);
}

function userBlocks({ messages }: Turn, ids: WireIds): readonly AnthropicBlock[] {
  return messages.flatMap((message) => {
    if (!ToolMessage.isInstance(message)) return toAnthropicBlocks(message.content);
    const failed = message.status === "error" ? { is_error: true } : {};
    const content = toAnthropicBlocks(message.content);
    return [{ type: "tool_result", tool_use_id: ids.of(message.tool_call_id), content, ...failed }];
  });
}

/** Thinking stands in front of a turn or nowhere: its place in the middle would be of our making. */
function assistantBlocks({ messages }: Turn, ids: WireIds, model: string | undefined): readonly AnthropicBlock[] {
  return messages.flatMap((message, index) => [
    ...(index === 0 && model !== undefined ? readThinking(message, model) : []),
    ...toTextBlocks(message.content),
    ...callsOf(message).map(({ id, name, args }) => ({ type: "tool_use", id: ids.of(id), name, input: args })),
  ]);
}

function callsOf(message: BaseMessage) {
  return AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
}

const WIRE_ID_PATTERN = /^[A-Za-z0-9_-]{1,128}$/;

/** Ours always pass; stored ones of other origin get one of the request's own, the same for a call and its result. */
class WireIds {
  readonly #minted = new Map<string, string>();

  of(id: string | undefined): string {
    const stored = id ?? "";
    if (WIRE_ID_PATTERN.test(stored)) return stored;
    const minted = this.#minted.get(stored) ?? `deputy-wire-id-${this.#minted.size + 1}`;
    this.#minted.set(stored, minted);
    return minted;
  }
}
