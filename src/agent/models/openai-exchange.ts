/**
 * One HTTP exchange with an OpenAI-compatible provider, as the `fetch` of one adapter instance.
 * Owns the idle limit, the reading of server-sent events, the bound on an answer's bytes, and `failure`: why the exchange
 * broke, since the adapter wraps errors until the reason is gone.
 */
import { createParser } from "eventsource-parser";
import { IdleTimer } from "./idle-timer.ts";
import { ModelFailure } from "./model.ts";
import type { OpenAiStreamNormaliser } from "./openai-stream-normaliser.ts";
import { toStreamError } from "./openai-stream-normaliser.ts";
import { toProviderFailure } from "./provider-failure.ts";
import { isPlainObject } from "./request-rules.ts";

/** Two million tokens of framing; an endless stream would otherwise fill the isolate. */
export const ANSWER_BYTES_MAX = 16 * 1024 * 1024;

export interface ExchangeOptions {
  readonly fetch: typeof fetch;
  readonly idleMs: number;
  readonly now: () => number;
  readonly normaliser: OpenAiStreamNormaliser;
}

export class OpenAiExchange {
  /** Set before the adapter sees the error. */
  failure: ModelFailure | undefined;
  readonly #options: ExchangeOptions;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  /** Given to the adapter as its `fetch`. */
  readonly fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    const idle = new IdleTimer(this.#options.idleMs);
    const signals = init.signal ? [init.signal, idle.signal] : [idle.signal];
    try {
      const response = await this.#options.fetch(input, { ...init, signal: AbortSignal.any(signals) });
      idle.touch();
      if (!response.ok) throw await toProviderFailure(response, this.#options.now());
      if (!response.body || !isEventStream(response)) throw await toUnstreamedFailure(response);
      return new Response(this.#normalise(response.body, idle), {
        headers: { "content-type": "text/event-stream" },
      });
    } catch (error) {
      idle.stop();
      throw this.#fail(error, idle);
    }
  };

  /** Pull-based: the provider is read only as fast as the adapter takes events. */
  #normalise(body: ReadableStream<Uint8Array>, idle: IdleTimer): ReadableStream<Uint8Array> {
    const events = this.#events(body, idle);
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const next = await events.next();
            if (next.done) controller.close();
            else controller.enqueue(next.value);
          } catch (error) {
            controller.error(this.#fail(error, idle));
          }
        },
        cancel: async () => {
          await events.return(undefined);
        },
      },
      { highWaterMark: 0 },
    );
  }

  async *#events(body: ReadableStream<Uint8Array>, idle: IdleTimer): AsyncGenerator<Uint8Array> {
    const { normaliser } = this.#options;
    const reader = body.getReader();
    const encode = new TextEncoder();
    try {
      for await (const data of readEventData(reader, idle)) {
        for (const chunk of normaliser.push(data)) yield encode.encode(`data: ${JSON.stringify(chunk)}\n\n`);
      }
    } catch (error) {
      // A whole answer stays one when the connection breaks or falls silent behind its finish reason.
      if (!normaliser.isFinished || error instanceof ModelFailure) throw error;
    } finally {
      idle.stop();
      await reader.cancel().catch(() => undefined);
    }
    for (const chunk of normaliser.finish()) yield encode.encode(`data: ${JSON.stringify(chunk)}\n\n`);
    yield encode.encode("data: [DONE]\n\n");
  }

  #fail(error: unknown, idle: IdleTimer): unknown {
    if (idle.expired)
      this.failure ??= new ModelFailure("idle", `the provider was silent for ${this.#options.idleMs} ms`);
    else if (error instanceof ModelFailure) this.failure ??= error;
    else
      this.failure ??= new ModelFailure("provider", `no connection to the provider: ${String(error)}`, {
        cause: error,
      });
    return this.failure;
  }
}

function isEventStream(response: Response): boolean {
  return response.headers.get("content-type")?.includes("text/event-stream") ?? false;
}

/** A 200 that is not a stream: a proxy's error object, or a provider that ignored `stream`. */
async function toUnstreamedFailure(response: Response): Promise<ModelFailure> {
  const text = await response.text();
  try {
    const body: unknown = JSON.parse(text);
    if (isPlainObject(body) && body.error) return toStreamError(body.error);
  } catch {
    // Not JSON: the plain failure below says all there is to say.
  }
  return new ModelFailure("stream_error", "the provider answered 200 without an event stream");
}

/** The data of each event until `[DONE]` or the end of the body. */
async function* readEventData(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  idle: IdleTimer,
): AsyncGenerator<string> {
  const pending: string[] = [];
  const parser = createParser({
    onEvent: (event) => pending.push(event.event === "error" ? JSON.stringify({ error: event.data }) : event.data),
  });
  const decoder = new TextDecoder();
  let bytes = 0;
  for (;;) {
    idle.touch();
    const { done, value } = await idle.race(reader.read());
    if (done) return;
    bytes += value.byteLength;
    if (bytes > ANSWER_BYTES_MAX)
      throw new ModelFailure("stream_error", `an answer of more than ${ANSWER_BYTES_MAX} bytes`);
    parser.feed(decoder.decode(value, { stream: true }));
    for (const data of pending.splice(0)) {
      if (data.trim() === "[DONE]") return;
      yield data;
    }
  }
}
