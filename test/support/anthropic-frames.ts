/** A scripted answer as events of Anthropic's Messages stream, regular or broken on request. */
import { countWords, firstHalf, type ScriptedAnswer, toTokens } from "../../src/agent/models/script-answer.ts";

/** Stands in all thinking, so that a test finds it wherever it should not be. */
export const THINKING_MARK = "SECRET-THOUGHT";

export interface AnthropicFrameOptions {
  readonly model: string;
  readonly thinks: boolean;
  /** redacted, refusal, no-usage, cached, repeat-ids, whole-input, unsigned, late-thinking. */
  readonly quirks: ReadonlySet<string>;
  readonly failure: ScriptedAnswer["failure"];
  /** Tells the server what it signed. */
  readonly issue: (signature: string, thinking: string) => void;
}

let answered = 0;

export function* toAnthropicFrames(answer: ScriptedAnswer, options: AnthropicFrameOptions): Generator<string> {
  answered += 1;
  const { quirks, failure } = options;
  const usage = quirks.has("no-usage") ? undefined : toUsage(answer, quirks);
  const message = { id: `msg_${answered}`, type: "message", role: "assistant", content: [], model: options.model };
  yield frame("message_start", {
    message: { ...message, stop_reason: null, ...(usage && { usage: { ...usage, output_tokens: 1 } }) },
  });
  yield frame("ping", {});
  yield* toBlocks(answer, options);
  if (failure?.kind === "cut" || failure?.kind === "stall") return;
  if (failure?.kind === "error") {
    yield frame("error", { error: { type: "overloaded_error", message: "Overloaded" } });
    return;
  }
  const stop_reason = stopReason(answer, options);
  yield frame("message_delta", {
    delta: { stop_reason, stop_sequence: null },
    ...(usage && { usage: { output_tokens: usage.output_tokens } }),
  });
  yield frame("message_stop", {});
}

function frame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

function stopReason({ calls }: ScriptedAnswer, { quirks, failure }: AnthropicFrameOptions): string {
  if (quirks.has("refusal")) return "refusal";
  if (failure?.kind === "length") return "max_tokens";
  return calls.length > 0 && failure?.kind !== "empty" ? "tool_use" : "end_turn";
}

function* toBlocks(answer: ScriptedAnswer, options: AnthropicFrameOptions): Generator<string> {
  const { quirks, failure } = options;
  const blocks = new BlockFrames();
  if (options.thinks) yield* toThinking(blocks, options);
  if (failure?.kind === "empty" || quirks.has("refusal")) return;
  const tokens = toTokens(answer.text);
  const said = failure ? firstHalf(tokens) : tokens;
  const deltas = said.map((text) => ({ type: "text_delta", text }));
  if (deltas.length > 0) yield* blocks.block({ type: "text", text: "" }, deltas);
  if (options.thinks && quirks.has("late-thinking")) {
    yield* blocks.block({ type: "thinking", thinking: "" }, [
      { type: "thinking_delta", thinking: `${THINKING_MARK} late` },
      { type: "signature_delta", signature: "never-to-be-sent-back" },
    ]);
  }
  if (failure && failure.kind !== "length") return;
  for (const [at, { name, rawArguments }] of answer.calls.entries()) {
    const id = quirks.has("repeat-ids") ? `toolu_${at}` : `toolu_${answered}_${at}`;
    const raw = failure ? rawArguments.slice(0, Math.ceil(rawArguments.length / 2)) : rawArguments;
    const whole = quirks.has("whole-input") || raw === "{}";
    const pieces = whole ? [""] : ["", ...(raw.match(/[\s\S]{1,7}/g) ?? [])];
    const input = whole ? (JSON.parse(raw) as object) : {};
    yield* blocks.block(
      { type: "tool_use", id, name, input },
      pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
    );
  }
}

function* toThinking(blocks: BlockFrames, { quirks, issue }: AnthropicFrameOptions): Generator<string> {
  const thinking = `${THINKING_MARK} ${answered}: wäge ab, then decide. `;
  const signature = `signature-${answered}/+=`;
  if (quirks.has("redacted")) {
    issue(`redacted-${answered}`, "");
    yield* blocks.block({ type: "redacted_thinking", data: `redacted-${answered}` }, []);
  }
  issue(signature, thinking);
  yield* blocks.block({ type: "thinking", thinking: "", signature: "" }, [
    ...toTokens(thinking).map((text) => ({ type: "thinking_delta", thinking: text })),
    ...(quirks.has("unsigned") ? [] : [{ type: "signature_delta", signature }]),
  ]);
}

/** Numbers the blocks of one message. */
class BlockFrames {
  #index = 0;

  *block(content_block: object, deltas: readonly object[]): Generator<string> {
    const index = this.#index;
    this.#index += 1;
    yield frame("content_block_start", { index, content_block });
    for (const delta of deltas) yield frame("content_block_delta", { index, delta });
    yield frame("content_block_stop", { index });
  }
}

function toUsage(answer: ScriptedAnswer, quirks: ReadonlySet<string>) {
  if (answer.usage === "none") return undefined;
  const spoken = [answer.text, ...answer.calls.map((call) => call.rawArguments)];
  const counted = { input: 10, output: spoken.reduce((sum, text) => sum + countWords(text), 0) };
  const { input, output } = answer.usage === "counted" ? counted : answer.usage;
  const cache = quirks.has("cached") ? { cache_read_input_tokens: 100, cache_creation_input_tokens: 20 } : {};
  return { input_tokens: input, output_tokens: output, ...cache };
}
