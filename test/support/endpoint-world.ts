/**
 * What an owner may have, made over HTTP for one test: a thread with a run, a checkpoint and a file, a batch, an assistant.
 * Requests of the route table are made from it: every id in a sample's path is replaced by the world's own.
 */
import { env, runInDurableObject, SELF } from "cloudflare:test";
import type { Operation } from "../../src/gateway/operation.ts";
import { threadObjectName } from "../../src/platform/thread-directory.ts";
import { eventually } from "./eventually.ts";
import { ROUTE_SAMPLES } from "./route-samples.ts";

/** Owner and key as `vitest.workers.config.ts` has them. */
export const OWNERS = { alice: "key-alice", bob: "key-bob", root: "key-admin" } as const;
export type Owner = keyof typeof OWNERS;

/** Parameters of paths that name something an owner has. */
export const ID_PARAMS = ["thread_id", "run_id", "checkpoint_id", "batch_id", "assistant_id"] as const;
export type IdParam = (typeof ID_PARAMS)[number];
export type Ids = Readonly<Record<IdParam, string>>;

/** Further parameters: a definition of the deployment's, and what only means something within its thread or run. */
export const OTHER_PARAMS = ["name", "path", "task_id", "namespace", "message_id", "format"] as const;

export interface WorldRequest {
  readonly method: string;
  readonly path: string;
  readonly json?: unknown;
  readonly body?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface WorldAnswer {
  readonly status: number;
  readonly code: string | undefined;
  readonly type: string | null;
  readonly text: string;
}

/** One request as a client of that key sends it. A stream that does not end by itself is left, not read. */
export async function askAs(key: string | null, request: WorldRequest, isEndless = false): Promise<WorldAnswer> {
  const { method, path, json, body, query = "", headers = {} } = request;
  const content = json === undefined ? body : JSON.stringify(json);
  const answer = await SELF.fetch(`https://deputy.test${path}${query}`, {
    method,
    redirect: "manual",
    headers: {
      ...(key === null ? {} : { "x-api-key": key }),
      ...(json === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(content === undefined ? {} : { body: content }),
  });
  const isLeft = isEndless && answer.ok;
  if (isLeft) await answer.body?.cancel();
  const text = isLeft ? "" : await answer.text();
  const type = answer.headers.get("content-type");
  return { status: answer.status, type, text, code: answer.ok ? undefined : codeOf(text) };
}

function codeOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { code?: string }).code;
  } catch {
    return undefined;
  }
}

async function made<T>(owner: Owner, request: WorldRequest): Promise<T> {
  const answer = await askAs(OWNERS[owner], request);
  if (answer.status >= 300) throw new Error(`${request.method} ${request.path}: ${answer.status} ${answer.text}`);
  return (answer.text === "" ? null : JSON.parse(answer.text)) as T;
}

const unknownIds = (): Ids => Object.fromEntries(ID_PARAMS.map((name) => [name, crypto.randomUUID()])) as Ids;

/** Only what the names ask for is made, thread and run always, unless there are none. */
export async function makeWorld(owner: Owner, secret: string, params: readonly string[]): Promise<Ids> {
  if (params.length === 0) return unknownIds();
  const thread_id = crypto.randomUUID();
  const metadata = { secret };
  const at = `/threads/${thread_id}`;
  await made(owner, { method: "POST", path: "/threads", json: { thread_id, metadata } });
  const run = await startRun(owner, thread_id, `@ say ${secret}`, "wait");
  await made(owner, { method: "PUT", path: `${at}/files/a/b.txt`, body: secret });
  const state = await made<{ checkpoint: { checkpoint_id: string } }>(owner, { method: "GET", path: `${at}/state` });
  const batch_id = params.includes("batch_id") ? await makeBatch(owner, thread_id, secret) : crypto.randomUUID();
  const assistant_id = crypto.randomUUID();
  if (params.includes("assistant_id")) {
    const json = { graph_id: "lead_agent", assistant_id, name: secret, metadata };
    await made(owner, { method: "POST", path: "/assistants", json });
  }
  // Whoever reads the log flushes it: D1 has heard of all of it then.
  await made(owner, { method: "GET", path: `${at}/messages` });
  return { thread_id, run_id: run, checkpoint_id: state.checkpoint.checkpoint_id, batch_id, assistant_id };
}

export async function startRun(owner: Owner, threadId: string, script: string, how: "wait" | "leave"): Promise<string> {
  const input = { messages: [{ role: "user", content: script }] };
  const path = `/threads/${threadId}/runs`;
  const json = { assistant_id: "lead_agent", input };
  const { run_id: runId } = await made<{ run_id: string }>(owner, { method: "POST", path, json });
  if (how === "wait") await askAs(OWNERS[owner], { method: "GET", path: `${path}/${runId}/join` });
  return runId;
}

/** Of a child that goes on however long a test takes; it is cancelled with the run, or ends by itself. */
const SLOW_CHILD = `@ delegate general-purpose :: slow :: <<'CHILD'
@ call bash {"command": "sleep 60"}
@ say late
CHILD
@ say end`;

/** A run whose delegation is under way. */
export async function startSlowRun(owner: Owner, threadId: string): Promise<{ run_id: string; task_id: string }> {
  const run_id = await startRun(owner, threadId, SLOW_CHILD, "leave");
  const path = `/threads/${threadId}/runs/${run_id}/events`;
  const query = "?event_types=subagent.start";
  const look = () => made<{ metadata: { task_id: string } }[]>(owner, { method: "GET", path, query });
  const [started] = await eventually(look, (seen) => seen.length > 0);
  return { run_id, task_id: started!.metadata.task_id };
}

