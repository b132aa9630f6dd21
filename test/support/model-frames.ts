/** The answer side of the model server's wire: server-sent events of a scripted answer, regular or odd on request. */
import { countWords, firstHalf, type ScriptedAnswer, toTokens } from "../../src/agent/models/script-answer.ts";
import { type WireRequest, wireText } from "./model-wire.ts";

export interface FrameOptions {
  readonly request: WireRequest;
  /** no-role, shared-index, missing-index, glued, repeat-ids, no-usage, no-done, split-frames, reset, cut-call. */
  readonly quirks: ReadonlySet<string>;
  readonly failure: ScriptedAnswer["failure"];
}

let answered = 0;

export function* toFrames(answer: ScriptedAnswer, options: FrameOptions): Generator<string> {
  answered += 1;
  const id = options.quirks.has("repeat-ids") ? "chatcmpl-1" : `chatcmpl-${answered}`;
  const frame = (fields: object) =>
    `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created: 0, model: options.request.model, ...fields })}\n\n`;
  const kind = options.failure?.kind;
  yield ": keep-alive\n\n";
  for (const delta of toDeltas(answer, options)) yield frame({ choices: [{ index: 0, delta, finish_reason: null }] });
  if (kind === "cut" || kind === "stall") return;
  if (kind === "error") {
    yield 'data: {"error":{"message":"overloaded in the stream","code":529}}\n\n';
    return;
  }
  const called = answer.calls.length > 0 && kind !== "empty";
  const finish_reason = kind === "length" ? "length" : called ? "tool_calls" : "stop";
  yield frame({ choices: [{ index: 0, delta: {}, finish_reason }] });
  const usage = toUsage(answer, options);
  if (usage) yield frame({ choices: [], usage });
  if (!options.quirks.has("no-done")) yield "data: [DONE]\n\n";
}

function* toDeltas(answer: ScriptedAnswer, { quirks, failure }: FrameOptions): Generator<object> {
  if (!quirks.has("no-role")) yield { role: "assistant", content: "" };
  if (failure?.kind === "empty") return;
  const tokens = toTokens(answer.text);
  for (const content of failure ? firstHalf(tokens) : tokens) yield { content };
  if (failure && failure.kind !== "length" && !quirks.has("cut-call")) return;
  const calls = quirks.has("glued") ? glue(answer.calls) : answer.calls;
  for (const [at, call] of calls.entries()) {
    const id = quirks.has("repeat-ids") ? `call_${at}` : `call_${answered}_${at}`;
    const index = quirks.has("missing-index") ? {} : { index: quirks.has("shared-index") ? 0 : at };
    const raw = failure ? call.rawArguments.slice(0, Math.ceil(call.rawArguments.length / 2)) : call.rawArguments;
    yield { tool_calls: [{ ...index, id, type: "function", function: { name: call.name, arguments: "" } }] };
    for (const piece of raw.match(/[\s\S]{1,7}/g) ?? [])
      yield { tool_calls: [{ ...index, function: { arguments: piece } }] };
  }
}

/** Neighbouring calls of one tool as one call with their argument objects one behind the other. */
function glue(calls: ScriptedAnswer["calls"]): { name: string; rawArguments: string }[] {
  const glued: { name: string; rawArguments: string }[] = [];
  for (const call of calls) {
    const last = glued.at(-1);
    if (last?.name === call.name) last.rawArguments += call.rawArguments;
    else glued.push({ ...call });
  }
  return glued;
}

function toUsage(answer: ScriptedAnswer, { request, quirks }: FrameOptions): object | undefined {
  if (answer.usage === "none" || quirks.has("no-usage") || !request.stream_options?.include_usage) return undefined;
  const counted = answer.usage === "counted";
  const spoken = [answer.text, ...answer.calls.map((call) => call.rawArguments)];
  const input = counted
    ? request.messages.reduce((sum, one) => sum + countWords(wireText(one)), 0)
    : answer.usage.input;
  const output = counted ? spoken.reduce((sum, text) => sum + countWords(text), 0) : answer.usage.output;
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
