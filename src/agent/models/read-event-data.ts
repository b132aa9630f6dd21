/**
 * Server-sent events out of a response body, bytes in, data out. Owns decoding, the `[DONE]` mark and the bound on one
 * event; the idle limit runs only while a read is open, so a slow consumer is not taken for a silent provider. A provider
 * that sends nothing but signs of life is silent as well, after a longer time.
 */
import { createParser } from "eventsource-parser";
import type { IdleTimer } from "./idle-timer.ts";
import { ModelFailure } from "./model.ts";

/** One event is a few hundred bytes; some providers send a call's whole arguments in one. */
export const EVENT_BYTES_MAX = 4 * 1024 * 1024;

/** Ends a stream in OpenAI's form; given on as the last item, since some providers have no other sign of the end. */
export const DONE_MARK = "[DONE]";

/** Comments and pings stand for work in progress, such as a queue at the provider; not for a stream that never goes on. */
export const KEEP_ALIVE_IDLE_LIMITS_MAX = 5;

const PING_DATA = /^\s*\{\s*"type"\s*:\s*"ping"\s*\}\s*$/;

/** The data of each event until `[DONE]`, which comes as well, or the end of the body. An `error` event comes as `{"error": ...}`. */
export async function* readEventData(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  idle: IdleTimer,
  now: () => number,
): AsyncGenerator<string> {
  const pending: string[] = [];
  const parser = createParser({
    onEvent: ({ event, data }) => pending.push(event === "error" ? JSON.stringify({ error: data }) : data),
  });
  const decoder = new TextDecoder();
  let openBytes = 0;
  let waitedMs = 0;
  for (;;) {
    const since = now();
    const { done, value } = await idle.watch(() => reader.read());
    if (done) return;
    waitedMs += now() - since;
    openBytes += value.byteLength;
    parser.feed(decoder.decode(value, { stream: true }));
    if (pending.length > 0) openBytes = 0;
    if (openBytes > EVENT_BYTES_MAX)
      throw new ModelFailure("stream_error", `an event of more than ${EVENT_BYTES_MAX} bytes`);
    if (pending.some((data) => !PING_DATA.test(data))) waitedMs = 0;
    if (waitedMs > KEEP_ALIVE_IDLE_LIMITS_MAX * idle.limitMs) idle.expire();
    for (const data of pending.splice(0)) {
      const isDone = data.trim() === DONE_MARK;
      yield isDone ? DONE_MARK : data;
      if (isDone) return;
    }
  }
}
