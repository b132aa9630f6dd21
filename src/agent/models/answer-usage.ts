/**
 * The tokens of one answer as its message carries them: the provider's report in `usage_metadata`, or, when it made none,
 * Deputy's estimate under a key of its own. Owns reading both and making the estimate; who adds them up is elsewhere.
 */
import { AIMessage, type BaseMessage, type UsageMetadata } from "@langchain/core/messages";
import type { CallerUsage, TokenCounts } from "../../domain/run/run-usage.ts";
import { estimateTokens, type TokenEstimate } from "../../domain/run/token-estimate.ts";
import { copyMessage } from "../thread-state/message-forms.ts";

/** In `additional_kwargs`: the mark that these counts are nobody's report. Not sent to providers. */
export const USAGE_ESTIMATE_KEY = "deputy_usage_estimate";

/** In `additional_kwargs`: an estimate for the requests of the same turn whose answer broke off. Not sent to providers. */
export const BROKEN_USAGE_KEY = "deputy_broken_usage";

/** `undefined` without a report and for a report of nothing: half a record or zeros say nothing (R67). */
export function reportedUsage(message: BaseMessage): TokenCounts | undefined {
  if (!AIMessage.isInstance(message)) return undefined;
  // The library types `usage_metadata` as never for a message without declared tools.
  const usage = message.usage_metadata as unknown as UsageMetadata | undefined;
  if (usage === undefined) return undefined;
  const { input_tokens, output_tokens } = usage;
  const total = usage.total_tokens > 0 ? usage.total_tokens : input_tokens + output_tokens;
  if (!(total > 0)) return undefined;
  const cached = usage.input_token_details?.cache_read ?? 0;
  return {
    answers: 1,
    input_tokens,
    output_tokens,
    total_tokens: total,
    ...(cached > 0 ? { cache_read_tokens: cached } : {}),
  };
}

/** `answer` with an estimate where its provider reported nothing; the request's texts and the answer's are counted. */
export function withUsageEstimate(answer: AIMessage, request: readonly BaseMessage[]): AIMessage {
  if (answer.usage_metadata !== undefined) return answer;
  const estimate = estimateUsage(request, charsOf(answer));
  const additional_kwargs = { ...answer.additional_kwargs, [USAGE_ESTIMATE_KEY]: estimate };
  return copyMessage(answer, { additional_kwargs }) as AIMessage;
}

export function estimateUsage(request: readonly BaseMessage[], outputChars: number): TokenEstimate {
  const inputChars = request.reduce((sum, message) => sum + charsOf(message), 0);
  return estimateTokens(inputChars, outputChars);
}

/** What an answer adds to its run's usage; `undefined` for a message that is no answer or says nothing of tokens. */
export function usageOfAnswer(caller: string, message: BaseMessage): CallerUsage | undefined {
  const reported = reportedUsage(message);
  const estimate = message.additional_kwargs[USAGE_ESTIMATE_KEY] as TokenEstimate | undefined;
  const model: unknown = message.response_metadata["model_name"];
  const who = { caller, model_name: typeof model === "string" ? model : null };
  if (!AIMessage.isInstance(message)) return undefined;
  const own = reported === undefined && estimate !== undefined ? { answers: 1, ...estimate } : undefined;
  const estimated = withBroken(own, message.additional_kwargs[BROKEN_USAGE_KEY] as BrokenUsage | undefined);
  if (reported === undefined && estimated === undefined) return undefined;
  return { ...who, ...(reported === undefined ? {} : { reported }), ...(estimated === undefined ? {} : { estimated }) };
}

/** Requests whose stream broke before the answer: no provider reports those. PERSISTED with the answer. */
export type BrokenUsage = TokenEstimate & { readonly requests: number };

function withBroken(own: TokenCounts | undefined, broken: BrokenUsage | undefined): TokenCounts | undefined {
  if (broken === undefined) return own;
  return {
    answers: (own?.answers ?? 0) + broken.requests,
    input_tokens: (own?.input_tokens ?? 0) + broken.input_tokens,
    output_tokens: (own?.output_tokens ?? 0) + broken.output_tokens,
    total_tokens: (own?.total_tokens ?? 0) + broken.total_tokens,
  };
}

function charsOf(message: BaseMessage): number {
  const calls = AIMessage.isInstance(message) ? (message.tool_calls ?? []) : [];
  const text = typeof message.content === "string" ? message.content : JSON.stringify(message.content);
  return text.length + calls.reduce((sum, { name, args }) => sum + name.length + JSON.stringify(args).length, 0);
}
