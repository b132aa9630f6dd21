/**
 * Deputy's own Worker, and beside it in the same workerd what it is measured against: an object that writes five rows and
 * streams three frames, and one that runs LangGraph durably and does nothing else (no keys, run rows, events, D1).
 * `POST /floor/{id}` and `POST /thin/{id}/{graph}`; everything else is Deputy's.
 */
import "../src/async-context.ts";
import { DurableObject } from "cloudflare:workers";
import { type RunnableGraph, SAVER_KEY } from "../src/agent/graph-catalog.ts";
import { toWire } from "../src/agent/wire/to-wire.ts";
import type { Env } from "../src/env.ts";
import { DurableCheckpointSaver } from "../src/platform/durable-storage/checkpoint-saver.ts";
import deputy, { ThreadObject } from "../src/worker.ts";
import { chain, noop, tokens } from "./peer-graphs.ts";

interface BenchEnv extends Env {
  readonly FLOORS: DurableObjectNamespace<FloorObject>;
  readonly THINS: DurableObjectNamespace<ThinObject>;
}

const FLOOR_ROWS = 5;
const FLOOR_FRAMES = 3;
const SSE = { headers: { "content-type": "text/event-stream" } };
const encoder = new TextEncoder();
const graphs = new Map<string, RunnableGraph>(Object.entries({ noop, tokens, chain }));

const frame = (event: string, data: string) => encoder.encode(`event: ${event}\ndata: ${data}\n\n`);

export class FloorObject extends DurableObject<BenchEnv> {
  override async fetch(request: Request): Promise<Response> {
    const body = await request.text();
    const { sql } = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL)");
    let sent = 0;
    const stream = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          for (let row = sent; row < FLOOR_ROWS; row += FLOOR_FRAMES)
            sql.exec("INSERT INTO rows (body) VALUES (?)", body);
          controller.enqueue(frame("values", body));
          sent += 1;
          if (sent === FLOOR_FRAMES) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(stream, SSE);
  }
}

export class ThinObject extends DurableObject<BenchEnv> {
  readonly #saver = new DurableCheckpointSaver({ storage: this.ctx.storage });

  override async fetch(request: Request): Promise<Response> {
    const [, , threadId = "", graph = ""] = new URL(request.url).pathname.split("/");
    const { input } = await request.json<{ input: unknown }>();
    const stream = await graphs.get(graph)!.stream(input, {
      configurable: { thread_id: threadId, [SAVER_KEY]: this.#saver },
      streamMode: ["values", "messages"],
      durability: "sync",
    });
    const chunks = (stream as AsyncIterable<[string, unknown]>)[Symbol.asyncIterator]();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const next = await chunks.next();
          if (next.done === true) return controller.close();
          const [mode, data] = next.value;
          controller.enqueue(frame(mode, JSON.stringify(toWire(data))));
        },
      },
      { highWaterMark: 0 },
    );
    return new Response(body, SSE);
  }
}

export { ThreadObject };

// oxlint-disable-next-line import/no-default-export -- a Worker is its default export
export default {
  async fetch(request, env) {
    const [, kind, id = ""] = new URL(request.url).pathname.split("/");
    if (kind === "floor") return env.FLOORS.get(env.FLOORS.idFromName(id)).fetch(request);
    if (kind === "thin") return env.THINS.get(env.THINS.idFromName(id)).fetch(request);
    return deputy.fetch(request, env);
  },
} satisfies ExportedHandler<BenchEnv>;
