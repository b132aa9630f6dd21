/**
 * A Workers AI binding that answers bytes as they are documented, and throws as it is documented to. It stands in for what
 * only an account has; the adapter in front of it is the real one.
 */
import { assertOpenAiRequestBody } from "../../src/agent/models/assert-openai-request-body.ts";
import type { WorkersAiBinding } from "../../src/agent/models/workers-ai.ts";

export interface WorkersAiRun {
  readonly model: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal | undefined;
}

export type WorkersAiAnswer = string | Error | object | ReadableStream<Uint8Array>;

export class FakeWorkersAi implements WorkersAiBinding {
  readonly runs: WorkersAiRun[] = [];
  readonly #answers: WorkersAiAnswer[];

  /** One a run; text is the body of a stream, an error is thrown, an object is a whole answer. */
  constructor(...answers: WorkersAiAnswer[]) {
    this.#answers = answers;
  }

  run(model: string, inputs: Readonly<Record<string, unknown>>, { signal }: { readonly signal?: AbortSignal }) {
    this.runs.push({ model, inputs, signal });
    const messages = inputs["messages"] as readonly { readonly content: unknown; readonly tool_calls?: unknown }[];
    if (messages.some(({ content }) => content === null)) {
      return Promise.reject(new Error("5006: Error: oneOf at '/' not met: content must be a string"));
    }
    // Otherwise the rules are OpenAI's, where a message that only calls has no content.
    assertOpenAiRequestBody({
      ...inputs,
      messages: messages.map((one) => (one.tool_calls && one.content === "" ? { ...one, content: null } : one)),
    });
    const answer = this.#answers.shift();
    if (answer instanceof Error) return Promise.reject(answer);
    return Promise.resolve(typeof answer === "string" ? new Response(answer).body : answer);
  }
}
