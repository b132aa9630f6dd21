/**
 * Keeps a model's failures from ending the graph (delegation-behaviour 3.5): attempts, the circuit breaker, fallback
 * models, and at last an answer that carries the fallback mark (R86). Rules and words are `domain/model-errors`'.
 * Sits inside the hooks that shape the request, so each attempt sends the same one. Passes on what is no `ModelFailure`
 * (a fault of ours, an abort, LangGraph's signals) and an answer that stayed empty: R98 decides about that one.
 */
import { AIMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { LangGraphRunnableConfig } from "@langchain/langgraph";
import type { CircuitResult } from "../../domain/model-errors/circuit.ts";
import { isRetriable, isStreamDrop } from "../../domain/model-errors/classify-model-error.ts";
import { type FailedModel, toFallbackAnswer } from "../../domain/model-errors/fallback-answer.ts";
import type { RetryPolicy } from "../../domain/model-errors/retry-policy.ts";
import { invariant } from "../../domain/shared/assert.ts";
import { err, type Result } from "../../domain/shared/result.ts";
import { type AttemptOptions, type FailedTurn, type ModelRetry, withAttempts } from "../models/attempts.ts";
import type { CircuitBreakers, CircuitPass } from "../models/circuit-breakers.ts";
import type { BegunAnswer, ChatModel, ModelFailure } from "../models/model.ts";
import type { Sleep } from "../models/sleep.ts";
import type { StreamBreaks } from "../models/stream-breaks.ts";
import type { AgentHook } from "./hook.ts";

export interface ModelErrorsOptions {
  readonly policy: RetryPolicy;
  /** The object's: shared by its lead and its children. */
  readonly circuits: CircuitBreakers;
  readonly random: () => number;
  readonly newId: () => string;
  /**
   * Whether a retry is told on the custom stream. Only a lead's is: a child inherits its parent's writer, and what it
   * wrote there would look like the lead's.
   */
  readonly tellsRetries: boolean;
  readonly sleep?: Sleep;
}

export function modelErrors(options: ModelErrorsOptions): AgentHook {
  return {
    name: "model_errors",
    async wrapModelCall(request, next, { config }) {
      const { model: asked } = request;
      invariant(asked !== undefined, "a model call without its model");
      const failed: FailedCall[] = [];
      for (const model of [asked, ...(asked.fallbacks ?? [])]) {
        const attemptOnce = (begun?: BegunAnswer) => next({ ...request, model, ...(begun ? { begun } : {}) });
        const called = await callModel(options, attemptOnce, {
          model,
          config,
          once: model !== asked,
        });
        if (called.ok) return withBreaks(called.value, failed);
        failed.push(called.error);
      }
      const [first, ...others] = failed;
      invariant(first !== undefined, "a model call without an end");
      if (first.failure?.reason === "empty") throw first.failure;
      const { text, kwargs } = toFallbackAnswer([first.told, ...others.map(({ told }) => told)]);
      const fallback = new AIMessage({ id: options.newId(), content: text, additional_kwargs: { ...kwargs } });
      return withBreaks(fallback, failed);
    },
  };
}

interface FailedCall {
  readonly told: FailedModel;
  /** Absent when the model was not asked. */
  readonly failure?: ModelFailure;
  readonly breaks?: StreamBreaks;
}

/** What broke is kept with the answer, whoever gave it at last. */
function withBreaks(answer: AIMessage, failed: readonly FailedCall[]): AIMessage {
  return failed.reduceRight((told, { breaks }) => breaks?.recordOn(told) ?? told, answer);
}

interface Call {
  readonly model: ChatModel;
  readonly config: RunnableConfig;
  /** A model that stands in gets one attempt: the turn has waited long enough. */
  readonly once: boolean;
}

async function callModel(
  options: ModelErrorsOptions,
  attemptOnce: (begun?: BegunAnswer) => Promise<AIMessage>,
  call: Call,
): Promise<Result<AIMessage, FailedCall>> {
  const { name } = call.model;
  const pass = options.circuits.enter(name);
  if (pass === undefined) return err({ told: refusedByCircuit(name) });
  let result: CircuitResult = "uncounted";
  try {
    const turn = await withAttempts(attemptOnce, call.config.signal, attemptOptions(options, call, pass));
    result = turn.ok ? "succeeded" : resultOf(turn.error);
    return turn.ok
      ? turn
      : err({ told: toFailedModel(name, turn.error), failure: turn.error.failure, breaks: turn.error.breaks });
  } finally {
    pass.leave(result);
  }
}

/** A burst limit and an empty answer come from a provider that works. */
function resultOf({ reason, failure }: FailedTurn): CircuitResult {
  const counts = isRetriable(reason) && reason !== "burst_rate" && failure.reason !== "empty";
  return counts ? "failed" : "uncounted";
}

function attemptOptions(options: ModelErrorsOptions, { model, config, once }: Call, pass: CircuitPass): AttemptOptions {
  const { policy, random, sleep, tellsRetries } = options;
  return {
    policy: once || pass.isProbe ? { ...policy, attempts: 1 } : policy,
    random,
    streamBreak: model.streamBreak,
    ...(sleep === undefined ? {} : { sleep }),
    ...(tellsRetries ? { onRetry: (retry) => tellRetry(config, retry) } : {}),
  };
}

function tellRetry(config: LangGraphRunnableConfig, retry: ModelRetry): void {
  const { attempt, attempts, waitMs, reason, failure, broke } = retry;
  config.writer?.({
    type: "llm_retry",
    attempt,
    max_attempts: attempts,
    wait_ms: waitMs,
    reason,
    message: failure.message,
    ...(broke === undefined ? {} : { stream_break: broke.action, partial_text: broke.partial_text }),
  });
}

function toFailedModel(model: string, { failure, reason, partialText }: FailedTurn): FailedModel {
  return {
    model,
    type: failure.name,
    reason,
    isStreamDrop: isStreamDrop(failure),
    message: failure.message,
    partialText,
  };
}

function refusedByCircuit(model: string): FailedModel {
  return {
    model,
    type: "CircuitBreakerOpen",
    reason: "circuit_open",
    isStreamDrop: false,
    message: `model '${model}' is not asked: it failed several times in a row`,
    partialText: "",
  };
}
