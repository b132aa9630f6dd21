/**
 * Models of Workers AI, through the Worker's binding: the OpenAI path with the binding in the place of the network.
 * The binding is a port; nothing here imports the platform. Bound only in deployed environments (docs/deploy.md).
 */
import type { ChatModel } from "./model.ts";
import { generateInOpenAiForm, type OpenAiTuning } from "./openai.ts";
import type { ProviderOptions } from "./provider-exchange.ts";
import { isPlainObject } from "./request-rules.ts";
import { toWorkersAiFailure } from "./workers-ai-errors.ts";
import { WorkersAiStreamNormaliser } from "./workers-ai-stream-normaliser.ts";

/** What is used of `env.AI`. Throws for what Workers AI refuses; a stream is server-sent events. */
export interface WorkersAiBinding {
  run(
    model: string,
    inputs: Readonly<Record<string, unknown>>,
    options: { readonly signal?: AbortSignal },
  ): Promise<unknown>;
}

export interface WorkersAiModelOptions extends Omit<ProviderOptions, "fetch">, OpenAiTuning {
  readonly binding: WorkersAiBinding;
  /** `@cf/…`, as the catalogue of Workers AI names it. */
  readonly model: string;
  readonly vision?: boolean;
}

export function createWorkersAiModel(options: WorkersAiModelOptions): ChatModel {
  const { name, thinking = false, vision = false, binding, newId, random } = options;
  return {
    name,
    provider: "workers-ai",
    thinking,
    vision,
    generate: (request, config) =>
      generateInOpenAiForm(
        {
          ...options,
          fetch: bindingFetch(binding),
          // Never reached: the adapter wants an address and a key before it calls its fetch.
          adapter: { apiKey: "binding", baseUrl: "https://workers-ai.invalid" },
          normaliser: new WorkersAiStreamNormaliser({
            messageId: request.begun?.messageId ?? newId(),
            random,
            begun: request.begun?.text,
          }),
        },
        request,
        config,
      ),
  };
}

/** The request the adapter would have sent, given to the binding; what it answers, as a response. */
function bindingFetch(binding: WorkersAiBinding): typeof fetch {
  return async (_input, init) => {
    const { model, ...inputs } = JSON.parse(init?.body as string) as { model: string } & Record<string, unknown>;
    const { signal } = init ?? {};
    try {
      const answer = await binding.run(model, toInputs(inputs), signal ? { signal } : {});
      if (answer instanceof Response) return answer;
      if (answer instanceof ReadableStream) return new Response(answer, { headers: EVENT_STREAM });
      // Some models answer whole although a stream was asked for.
      return new Response(`data: ${JSON.stringify(answer)}\n\ndata: [DONE]\n\n`, { headers: EVENT_STREAM });
    } catch (error) {
      signal?.throwIfAborted();
      throw toWorkersAiFailure(error);
    }
  };
}

const EVENT_STREAM = { "content-type": "text/event-stream" };

/** Its schemas take no null content; `stream_options` is OpenAI's word for what they do anyway. */
function toInputs({ stream_options: _usage, messages, ...inputs }: Record<string, unknown>): Record<string, unknown> {
  const given: unknown[] = Array.isArray(messages) ? messages : [];
  return {
    ...inputs,
    messages: given.map((message) =>
      isPlainObject(message) && message.content === null ? { ...message, content: "" } : message,
    ),
  };
}
