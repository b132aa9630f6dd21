/**
 * One child graph in this process: the driver that `spawn` and `fork` share (architecture sections 4 and 8).
 * Owns the child's first state and the reading of its stream. Invariants: fresh ThreadState (R128); after a crash an
 * interactive child goes on from its own last step; the prompt is sent verbatim; what came with the history is never told
 * as a step, counted or taken for the result; a structured answer counts once it stands in the committed state.
 */
import { AIMessage, HumanMessage, type BaseMessage, type ContentBlock } from "@langchain/core/messages";
import { isGraphBubbleUp } from "@langchain/langgraph";
import type { AgentGraph } from "../../graph/agent-graph.ts";
import type { AgentHook } from "../../hooks/hook.ts";
import { toChildResult, toStoppedResult } from "../child-result.ts";
import { InFlightCalls } from "../in-flight-calls.ts";
import type { SubagentRequest, SubagentResult, SubagentRun } from "../provider.ts";
import { StepCapture } from "../step-capture.ts";
import { findStructured, structuredOutput } from "../structured-output.ts";
import { childConfig, childGraph } from "./child-graph.ts";

export { CHILD_DEPTH_KEY, CHILD_TASK_KEY } from "./child-graph.ts";

export interface InProcessChild {
  readonly request: SubagentRequest;
  /** Messages that stand before the prompt; no open calls. */
  readonly history?: readonly BaseMessage[];
  /** The provider's own, innermost. */
  readonly hooks?: readonly AgentHook[];
}

export class InProcessRun implements SubagentRun {
  readonly id: string;
  readonly result: Promise<SubagentResult>;
  readonly #abort = new AbortController();
  readonly #aborted = Promise.withResolvers<SubagentResult>();
  readonly #calls = new InFlightCalls();
  readonly #driven: Promise<unknown>;
  readonly #history: readonly BaseMessage[];
  readonly #messages: BaseMessage[];
  readonly #isStructured: boolean;
  /** How much of `#messages` the last committed step holds. */
  #committed = 0;
  #disposal: Promise<void> | undefined;

  /** Throws when the request's signal has fired, or it cannot be carried out: then there is no child. */
  constructor({ request, history = [], hooks = [] }: InProcessChild) {
    const { outputSchema, agent } = request;
    request.signal.throwIfAborted();
    this.id = request.id;
    this.#history = history;
    this.#messages = [...history, toHuman(request)];
    this.#isStructured = outputSchema !== undefined;
    const output = this.#isStructured ? structuredOutput(outputSchema) : undefined;
    const outermost = output === undefined ? [this.#calls.hook] : [this.#calls.hook, output.hook];
    const graph = childGraph(request, [...outermost, ...agent.hooks, ...hooks], output);
    const signal = AbortSignal.any([request.signal, this.#abort.signal]);
    signal.addEventListener("abort", () => this.#aborted.resolve(this.#stopped("aborted")), { once: true });
    const driven = this.#drive(graph, request, signal);
    this.#driven = driven.catch(() => undefined);
    this.result = Promise.race([driven, this.#aborted.promise]);
  }

  /** Everything said so far, the history included. */
  get conversation(): readonly BaseMessage[] {
    return this.#messages;
  }

  cancel(reason = "cancelled"): void {
    this.#abort.abort(new Error(reason));
  }

  dispose(): Promise<void> {
    this.#disposal ??= this.#quiesce();
    return this.#disposal;
  }

  async #quiesce(): Promise<void> {
    this.cancel("disposed");
    await this.#driven;
    await this.#calls.returned();
  }

  async #drive(graph: AgentGraph, request: SubagentRequest, signal: AbortSignal): Promise<SubagentResult> {
    try {
      await this.#follow(graph, request, signal);
      return this.#withStructured(withStopReason(toChildResult(this.#own()), this.#own()));
    } catch (error) {
      if (error instanceof Error && isGraphBubbleUp(error)) throw error;
      return signal.aborted ? this.#stopped("aborted") : this.#withStructured(toStoppedResult(this.#own(), error));
    }
  }

  async #follow(graph: AgentGraph, request: SubagentRequest, signal: AbortSignal): Promise<void> {
    const capture = new StepCapture();
    capture.capture(this.#history);
    const stream = await graph.stream(
      { messages: [...this.#messages] },
      { ...childConfig(request, signal), streamMode: ["updates", "values"] },
    );
    let isFirst = true;
    for await (const [mode, chunk] of stream as AsyncIterable<[string, unknown]>) {
      const messages = mode === "values" ? messagesIn(chunk) : updatedMessages(chunk);
      if (mode === "values") this.#commit(messages);
      // The first state holds steps only when the child goes on after a crash: those were told before it.
      const origin = isFirst ? "restored" : "new";
      for (const message of capture.capture(messages)) {
        if (mode !== "values") this.#messages.push(message);
        request.onMessage?.(message, origin);
      }
      isFirst = false;
    }
  }

  #commit(messages: readonly BaseMessage[]): void {
    this.#messages.splice(0, Infinity, ...messages);
    this.#committed = messages.length;
  }

  #stopped(stopReason: string): SubagentResult {
    return this.#withStructured({ ...toChildResult(this.#own()), stopReason });
  }

  /** A child that ends by itself without the answer it was asked for has not completed; it is not asked again. */
  #withStructured(result: SubagentResult): SubagentResult {
    if (!this.#isStructured) return result;
    const found = findStructured(this.#own(this.#messages.slice(0, this.#committed)));
    if (found !== undefined) return { ...result, structured: found.value };
    return result.stopReason === "completed" ? { ...result, stopReason: "error", diagnostic: NO_STRUCTURED } : result;
  }

  #own(messages: readonly BaseMessage[] = this.#messages): readonly BaseMessage[] {
    if (this.#history.length === 0) return messages;
    const before = new Set(this.#history.map(({ id }) => id));
    return messages.filter(({ id }) => id === undefined || !before.has(id));
  }
}

const NO_STRUCTURED = "The subagent ended without reporting an answer of the requested form";

function toHuman({ prompt, parent }: SubagentRequest): HumanMessage {
  const content = typeof prompt === "string" ? prompt : prompt.map((block): ContentBlock.Text => ({ ...block }));
  return new HumanMessage({ id: parent.services.newId(), content });
}

/** What a provider calls the end of an answer that is not one of the model's choice. */
const STOP_REASONS: Readonly<Record<string, string>> = { length: "max-tokens", content_filter: "refusal" };

function withStopReason(result: SubagentResult, messages: readonly BaseMessage[]): SubagentResult {
  if (result.stopReason !== "completed") return result;
  const last = messages.findLast((message) => AIMessage.isInstance(message));
  const finish: unknown = last?.response_metadata["finish_reason"];
  const stopReason = typeof finish === "string" ? STOP_REASONS[finish] : undefined;
  return stopReason === undefined ? result : { ...result, stopReason };
}

function messagesIn(values: unknown): readonly BaseMessage[] {
  return (values as { messages?: BaseMessage[] }).messages ?? [];
}

/** An `updates` chunk: node name to its update, or to several when the node returned Commands. */
function updatedMessages(chunk: unknown): readonly BaseMessage[] {
  const updates = Object.values(chunk as Record<string, unknown>).flat();
  return updates.flatMap((update) => (update === null || typeof update !== "object" ? [] : messagesIn(update)));
}
