/**
 * A page with LangGraph's React hook on it, in jsdom: what it shows, which requests it made, and its reload, which takes
 * its sockets with it and leaves its session storage.
 */
import type { Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { act, renderHook, waitFor } from "@testing-library/react";

/** Of a loaded machine; what is waited for comes at once otherwise. */
const SHOWN_MS = 30_000;

type Values = { messages: Message[] } & Record<string, unknown>;
type Stream = ReturnType<typeof useStream<Values>>;

export interface ChatPageOptions {
  readonly apiUrl: string;
  readonly assistantId: string;
  readonly threadId?: string;
  readonly reconnectOnMount?: boolean;
  readonly fetchStateHistory?: boolean | { readonly limit: number };
}

export interface Asked {
  /** `POST /threads`. */
  readonly call: string;
  readonly lastEventId: string | null;
  readonly body: Readonly<Record<string, unknown>>;
}

/** What a component would draw; the hook asks the server for what is read here. */
export interface Shown {
  readonly stream: Stream;
  readonly texts: readonly string[];
  readonly interrupt: unknown;
  readonly isLoading: boolean;
  readonly error: unknown;
}

export class ChatPage {
  readonly asked: Asked[] = [];
  /** The last message's text at each drawing. */
  readonly drawn: string[] = [];
  threadId: string | undefined;
  readonly #leaving = new AbortController();
  readonly #hook: { readonly result: { readonly current: Shown }; unmount(): void };

  constructor(options: ChatPageOptions) {
    this.threadId = options.threadId;
    const callerOptions = { fetch: this.#fetch.bind(this, options.apiUrl), maxRetries: 0 };
    const onThreadId = (threadId: string) => {
      this.threadId = threadId;
    };
    const { apiUrl, assistantId, ...rest } = options;
    this.#hook = renderHook(() => {
      const stream = useStream<Values>({ ...rest, apiUrl, assistantId, callerOptions, onThreadId, throttle: false });
      const texts = stream.messages.map(({ content }) =>
        typeof content === "string" ? content : JSON.stringify(content),
      );
      const { interrupt, isLoading, error } = stream;
      this.drawn.push(texts.at(-1) ?? "");
      return { stream, texts, interrupt, isLoading, error };
    });
  }

  get shown(): Shown {
    return this.#hook.result.current;
  }

  /** Every drawing is looked at, so what is shown for a moment only is seen as well. */
  async until(holds: (shown: Shown) => boolean): Promise<Shown> {
    await waitFor(
      () => {
        if (!holds(this.shown)) throw new Error(`not shown; last seen: ${JSON.stringify(this.#summary())}`);
      },
      { timeout: SHOWN_MS },
    );
    return this.shown;
  }

  /** Until the run that was submitted has ended. */
  async submit(...[values, options]: Parameters<Stream["submit"]>): Promise<Shown> {
    await act(() => this.shown.stream.submit(values, options));
    return this.until(({ isLoading }) => !isLoading);
  }

  /** Does not wait for the end. */
  async begin(text: string): Promise<void> {
    await act(async () => {
      void this.shown.stream.submit(say(text));
    });
  }

  async stop(): Promise<void> {
    await act(() => this.shown.stream.stop());
  }

  async choose(branch: string): Promise<Shown> {
    await act(async () => {
      this.shown.stream.setBranch(branch);
    });
    return this.shown;
  }

  /** As the browser does it: nothing of the page goes on, and the server sees its sockets close. */
  leave(): void {
    this.#leaving.abort();
    this.#hook.unmount();
  }

  #summary() {
    const { texts, interrupt, isLoading, error } = this.shown;
    return { texts, interrupt, isLoading, error: String(error) };
  }

  async #fetch(apiUrl: string, input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
    // A page that was left asks nothing any more, whatever its hook still does.
    if (this.#leaving.signal.aborted) return new Promise(() => undefined);
    const url = new URL(input instanceof Request ? input.url : input);
    const headers = new Headers(init.headers as HeadersInit);
    this.asked.push({
      call: `${init.method ?? "GET"} ${url.href.slice(apiUrl.length)}`,
      lastEventId: headers.get("last-event-id"),
      body: typeof init.body === "string" ? (JSON.parse(init.body) as Record<string, unknown>) : {},
    });
    const signals = [this.#leaving.signal, ...(init.signal == null ? [] : [init.signal])];
    return fetch(url, { ...init, signal: AbortSignal.any(signals) });
  }
}

export function say(text: string): { messages: Message[] } {
  return { messages: [{ type: "human", content: text }] };
}
