/**
 * P7, made from the route table: whatever names something of another owner's, in path, query, body, metadata, configuration
 * or header, is answered exactly as if it did not exist, and nothing of the other owner's changes. A route without a sample,
 * and a field that may name something and is not classified here, fail.
 */
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { OPERATIONS } from "../../../src/gateway/app.ts";
import {
  askAs,
  freshBody,
  ID_PARAMS,
  type IdParam,
  type Ids,
  isCreate,
  makeWorld,
  OTHER_PARAMS,
  OWNERS,
  paramsOf,
  requestOf,
  type Spec,
  settledStoreOf,
  storedOf,
  tablesOf,
  type WorldAnswer,
  type WorldRequest,
} from "../../support/endpoint-world.ts";
import { ROUTE_SAMPLES } from "../../support/route-samples.ts";

const routes = OPERATIONS.filter(({ spec }) => spec.open !== true).map(({ spec }) => ({
  spec,
  name: `${spec.method.toUpperCase()} ${spec.path}`,
}));

/** In every answer that shows anything of Alice's. */
const SECRET = `secret-of-alice-${crypto.randomUUID()}`;

/** Fields that name something an owner has, and what; a list where the field takes one. */
const ID_FIELDS: Readonly<Record<string, IdParam>> = {
  thread_id: "thread_id",
  ids: "thread_id",
  thread_ids: "thread_id",
  run_id: "run_id",
  run_ids: "run_id",
  checkpoint_id: "checkpoint_id",
  before: "checkpoint_id",
  batch_id: "batch_id",
  assistant_id: "assistant_id",
};
/** Ids of the deployment's, within one thread or run, or numbers of a page of it: they name nothing of an owner's alone. */
const NO_OWNERS_ID =
  /^(graph_id|task_id|model_provider_id|before_seq|after_seq|after_ordinal|last_event_id|message_id|message_ids|tool_call_id|checkpoint_ns|delete_threads)$/;
const ID_LIKE = /(^|_)ids?$|thread|^before|^after_|checkpoint|cursor|owner|user_/;
/** Objects that look like ids and are looked into; numbers and switches that merely sound like one. */
const NO_IDS = /^(checkpoint|checkpoint_map|checkpoint_during|after_seconds)$/;
/** Free objects: a client can write anything there, an owner's name too. */
const FREE_FIELDS = ["metadata", "config", "context", "filter"] as const;

interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly oneOf?: readonly Shape[];
  readonly type?: string;
}

interface Field {
  readonly path: readonly string[];
  readonly name: string;
  readonly isList: boolean;
}

/** Every named field of a shape, at every depth; `[]` stands for the first of a list. */
function fieldsOf(shape: Shape, path: readonly string[] = []): Field[] {
  const branches = [...(shape.anyOf ?? []), ...(shape.oneOf ?? [])].flatMap((each) => fieldsOf(each, path));
  const inItems = shape.items === undefined ? [] : fieldsOf(shape.items, [...path, "[]"]);
  const own = Object.entries(shape.properties ?? {}).flatMap(([name, each]) => {
    const isList = [each, ...(each.anyOf ?? [])].some(({ type }) => type === "array");
    return [{ path: [...path, name], name, isList }, ...fieldsOf(each, [...path, name])];
  });
  return [...own, ...inItems, ...branches];
}

const shapeOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Shape;
const bodyFields = (spec: Spec) => (spec.body === undefined ? [] : fieldsOf(shapeOf(spec.body.schema)));
const queryFields = (spec: Spec) => (spec.query === undefined ? [] : fieldsOf(shapeOf(spec.query.schema)));

/** The value with what stands at the path replaced; lists and objects on the way are made. */
function put(value: unknown, [first, ...rest]: readonly string[], set: unknown): unknown {
  if (first === undefined) return set;
  if (first === "[]") return [put(Array.isArray(value) ? value[0] : undefined, rest, set)];
  const given = typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  return { ...given, [first]: put((given as Record<string, unknown>)[first], rest, set) };
}

interface Probe {
  readonly what: string;
  /** The request of somebody with `own`, who writes `other` into one place. */
  readonly request: (own: Ids, other: Ids & { owner: string }) => WorldRequest;
}

