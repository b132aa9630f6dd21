/**
 * What a submission becomes, the same wherever it is taken in: by a thread's object or by a runtime of the caller's.
 * Owns the hash that tells one body from another, the limits it is held to, and what is kept of its subagent.
 */
import type { DeputyConfig } from "../../config.ts";
import type { BatchLimits } from "../../domain/batch/batch-limits.ts";
import type { BatchDraft } from "../../domain/batch/validate-batch.ts";
import { sha256 } from "../sha256.ts";
import { withoutOperatorSecrets } from "../subagents/operator-secrets.ts";
import type { SubagentDefinition } from "../subagents/subagent-definition.ts";

export interface ResolvedSubagent {
  /** Stored with the batch as it is now; must survive JSON. */
  readonly definition: unknown;
  readonly timeoutSeconds: number;
  /** What an attempt does, it does outside: an item of it is not attempted again. */
  readonly startsOnce?: boolean;
}

export function toResolvedSubagent(definition: SubagentDefinition): ResolvedSubagent {
  const { timeoutSeconds, acp } = definition;
  return { definition: withoutOperatorSecrets(definition), timeoutSeconds, startsOnce: acp !== undefined };
}

export function configuredLimits(batches: DeputyConfig["subagent_batches"]): BatchLimits {
  return {
    maxItems: batches.max_items,
    defaultLiveItems: batches.default_live_items,
    maxLiveItems: batches.max_live_items,
    defaultRunningItems: batches.default_running_items,
    maxRunningItems: batches.max_running_items,
    defaultAttempts: batches.max_attempts,
  };
}

const ONE_ATTEMPT = { defaultAttempts: 1, maxAttempts: 1 };

/** The limits of a batch of this subagent. */
export function limitsFor({ startsOnce }: ResolvedSubagent, limits: BatchLimits): BatchLimits {
  return startsOnce === true ? { ...limits, ...ONE_ATTEMPT } : limits;
}

/** Equal for equal bodies, whatever the order of their fields was. */
export function hashDraft(draft: BatchDraft): string {
  const canonical = JSON.stringify([
    draft.title,
    draft.subagentType,
    draft.items.map((item) => [item.key, item.prompt]),
    draft.files ?? null,
    draft.maxLiveItems ?? null,
    draft.maxRunningItems ?? null,
    draft.maxAttempts ?? null,
    draft.timeoutSeconds ?? null,
  ]);
  return sha256(canonical);
}
