/**
 * One HTTP exchange with an OpenAI-compatible provider, as the `fetch` of one adapter instance.
 * Owns the idle limit and `failure`: why the exchange broke, since the adapter wraps errors until the reason is gone.
 * Invariant: whatever ends the exchange, the provider's body is cancelled and no timer is left.
 */
import { IdleTimer } from "./idle-timer.ts";
import { ModelFailure } from "./model.ts";
import type { OpenAiStreamNormaliser } from "./openai-stream-normaliser.ts";
import { toProviderFailure, toUnstreamedFailure } from "./provider-failure.ts";
import { readEventData } from "./read-event-data.ts";

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
      if (!response.ok) throw await toProviderFailure(response, this.#options.now());
      if (!response.body || !isEventStream(response)) throw await toUnstreamedFailure(response);
      idle.stop();
      return new Response(this.#normalise(response.body.getReader(), idle), {
        headers: { "content-type": "text/event-stream" },
      });
    } catch (error) {
      idle.stop();
      throw this.#fail(error, idle);
    }
  };

  /** Pull-based: the provider is read only as fast as the adapter takes events. */
  #normalise(reader: ByteReader, idle: IdleTimer): ReadableStream<Uint8Array> {
    const events = this.#events(reader, idle);
    return new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          try {
            const next = await events.next();
            if (next.done) controller.close();
            else controller.enqueue(next.value);
          } catch (error) {
            controller.error(this.#fail(error, idle, "truncated"));
          }
        },
        // The generator may not have started, and then its `finally` never runs.
        cancel: () => release(reader, idle),
      },
      { highWaterMark: 0 },
    );
  }

  async *#events(reader: ByteReader, idle: IdleTimer): AsyncGenerator<Uint8Array> {
    const { normaliser } = this.#options;
    const encode = new TextEncoder();
    const toFrame = (chunk: unknown) => encode.encode(`data: ${JSON.stringify(chunk)}\n\n`);
    try {
      for await (const data of readEventData(reader, idle)) yield* normaliser.push(data).map(toFrame);
    } catch (error) {
      // A whole answer stays one when the connection breaks or falls silent behind its finish reason.
      if (!normaliser.isFinished || error instanceof ModelFailure) throw error;
    } finally {
      await release(reader, idle);
    }
    yield* normaliser.finish().map(toFrame);
    yield encode.encode("data: [DONE]\n\n");
  }

  /** `otherwise` is what a broken connection means: no answer at all, or one that ended in its middle. */
  #fail(error: unknown, idle: IdleTimer, otherwise: "provider" | "truncated" = "provider"): unknown {
    if (idle.expired)
      this.failure ??= new ModelFailure("idle", `the provider was silent for ${this.#options.idleMs} ms`);
    else if (error instanceof ModelFailure) this.failure ??= error;
    else this.failure ??= new ModelFailure(otherwise, `${BROKEN[otherwise]}: ${String(error)}`, { cause: error });
    return this.failure;
  }
}

const BROKEN = {
  provider: "no connection to the provider",
  truncated: "the connection broke in the middle of the answer",
} as const;

function isEventStream(response: Response): boolean {
  return response.headers.get("content-type")?.includes("text/event-stream") ?? false;
}

type ByteReader = ReadableStreamDefaultReader<Uint8Array>;

async function release(reader: ByteReader, idle: IdleTimer): Promise<void> {
  idle.stop();
  await reader.cancel().catch(() => undefined);
}
