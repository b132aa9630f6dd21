/**
 * A rough token count for answers whose provider reports none: four characters a token, the rule of thumb for English
 * text. Good for the size of a bill, not for the bill; it is marked wherever it is stored and never joins reported counts.
 */
import type { TokenCounts } from "./run-usage.ts";

const CHARS_PER_TOKEN = 4;

export type TokenEstimate = Omit<TokenCounts, "answers" | "cache_read_tokens">;

export function estimateTokens(inputChars: number, outputChars: number): TokenEstimate {
  const input_tokens = Math.ceil(inputChars / CHARS_PER_TOKEN);
  const output_tokens = Math.ceil(outputChars / CHARS_PER_TOKEN);
  return { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens };
}
