/**
 * One HTTP exchange with a provider, as the `fetch` of one adapter instance.
 * Redirects are not followed: they would carry the key to another host. A 3xx is the failure of a provider.
 * Owns the idle limit and `failure`: why the exchange broke, since the adapter wraps errors until the reason is gone.
 * Invariant: whatever ends the exchange, the provider's body is cancelled and no timer is left.
 */
import type { RunnableConfig } from "@langchain/core/runnables";
import { threadIdOf } from "../graph/thread-id.ts";
import type { HeaderGates } from "./header-gate.ts";
import { IdleTimer } from "./idle-timer.ts";
import { ModelFailure } from "./model.ts";
import { toProviderFailure, toUnstreamedFailure } from "./provider-failure.ts";
import { DONE_MARK, readEventData } from "./read-event-data.ts";
import type { StreamEvent, StreamNormaliser } from "./stream-normaliser.ts";

/** What every model over HTTP is given, whoever provides it. */
export interface ProviderOptions {
  /** The name in `deputy.config.ts`. */
  readonly name: string;
  readonly modelIdleMs: number;
  readonly newId: () => string;
  readonly random: () => number;
  readonly now: () => number;
  readonly fetch: typeof fetch;
  readonly gates: HeaderGates;
}

/**
 * One generation over one exchange, held back while too many requests of its object wait for headers. `generate` makes
 * and sends the request: while it waits here there is no body yet, so 64 children with long histories do not hold 64
 * bodies, and the wait is not the provider's silence. Throws a `ModelFailure`, or the signal's reason.
 */
export async function exchangeBehindGate<T>(
  { fetch, gates, modelIdleMs, now }: Pick<ProviderOptions, "fetch" | "gates" | "modelIdleMs" | "now">,
  config: RunnableConfig,
  { generate, ...stream }: Pick<ExchangeOptions, "normaliser" | "wire"> & Generation<T>,
): Promise<T> {
  // The object a request is made from is its thread's. Requests without one (batch items) share a scope.
  const leave = await gates.enter(threadIdOf(config) ?? "", config.signal);
  const exchange = new ProviderExchange({ ...stream, fetch, idleMs: modelIdleMs, now, onHeaders: leave });
  try {
    return await generate(exchange);
  } catch (error) {
    config.signal?.throwIfAborted();
    throw error instanceof ModelFailure ? error : (exchange.failure ?? error);
  } finally {
    leave();
  }
}

interface Generation<T> {
  readonly generate: (exchange: ProviderExchange) => Promise<T>;
}

export interface ExchangeOptions {
  readonly fetch: typeof fetch;
  readonly idleMs: number;
  readonly now: () => number;
  readonly normaliser: StreamNormaliser;
  /** The provider has answered, or will not. */
  readonly onHeaders?: () => void;
  /** How the adapter reads an event, and what ends its stream. */
  readonly wire: EventWire;
}

export interface EventWire {
  toFrame(event: StreamEvent): string;
  readonly end: string;
}

export class ProviderExchange {
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
      const response = await this.#options.fetch(input, {
        ...init,
        redirect: "manual",
        signal: AbortSignal.any(signals),
      });
      this.#options.onHeaders?.();
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
    const { normaliser, wire } = this.#options;
    const encode = new TextEncoder();
    const toFrame = (event: StreamEvent) => encode.encode(wire.toFrame(event));
    try {
      for await (const data of readEventData(reader, idle, this.#options.now)) {
        if (data === DONE_MARK) normaliser.markDone?.();
        else yield* normaliser.push(data).map(toFrame);
      }
    } catch (error) {
      // A whole answer stays one when the connection breaks or falls silent behind its finish reason.
      if (!normaliser.isFinished || error instanceof ModelFailure) throw error;
    } finally {
      await release(reader, idle);
    }
    yield* normaliser.finish().map(toFrame);
    yield encode.encode(wire.end);
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