/** Names of an owner's things in a sample: in its path, and as fields of its body. */
export function namesOf(spec: Spec): string[] {
  const body = JSON.stringify(ROUTE_SAMPLES[spec.id]?.json ?? null);
  const inBody = ID_PARAMS.filter((name) => name !== "assistant_id" && body.includes(`"${name}"`));
  return [...new Set([...paramsOf(spec), ...(isCreate(spec) ? [] : inBody)])];
}

/** What it names is what it makes. */
export function isCreate(spec: Spec): boolean {
  return /^create(Thread|Assistant|Subagent)$/.test(spec.id);
}

/** Cancelled at once: nothing of it happens behind a test's back. */
async function makeBatch(owner: Owner, threadId: string, secret: string): Promise<string> {
  const json = { title: secret, subagent_type: "general-purpose", items: [{ key: "a", prompt: secret }] };
  const batch = await made<{ batch_id: string }>(owner, { method: "POST", path: `/threads/${threadId}/batches`, json });
  await made(owner, { method: "POST", path: `/batches/${batch.batch_id}/cancel` });
  return batch.batch_id;
}

export type Spec = Operation["spec"];

/** `:name` of each segment of a route's path. */
export function paramsOf(spec: Spec): string[] {
  return [...spec.path.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
}

/** The route's sample with the ids of its path replaced; bodies keep theirs. */
export function requestOf(spec: Spec, ids: Partial<Record<string, string>>): WorldRequest {
  const sample = ROUTE_SAMPLES[spec.id];
  if (sample === undefined) throw new Error(`no sample request for ${spec.id}`);
  const [path = "", query] = sample.path.split("?");
  const pattern = spec.path.split("/");
  const given = path.split("/");
  const segments = given.map((segment, index) => {
    const name = /^:(\w+)$/.exec(pattern[index] ?? "")?.[1];
    return (name === undefined ? undefined : ids[name]) ?? segment;
  });
  return {
    method: spec.method.toUpperCase(),
    path: segments.join("/"),
    ...(query === undefined ? {} : { query: `?${query}` }),
    ...(sample.json === undefined ? {} : { json: sample.json }),
    ...(sample.body === undefined ? {} : { body: sample.body }),
    ...(sample.headers === undefined ? {} : { headers: sample.headers }),
  };
}

/** A body that makes something makes something new. */
export function freshBody(spec: Spec, json: unknown): unknown {
  if (!isCreate(spec)) return json;
  const given = json as Record<string, unknown>;
  const named = ["thread_id", "assistant_id", "name"].filter((field) => field in given);
  return { ...given, ...Object.fromEntries(named.map((field) => [field, crypto.randomUUID()])) };
}

/** Everything that is stored of a world, by table: the owner's rows of D1 that name its ids, and its thread's object. */
export async function storedOf(owner: Owner, ids: Ids): Promise<Record<string, string>> {
  const tables = [...(await rowsInD1(owner, ids)), ...(await tablesOf(owner, ids.thread_id))];
  return Object.fromEntries(tables.map(([name, rows]) => [name, JSON.stringify(rows)]));
}

/** The same, once nothing moves any more: what a run or a batch left behind for D1 has arrived. */
export async function settledStoreOf(owner: Owner, ids: Ids): Promise<Record<string, string>> {
  let before = "";
  const look = async () => {
    await askAs(OWNERS[owner], { method: "GET", path: `/threads/${ids.thread_id}/messages` });
    const stored = await storedOf(owner, ids);
    const isStill = JSON.stringify(stored) === before;
    before = JSON.stringify(stored);
    return { stored, isStill };
  };
  return (await eventually(look, ({ isStill }) => isStill)).stored;
}

async function rowsInD1(owner: Owner, ids: Ids): Promise<[string, unknown][]> {
  const named =
    "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY 1";
  const tables = await env.DB.prepare(named).all<{ name: string; sql: string }>();
  const columns = tables.results.flatMap(({ name, sql }) =>
    (["thread_id", "batch_id", "assistant_id"] as const)
      .filter((column) => new RegExp(`\\b${column}\\b`).test(sql))
      .map((column) => ({ name, column, owned: /\bowner\b/.test(sql) })),
  );
  const read = columns.map(({ name, column, owned }) =>
    env.DB.prepare(`SELECT * FROM ${name} WHERE ${column} = ?1 AND ?2 = ${owned ? "owner" : "?2"}`).bind(
      ids[column],
      owner,
    ),
  );
  const answers = await env.DB.batch(read);
  return answers.map(({ results }, index) => [`D1 ${columns[index]?.name} by ${columns[index]?.column}`, results]);
}

/** Empty for an object that nobody made. */
export async function tablesOf(owner: string, threadId: string): Promise<[string, unknown][]> {
  const stub = env.THREADS.get(env.THREADS.idFromName(threadObjectName(owner, threadId)));
  return runInDurableObject(stub, (_instance, { storage }) => {
    const named =
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY 1";
    const tables = storage.sql.exec<{ name: string }>(named).toArray();
    return tables.map(({ name }): [string, unknown] => [
      `object ${name}`,
      storage.sql.exec(`SELECT * FROM ${name}`).toArray().map(readable),
    ]);
  });
}

function readable(row: Record<string, SqlStorageValue>): Record<string, unknown> {
  const entries = Object.entries(row).map(([name, value]) => [
    name,
    value instanceof ArrayBuffer ? [...new Uint8Array(value)] : value,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}
