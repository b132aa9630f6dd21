/**
 * What Anthropic's Messages API accepts, stricter where it is lenient: turns alternate. Each rule is one the API answers
 * 400 to, in its words where they are known. Written for itself, on purpose: it shares no code with the adapter it judges.
 */
type Fields = Record<string, unknown>;

/** Signatures a server gave out, with the thinking each stands for. */
export type IssuedThinking = ReadonlyMap<string, string>;

const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const ID = /^[A-Za-z0-9_-]+$/;

/** The first broken rule, in words; `undefined` for a request that is accepted. */
export function findAnthropicViolation(body: Fields, issued: IssuedThinking): string | undefined {
  try {
    checkParameters(body);
    checkTools(body);
    const turns = body.messages as readonly Fields[];
    need(Array.isArray(turns) && turns.length > 0, "messages: at least one message is required");
    turns.forEach((turn, at) => checkTurn(turns, turn, at, issued));
    need(turns.at(-1)?.role === "user", "this model does not support assistant message prefill");
    checkIds(turns);
    checkThinking(body, turns);
    return undefined;
  } catch (error) {
    if (error instanceof Refusal) return error.message;
    throw error;
  }
}

class Refusal extends Error {}

function need(holds: boolean, rule: string): void {
  if (!holds) throw new Refusal(rule);
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isFilled = (text: unknown) => typeof text === "string" && text.trim() !== "";
const blocksOf = (turn: Fields | undefined): readonly Fields[] =>
  typeof turn?.content === "string" ? [{ type: "text", text: turn.content }] : ((turn?.content ?? []) as Fields[]);
const isType = (type: string) => (block: Fields) => block.type === type;
const isThought = ({ type }: Fields) => type === "thinking" || type === "redacted_thinking";

function checkParameters({ model, max_tokens, stream, system, thinking, temperature }: Fields): void {
  need(isFilled(model), "model: field required");
  need(Number.isInteger(max_tokens) && (max_tokens as number) >= 1, "max_tokens: field required");
  need(stream === true, "stream: must be true here");
  for (const block of typeof system === "string" ? [{ type: "text", text: system }] : ((system ?? []) as Fields[])) {
    need(block.type === "text" && isFilled(block.text), "system: text content blocks must be non-empty");
  }
  const { type, budget_tokens: budget } = (thinking ?? {}) as Fields;
  need(thinking === undefined || ["enabled", "adaptive", "disabled"].includes(type as string), "thinking.type");
  need((type === "enabled") === (budget !== undefined), "thinking.budget_tokens: for enabled only");
  if (type === "enabled") {
    need((budget as number) >= 1_024, "thinking.budget_tokens: at least 1024");
    need((max_tokens as number) > (budget as number), "max_tokens must be greater than thinking.budget_tokens");
  }
  const thinks = type === "enabled" || type === "adaptive";
  need(!thinks || temperature === undefined || temperature === 1, "temperature may only be 1 when thinking is enabled");
}

function checkTools({ tools, tool_choice, messages }: Fields): void {
  const given = (tools ?? []) as readonly Fields[];
  const names = given.map(({ name }) => name);
  need(new Set(names).size === names.length, "tools: names must be unique");
  for (const { name, input_schema: schema } of given) {
    need(typeof name === "string" && NAME.test(name), `tools: illegal name ${JSON.stringify(name)}`);
    need(isObject(schema) && schema.type === "object", "tools: input_schema.type must be object");
    const top = Object.keys(schema as Fields).find((key) => ["oneOf", "anyOf", "allOf"].includes(key));
    need(top === undefined, `tools: input_schema does not support ${top} at the top level`);
  }
  const used = ((messages ?? []) as Fields[]).some((turn) =>
    blocksOf(turn).some(({ type }) => type === "tool_use" || type === "tool_result"),
  );
  need(!used || given.length > 0, "requests which include tool_use or tool_result blocks must define tools");
  need(tool_choice === undefined || ["auto", "none"].includes((tool_choice as Fields).type as string), "tool_choice");
}

function checkTurn(turns: readonly Fields[], turn: Fields, at: number, issued: IssuedThinking): void {
  need(turn.role === (at % 2 === 0 ? "user" : "assistant"), `messages.${at}: roles must alternate, user first`);
  const blocks = blocksOf(turn);
  need(blocks.length > 0, `messages.${at}: must have non-empty content`);
  for (const block of blocks) {
    if (block.type === "text") need(isFilled(block.text), `messages.${at}: text content blocks must be non-empty`);
    if (turn.role === "user") checkUserBlock(block, at);
    else checkAssistantBlock(block, at, issued);
  }
  if (turn.role === "user") checkResults(turns[at - 1], blocks, at);
  else checkAssistantOrder(blocks, at);
}

function checkUserBlock({ type, content, source, is_error }: Fields, at: number): void {
  need(["text", "image", "tool_result"].includes(type as string), `messages.${at}: ${String(type)} from a user`);
  if (type === "image") need(["base64", "url"].includes((source as Fields).type as string), "image.source.type");
  if (type !== "tool_result") return;
  const inner = typeof content === "string" ? [{ type: "text", text: content }] : (content as Fields[]);
  need(inner.length > 0, `messages.${at}: an empty tool_result`);
  for (const part of inner)
    need(part.type !== "text" || isFilled(part.text), `messages.${at}: an empty text in a result`);
  need(is_error === undefined || typeof is_error === "boolean", "tool_result.is_error");
}

function checkAssistantBlock(block: Fields, at: number, issued: IssuedThinking): void {
  const { type, id, name, input, signature, thinking, data } = block;
  need(
    ["text", "tool_use", "thinking", "redacted_thinking"].includes(type as string),
    `messages.${at}: ${String(type)}`,
  );
  if (type === "tool_use") {
    need(typeof id === "string" && ID.test(id), `messages.${at}: tool_use.id must match ${ID.source}`);
    need(typeof name === "string" && NAME.test(name), `messages.${at}: tool_use.name`);
    need(isObject(input), `messages.${at}: tool_use.input must be an object`);
  }
  if (type === "thinking") {
    need(issued.get(signature as string) === thinking, `messages.${at}: invalid signature in thinking block`);
  }
  if (type === "redacted_thinking")
    need(issued.get(data as string) === "", `messages.${at}: invalid redacted_thinking`);
}

/** Thinking, then words, then calls. */
function checkAssistantOrder(blocks: readonly Fields[], at: number): void {
  const rank = (block: Fields) => (isThought(block) ? 0 : block.type === "tool_use" ? 2 : 1);
  const ranks = blocks.map(rank);
  need(
    ranks.every((one, index) => index === 0 || one >= (ranks[index - 1] ?? 0)),
    `messages.${at}: thinking must come first and calls last`,
  );
}

const sorted = (texts: readonly string[]) => texts.toSorted((a, b) => a.localeCompare(b));

/** Each call of the turn before has exactly one result, in front of everything else. */
function checkResults(before: Fields | undefined, blocks: readonly Fields[], at: number): void {
  const calls = blocksOf(before).filter(isType("tool_use"));
  const results = blocks.filter(isType("tool_result"));
  const open = sorted(calls.map(({ id }) => String(id)));
  const answered = sorted(results.map(({ tool_use_id: id }) => String(id)));
  need(
    JSON.stringify(open) === JSON.stringify(answered),
    `messages.${at}: each tool_use must have a corresponding tool_result block in the next message`,
  );
  need(blocks.slice(0, results.length).every(isType("tool_result")), `messages.${at}: tool_result blocks come first`);
}

function checkIds(turns: readonly Fields[]): void {
  const ids = turns.flatMap((turn) =>
    blocksOf(turn)
      .filter(isType("tool_use"))
      .map(({ id }) => id),
  );
  need(new Set(ids).size === ids.length, "tool_use ids must be unique");
}

function checkThinking({ thinking }: Fields, turns: readonly Fields[]): void {
  const type = (thinking as Fields | undefined)?.type;
  const last = blocksOf(turns.findLast(({ role }) => role === "assistant"));
  if (type === "disabled") {
    need(!last.some(isThought), "when thinking is disabled, the final assistant message cannot contain thinking");
  }
  const goesOn = blocksOf(turns.at(-1)).some(isType("tool_result"));
  if (!goesOn || (type !== "enabled" && type !== "adaptive")) return;
  need(
    last.slice(0, 1).some(isThought),
    "expected thinking or redacted_thinking: when thinking is enabled, a final assistant message must start with it",
  );
}
