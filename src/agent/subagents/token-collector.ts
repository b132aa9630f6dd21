/**
 * Counts what one child's model calls used (delegation-behaviour 1.6). Cumulative and deduplicated by message id; an
 * answer without usage adds nothing, and no usage at all stays absent instead of becoming zeros (R63).
 */
import type { BaseMessage } from "@langchain/core/messages";
import type { DelegationUsage } from "../../domain/delegation/delegation-outcome.ts";
import { subagentCaller } from "../../domain/run/run-usage.ts";
import { reportedUsage } from "../models/answer-usage.ts";
import type { ChatModel } from "../models/model.ts";

export interface UsageRecord extends DelegationUsage {
  readonly source_run_id: string;
  /** `subagent:<name>`. */
  readonly caller: string;
  readonly model_name: string | null;
  /** Only when positive. */
  readonly cache_read_tokens?: number;
}

export class TokenCollector {
  readonly #caller: string;
  readonly #modelName: string;
  readonly #records = new Map<string, UsageRecord>();

  constructor(agentName: string, modelName: string) {
    this.#caller = subagentCaller(agentName);
    this.#modelName = modelName;
  }

  /** Messages other than answers, answers without a positive total and answers seen before change nothing. */
  record(message: BaseMessage, modelName: string = this.#modelName): void {
    if (message.id === undefined || this.#records.has(message.id)) return;
    const usage = reportedUsage(message);
    if (usage === undefined) return;
    const { answers: _one, ...counts } = usage;
    const who = { source_run_id: message.id, caller: this.#caller, model_name: modelName };
    this.#records.set(message.id, { ...who, ...counts });
  }

  /** Counts every answer of `model` and of its fallbacks, also one that never reaches the child's state. */
  watch(model: ChatModel): ChatModel {
    return {
      name: model.name,
      provider: model.provider,
      ...(model.fallbacks === undefined ? {} : { fallbacks: model.fallbacks.map((each) => this.watch(each)) }),
      generate: async (request, config) => {
        const answer = await model.generate(request, config);
        this.record(answer, model.name);
        return answer;
      },
    };
  }

  records(): readonly UsageRecord[] {
    return [...this.#records.values()];
  }

  /** A plain sum, or null without records. */
  total(): DelegationUsage | null {
    if (this.#records.size === 0) return null;
    const total = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
    for (const record of this.#records.values()) {
      total.input_tokens += record.input_tokens;
      total.output_tokens += record.output_tokens;
      total.total_tokens += record.total_tokens;
    }
    return total;
  }
}