function probesOf(spec: Spec): Probe[] {
  const params = paramsOf(spec).filter((name): name is IdParam => ID_PARAMS.some((known) => known === name));
  const plain = (own: Ids) => {
    const request = requestOf(spec, own);
    return request.json === undefined ? request : { ...request, json: freshBody(spec, request.json) };
  };
  const ofPath: Probe[] = [
    ...(params.length > 0 ? [{ what: "path", request: (_own: Ids, other: Ids) => requestOf(spec, other) }] : []),
    // Each id alone: another's run asked for through a thread of one's own.
    ...(params.length > 1 ? params : []).map((name) => ({
      what: `path ${name}`,
      request: (own: Ids, other: Ids) => requestOf(spec, { ...own, [name]: other[name] }),
    })),
  ];
  const ofBody = bodyFields(spec)
    .filter(({ name }) => ID_FIELDS[name] !== undefined && !(isCreate(spec) && name !== "thread_id"))
    .map(({ path, name, isList }) => ({
      what: `body ${path.join(".")}`,
      request: (own: Ids, other: Ids) => {
        const id = other[ID_FIELDS[name]!];
        const request = plain(own);
        return { ...request, json: put(request.json, path, isList ? [id] : id) };
      },
    }));
  const ofQuery = queryFields(spec)
    .filter(({ name }) => ID_FIELDS[name] !== undefined)
    .map(({ name }) => ({
      what: `query ${name}`,
      request: (own: Ids, other: Ids) => ({ ...plain(own), query: `?${name}=${other[ID_FIELDS[name]!]}` }),
    }));
  const ofFree = bodyFields(spec)
    .filter(({ path, name }) => path.length === 1 && FREE_FIELDS.some((free) => free === name))
    .map(({ path, name }) => ({
      what: `body ${name}`,
      request: (own: Ids, other: Ids & { owner: string }) => {
        const { owner, thread_id, checkpoint_id, run_id } = other;
        const claims = { owner, owner_id: owner, user_id: owner, deputy_owner: owner, langgraph_auth_user_id: owner };
        const all = { ...claims, thread_id, checkpoint_id, run_id };
        const request = plain(own);
        return { ...request, json: put(request.json, path, name === "config" ? { configurable: all } : all) };
      },
    }));
  const ofHeaders: Probe = {
    what: "headers",
    request: (own, { owner, thread_id }) => ({
      ...plain(own),
      headers: {
        "x-owner": owner,
        "x-user-id": owner,
        "x-deputy-owner": owner,
        "x-auth-owner": owner,
        "x-langgraph-auth-user-id": owner,
        "deputy-address": JSON.stringify({ v: 1, owner, thread_id, role: "admin" }),
        cookie: `owner=${owner}`,
      },
    }),
  };
  return [...ofPath, ...ofBody, ...ofQuery, ...ofFree, ofHeaders];
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** What is left of an answer when ids, times and the names that were tried are taken out. */
function comparable(text: string, tried: readonly string[]): string {
  const named = tried.reduce((left, each) => left.replaceAll(each, "TRIED"), text);
  return named
    .replace(UUID, "ID")
    .replace(/"request_id":"[^"]*"/g, "")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/call_[A-Za-z0-9]{24}/g, "CALL");
}

const NOBODY = "nobody-at-all";
/** The same all along, so that what one route stores of the names it was given, it stores of both. */
const MISSING = Object.fromEntries(ID_PARAMS.map((name) => [name, crypto.randomUUID()])) as Ids;

let alice: Ids;
let stored: Record<string, string>;

beforeAll(async () => {
  alice = await makeWorld("alice", SECRET, ID_PARAMS);
  stored = await settledStoreOf("alice", alice);
  expect(Object.values(stored).filter((rows) => rows.includes(SECRET)).length).toBeGreaterThan(5);
}, 60_000);

const twins = new Map<string, Promise<[Ids, Ids]>>();

/** What takes its thing away, or ends it, needs things of its own. */
const isRemoval = ({ method, id }: Spec) => method === "delete" || /^(cancel|prune)/.test(id);

/**
 * Two of each, made alike: what a request does to one, its twin request does to the other, so that routes share theirs.
 */
function twinsOf(spec: Spec, owner: "bob" | "root"): Promise<[Ids, Ids]> {
  const make = async (params: readonly string[]): Promise<[Ids, Ids]> => [
    await makeWorld(owner, "mine", params),
    await makeWorld(owner, "mine", params),
  ];
  if (isRemoval(spec) || paramsOf(spec).length === 0) return make(paramsOf(spec));
  const made = twins.get(owner) ?? make(ID_PARAMS);
  twins.set(owner, made);
  return made;
}

/** A run that was only started is over before the next request, which would find its thread busy or not by chance. */
async function ended(key: string, spec: Spec, { status, text }: WorldAnswer): Promise<void> {
  if (spec.id !== "createRun" || status !== 200) return;
  const { thread_id: threadId, run_id: runId } = JSON.parse(text) as { thread_id: string; run_id: string };
  await askAs(key, { method: "GET", path: `/threads/${threadId}/runs/${runId}/join` });
}

async function forget(key: string, threadId: string): Promise<void> {
  await askAs(key, { method: "DELETE", path: `/threads/${threadId}` });
}

describe("the route table", () => {
  it("has a sample for every route, and no field or parameter that may name something is left out", () => {
    expect(Object.keys(ROUTE_SAMPLES).sort()).toEqual(OPERATIONS.map(({ spec }) => spec.id).sort());
    const unknown = OPERATIONS.flatMap(({ spec }) => [
      ...paramsOf(spec)
        .filter((name) => ![...ID_PARAMS, ...OTHER_PARAMS].some((known) => known === name))
        .map((name) => `${spec.id}: path ${name}`),
      ...[...bodyFields(spec), ...queryFields(spec)]
        .filter(({ name }) => ID_LIKE.test(name) && ID_FIELDS[name] === undefined)
        .filter(({ name }) => !NO_OWNERS_ID.test(name) && !NO_IDS.test(name))
        .map(({ path }) => `${spec.id}: ${path.join(".")}`),
    ]);
    expect(unknown).toEqual([]);
  });

  it("is probed in every way: paths, bodies, queries, free objects and headers", () => {
    const ways = new Set(routes.flatMap(({ spec }) => probesOf(spec).map(({ what }) => what.split(" ")[0])));
    expect(ways).toEqual(new Set(["body", "headers", "path", "query"]));
    expect(probesOf(OPERATIONS.find(({ spec }) => spec.id === "createRun")!.spec).map(({ what }) => what)).toEqual(
      expect.arrayContaining(["path", "body assistant_id", "body checkpoint_id", "body config", "body metadata"]),
    );
  });
});

describe.each(routes)("$name", ({ spec }) => {
  it("P7: what is another owner's is answered like what does not exist, and stays as it is", async () => {
    const key = ROUTE_SAMPLES[spec.id]?.key ?? (spec.role === "admin" ? OWNERS.root : OWNERS.bob);
    const owner = spec.role === "admin" ? "root" : "bob";
    const [forForeign, forMissing] = await twinsOf(spec, owner);
    const isEndless = ROUTE_SAMPLES[spec.id]?.isEndless === true;
    for (const { what, request } of probesOf(spec)) {
      const foreign = await askAs(key, request(forForeign, { ...alice, owner: "alice" }), isEndless);
      const absent = await askAs(key, request(forMissing, { ...MISSING, owner: NOBODY }), isEndless);
      await Promise.all([foreign, absent].map((answer) => ended(key, spec, answer)));
      expect(foreign.text, what).not.toContain(SECRET);
      expect([foreign.status, foreign.type], what).toEqual([absent.status, absent.type]);
      if (foreign.type?.startsWith("text/event-stream") === true) continue;
      const tried = [...Object.values(alice), ...Object.values(MISSING), '"alice"', `"${NOBODY}"`];
      expect(comparable(foreign.text, tried), what).toBe(comparable(absent.text, tried));
    }
    expect(await storedOf("alice", alice)).toEqual(stored);
    // A thread of that name may be one's own: it is another thread.
    if (isCreate(spec)) for (const { thread_id } of [alice, MISSING]) await forget(key, thread_id);
    // A refusal made nothing under the foreign name either.
    if (paramsOf(spec).includes("thread_id")) expect(await tablesOf(owner, alice.thread_id)).toEqual([]);
  });
});
