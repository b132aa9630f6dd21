/** What a thread's runs used, summed (`GET /threads/{t}/token-usage`). Counts that no provider reported are estimates. */
import { z } from "zod";

export interface TokenUsageQuery {
  /** Runs that have not ended count with what they used so far. */
  readonly include_active: boolean;
}

export const tokenUsageSchema = z
  .object({
    thread_id: z.string(),
    total_tokens: z.int(),
    total_input_tokens: z.int(),
    total_output_tokens: z.int(),
    /** Of `total_tokens`: counted by Deputy, since the provider said nothing. */
    estimated_tokens: z.int(),
    /** Runs that used something. */
    total_runs: z.int(),
    by_model: z.record(z.string(), z.object({ tokens: z.int(), runs: z.int() })),
    by_caller: z.object({ lead_agent: z.int(), subagent: z.int(), middleware: z.int() }),
    /** `by_caller.subagent` by the subagent's name. */
    by_subagent: z.record(z.string(), z.int()),
  })
  .meta({ ref: "TokenUsage" });
export type TokenUsage = z.infer<typeof tokenUsageSchema>;
