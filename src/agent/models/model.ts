/**
 * The port every model call goes through, lead and child alike. A provider is one file that builds a `ChatModel`.
 * Owns the contract only. The contract: the request passes `assertModelRequest`; the answer carries ids minted by us
 * (message and calls), strictly parsed arguments and a finish reason, or the call throws a `ModelFailure`.
 */
import type { AIMessage, BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import type { TokenEstimate } from "../../domain/run/token-estimate.ts";
import type { ModelErrorFacts, ModelFailureReason } from "../../domain/model-errors/classify-model-error.ts";
import type { StreamBreakAction } from "./stream-breaks.ts";

/** A tool as a model sees it. `parameters` is a JSON Schema object. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  readonly parameters: Record<string, unknown>;
}

export interface ModelRequest {
  /** At most one system message, first; the rest obeys `assertModelRequest`. */
  readonly messages: readonly BaseMessage[];
  readonly tools: readonly ToolSpec[];
  /** Whether extended thinking is asked for. A model whose `thinking` flag is off does not think all the same. */
  readonly thinking?: boolean;
  /** An answer whose stream broke, to go on with; the answer is what follows its text. */
  readonly begun?: BegunAnswer;
  /** Who is to answer, on the way through the hooks; a model itself is not given it. */
  readonly model?: ChatModel;
}

/** The text an answer has so far, under the id it is streamed with. */
export interface BegunAnswer {
  readonly messageId: string;
  readonly text: string;
}

/** What a stream had given when it broke, and what its request cost, as far as anybody can tell. */
export interface BrokenAnswer extends BegunAnswer {
  /** It had begun to call: half a call is not gone on with. */
  readonly hasCalls: boolean;
  readonly usage: TokenEstimate;
}

export interface ChatModel {
  /** The name in `deputy.config.ts`; what `subagent_model_name` and events carry. */
  readonly name: string;
  readonly provider: string;
  /** Extended thinking can be switched on; absent means it cannot. */
  readonly thinking?: boolean;
  /** It reads images; absent means it does not. */
  readonly vision?: boolean;
  /** What is done when its answer breaks off; absent means `retry`. */
  readonly streamBreak?: StreamBreakAction;
  /** Asked once each, in order, when this one has no answer. Their own fallbacks are not followed. */
  readonly fallbacks?: readonly ChatModel[];
  /**
   * One streamed generation. Tokens reach LangGraph's `messages` stream through `config.callbacks`; `config.signal`
   * aborts the provider's request. Calls whose arguments do not parse are kept with `args: {}` and named in
   * `additional_kwargs.deputy_invalid_tool_calls` ({ [call id]: { raw, error } }), so that the tools node answers them
   * with an error result.
   */
  generate(request: ModelRequest, config: RunnableConfig): Promise<AIMessage>;
}

export interface ModelFailureDetails {
  readonly status?: number | undefined;
  readonly code?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly partialText?: string | undefined;
  readonly broken?: BrokenAnswer | undefined;
  readonly cause?: unknown;
}

export class ModelFailure extends Error implements ModelErrorFacts {
  override readonly name = "ModelFailure";
  readonly reason: ModelFailureReason;
  readonly status: number | undefined;
  /** The provider's own word for the error, such as `insufficient_quota`. */
  readonly code: string | undefined;
  /** From `Retry-After`, in milliseconds, unbounded; the retry policy bounds it. */
  readonly retryAfterMs: number | undefined;
  /** What the stream had said before it broke; "" for nothing. */
  readonly partialText: string;
  /** Set when the stream had begun; what an attempt after it may build on. */
  readonly broken: BrokenAnswer | undefined;

  constructor(reason: ModelFailureReason, message: string, details: ModelFailureDetails = {}) {
    super(message, { cause: details.cause });
    this.reason = reason;
    this.status = details.status;
    this.code = details.code;
    this.partialText = details.partialText ?? "";
    this.broken = details.broken;
    this.retryAfterMs = details.retryAfterMs;
  }
}

export interface ModelCatalog {
  readonly defaultName: string;
  /** `undefined` or "inherit" gives the default. An unknown name gives `undefined`. */
  find(name?: string): ChatModel | undefined;
  names(): readonly string[];
}
