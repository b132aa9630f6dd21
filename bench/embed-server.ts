/**
 * LangGraph's `experimental/embed` server over the bench's graphs, in a process of its own: `node bench/embed-server.ts
 * memory` or `sqlite <file>`; prints its port. Its packages are those of `bench/peers`. The SQLite saver is LangGraph's own,
 * over Node's SQLite: the driver it comes with is native code that wants a compiler.
 */
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { pathToFileURL } from "node:url";
import * as graphs from "./peer-graphs.ts";

const PEERS = resolve(import.meta.dirname, "peers");
const require = createRequire(join(PEERS, "package.json"));

async function load<T>(specifier: string): Promise<T> {
  return (await import(pathToFileURL(require.resolve(specifier)).href)) as T;
}

interface EmbedThreads {
  get(id: string): Promise<unknown>;
  set(id: string, change: { metadata?: Record<string, unknown> }): Promise<unknown>;
  delete(id: string): Promise<void>;
}

/** What the server asks of its host. Threads are the host's business; theirs are in memory, which favours the peer. */
function memoryThreads(): EmbedThreads {
  const threads = new Map<string, { thread_id: string; metadata: Record<string, unknown> }>();
  return {
    async get(id) {
      return threads.get(id);
    },
    async set(id, { metadata }) {
      const thread = { thread_id: id, metadata: { ...threads.get(id)?.metadata, ...metadata } };
      threads.set(id, thread);
      return thread;
    },
    async delete(id) {
      threads.delete(id);
    },
  };
}

/** As much of `better-sqlite3` as the saver uses. That one stores `undefined` as NULL, Node's refuses it. */
function sqliteDriver(path: string) {
  const database = new DatabaseSync(path);
  const bindable = (values: (SQLInputValue | undefined)[]) => values.map((value) => value ?? null);
  return {
    pragma: (text: string) => database.exec(`PRAGMA ${text}`),
    exec: (sql: string) => database.exec(sql),
    prepare: (sql: string) => {
      const statement = database.prepare(sql);
      return {
        run: (...values: (SQLInputValue | undefined)[]) => statement.run(...bindable(values)),
        get: (...values: (SQLInputValue | undefined)[]) => statement.get(...bindable(values)),
        all: (...values: (SQLInputValue | undefined)[]) => statement.all(...bindable(values)),
        iterate: (...values: (SQLInputValue | undefined)[]) => statement.iterate(...bindable(values)),
      };
    },
    transaction:
      <A extends unknown[]>(act: (...args: A) => void) =>
      (...args: A) => {
        database.exec("BEGIN");
        try {
          act(...args);
          database.exec("COMMIT");
        } catch (error) {
          database.exec("ROLLBACK");
          throw error;
        }
      },
  };
}

async function saverOf(kind: string | undefined, path: string | undefined): Promise<unknown> {
  if (kind === "sqlite" && path !== undefined) {
    const { SqliteSaver } = await load<{ SqliteSaver: new (driver: unknown) => unknown }>(
      "@langchain/langgraph-checkpoint-sqlite",
    );
    return new SqliteSaver(sqliteDriver(path));
  }
  if (kind === "memory") {
    const { MemorySaver } = await load<{ MemorySaver: new () => unknown }>("@langchain/langgraph-checkpoint");
    return new MemorySaver();
  }
  throw new Error("usage: embed-server.ts memory | sqlite <file>");
}

const [kind, path] = process.argv.slice(2);
const { createEmbedServer } = await load<{
  createEmbedServer: (options: object) => { fetch: (request: Request) => Promise<Response> };
}>("@langchain/langgraph-api/experimental/embed");
const { getRequestListener } = await load<{
  getRequestListener: (fetch: unknown) => Parameters<typeof createServer>[1];
}>("@hono/node-server");
const app = createEmbedServer({ graph: graphs, threads: memoryThreads(), checkpointer: await saverOf(kind, path) });
// Whoever started it is gone: nobody ends it any more.
process.stdin.resume().on("close", () => process.exit(0));
const server = createServer(getRequestListener(app.fetch) as never);
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify(server.address())}\n`);
});
