/**
 * The rules a model request obeys, over a shape that knows neither LangChain nor the wire, so that each rule exists once.
 * Owns the rules; the two readers that make the shape are `assert-model-request.ts` and `assert-openai-request-body.ts`.
 * Strict providers answer 400 to a request that breaks one, and a stored history that keeps breaking it poisons its
 * thread: `hooks/request-repair.ts` builds requests that pass, whatever was stored.
 */

/** What providers accept as a tool's or participant's name. */
export const MODEL_NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

export interface RequestCallShape {
  readonly id: string | undefined;
  readonly name: string | undefined;
  /** The parsed arguments, or anything that is not a plain object when they are not one JSON object. */
  readonly args: unknown;
}

export interface RequestMessageShape {
  readonly role: "system" | "human" | "assistant" | "tool" | "unknown";
  /** Every text block; content given as a plain string is one block. */
  readonly texts: readonly string[];
  /** An image, file or other non-text block that a provider would see. */
  readonly hasMedia: boolean;
  readonly name: string | undefined;
  readonly calls: readonly RequestCallShape[];
  /** The call a tool message answers. */
  readonly resultFor: string | undefined;
  /** A provider's raw copy of calls, which adapters send when the parsed calls are gone. */
  readonly hasRawCalls: boolean;
}

export type RequestRule =
  | "known_role"
  | "one_leading_system"
  | "human_first"
  | "answered_at_once"
  | "result_has_call"
  | "unique_call_ids"
  | "no_empty_text"
  | "arguments_object"
  | "legal_names"
  | "no_raw_calls"
  | "legal_tools";

export interface RequestViolation {
  readonly rule: RequestRule;
  /** Index of the message, or of the tool for `legal_tools`. */
  readonly index: number;
  readonly detail: string;
}

export function isBlank(text: string): boolean {
  return text.trim() === "";
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Text that is one JSON object, strictly; anything else is `undefined`. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isPlainObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The first broken rule in message order, or `undefined` for a request every provider accepts. */
export function findRequestViolation(messages: readonly RequestMessageShape[]): RequestViolation | undefined {
  const callIds = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const broken = checkMessage(message) ?? checkPlace(messages, index) ?? checkCalls(messages, index, callIds);
    if (broken) return { ...broken, index };
  }
  const first = messages.findIndex((message) => message.role !== "system");
  return first === -1 ? violation("human_first", "no human message", messages.length) : undefined;
}

type Broken = Omit<RequestViolation, "index">;

function violation(rule: RequestRule, detail: string, index: number): RequestViolation {
  return { rule, detail, index };
}

function checkMessage(message: RequestMessageShape): Broken | undefined {
  if (message.role === "unknown") return { rule: "known_role", detail: "not system, human, assistant or tool" };
  if (message.hasRawCalls) return { rule: "no_raw_calls", detail: "carries a provider's raw copy of calls" };
  if (message.name !== undefined && !MODEL_NAME_PATTERN.test(message.name)) {
    return { rule: "legal_names", detail: `message name ${JSON.stringify(message.name)}` };
  }
  if (message.texts.some(isBlank))
    return { rule: "no_empty_text", detail: `an empty text in a ${message.role} message` };
  if (message.texts.length === 0 && !message.hasMedia && message.calls.length === 0) {
    return { rule: "no_empty_text", detail: `a ${message.role} message without content` };
  }
  return undefined;
}

function checkPlace(messages: readonly RequestMessageShape[], index: number): Broken | undefined {
  const message = messages[index];
  if (message?.role === "system") {
    return index === 0 ? undefined : { rule: "one_leading_system", detail: "a system message that is not first" };
  }
  const isFirst = index === 0 || (index === 1 && messages[0]?.role === "system");
  if (isFirst && message?.role !== "human") {
    return { rule: "human_first", detail: `the first message after the system is ${message?.role}` };
  }
  return undefined;
}

function checkCalls(messages: readonly RequestMessageShape[], index: number, callIds: Set<string>): Broken | undefined {
  const message = messages[index];
  if (!message) return undefined;
  if (message.role === "tool") return checkResultPlace(messages, index);
  for (const call of message.calls) {
    const broken = checkCall(call, callIds);
    if (broken) return broken;
  }
  return checkAnswered(messages, index);
}

function checkCall(call: RequestCallShape, callIds: Set<string>): Broken | undefined {
  if (!call.id) return { rule: "unique_call_ids", detail: "a call without an id" };
  if (callIds.has(call.id)) return { rule: "unique_call_ids", detail: `call id ${call.id} used twice` };
  callIds.add(call.id);
  if (!call.name || !MODEL_NAME_PATTERN.test(call.name)) {
    return { rule: "legal_names", detail: `call name ${JSON.stringify(call.name)}` };
  }
  if (!isPlainObject(call.args)) return { rule: "arguments_object", detail: `arguments of ${call.id}` };
  return undefined;
}

/** The group directly behind an assistant message answers each of its calls exactly once. */
function checkAnswered(messages: readonly RequestMessageShape[], index: number): Broken | undefined {
  const open = new Set(messages[index]?.calls.map((call) => call.id));
  for (let at = index + 1; messages[at]?.role === "tool"; at += 1) open.delete(messages[at]?.resultFor);
  const [unanswered] = open;
  return unanswered === undefined
    ? undefined
    : { rule: "answered_at_once", detail: `call ${unanswered} has no result directly behind it` };
}

function checkResultPlace(messages: readonly RequestMessageShape[], index: number): Broken | undefined {
  const id = messages[index]?.resultFor;
  let caller = index - 1;
  while (messages[caller]?.role === "tool") {
    if (messages[caller]?.resultFor === id) return { rule: "result_has_call", detail: `second result for ${id}` };
    caller -= 1;
  }
  const answers = messages[caller]?.calls.some((call) => call.id !== undefined && call.id === id);
  return answers ? undefined : { rule: "result_has_call", detail: `result for ${id} without its call in front` };
}
