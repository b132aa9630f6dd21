/**
 * One route as data: its shapes, its codes and its handler. The Hono route, its validation and its entry in
 * `/openapi.json` all come from the same object, so none can drift from the others.
 */
import { z } from "zod";
import { type Result, ok } from "../domain/shared/result.ts";
import type { Principal } from "../domain/trust/principal.ts";
import type { ApiRefusal, ErrorCode } from "../protocol/errors.ts";
import type { ThreadAddress } from "../protocol/thread-rpc.ts";
import { readJson } from "./body.ts";
import { invalidRequest, refuse } from "./errors.ts";
import type { GatewayDeps } from "./ports.ts";
import { type UnsupportedOptions, withoutUnsupported } from "./unsupported.ts";

export type Answer = Result<Response, ApiRefusal>;

type RouteTag =
  | "system"
  | "assistants"
  | "threads"
  | "state"
  | "runs"
  | "events"
  | "files"
  | "batches"
  | "subagents"
  | "owner";

export interface ResponseDoc {
  readonly description: string;
  readonly schema?: z.ZodType;
  /** `application/json` where a schema is given. */
  readonly media?: string;
  /** Bytes of any media type, instead of or beside the schema. */
  readonly bytes?: true;
}

export interface JsonBody<B> {
  readonly schema: z.ZodType<B>;
  readonly bytesMax: number;
  readonly unsupported?: UnsupportedOptions;
  /** What a client spells otherwise, as the shapes spell it; before anything is checked. */
  readonly respell?: (json: unknown) => unknown;
}

interface Query<Q> {
  readonly schema: z.ZodType<Q>;
  readonly unsupported?: UnsupportedOptions;
}

/** What a handler gets: parsed input, who asks, and the ports. */
export interface Call<P, Q, B> {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The body as it was sent, without its null fields; `undefined` where the route takes none. */
  readonly sent: unknown;
  readonly principal: Principal;
  readonly request: Request;
  readonly requestId: string;
  readonly deps: GatewayDeps;
}

export interface OperationSpec<P, Q, B> {
  readonly method: "get" | "post" | "put" | "patch" | "delete";
  /** Hono's path syntax. */
  readonly path: `/${string}`;
  readonly id: string;
  readonly tag: RouteTag;
  readonly summary: string;
  /** Answers without a key. */
  readonly open?: true;
  /** Who else asks is refused before anything is read. */
  readonly role?: "admin";
  readonly params?: z.ZodType<P>;
  readonly query?: Query<Q>;
  readonly body?: JsonBody<B>;
  /** A body that is bytes, not JSON; the handler reads it under its own bound. */
  readonly rawBody?: { readonly media: string };
  /** Request headers with a meaning, name → description. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly responses: Readonly<Record<number, ResponseDoc>>;
  /** Codes beyond those that every route of its kind has. */
  readonly errors?: readonly ErrorCode[];
  handle(call: Call<P, Q, B>): Promise<Answer>;
}

/** Who and where, before anything is parsed. */
interface Incoming {
  readonly request: Request;
  readonly rawParams: Readonly<Record<string, string>>;
  readonly principal: Principal;
  readonly requestId: string;
  readonly deps: GatewayDeps;
}

export interface Operation {
  readonly spec: OperationSpec<never, never, never>;
  run(incoming: Incoming): Promise<Answer>;
}

/** Ties a spec to its parsing; the shapes' types end here. */
export function operation<P = undefined, Q = undefined, B = undefined>(spec: OperationSpec<P, Q, B>): Operation {
  return { spec: spec as OperationSpec<never, never, never>, run: (incoming) => runOperation(spec, incoming) };
}

async function runOperation<P, Q, B>(spec: OperationSpec<P, Q, B>, incoming: Incoming): Promise<Answer> {
  if (spec.role !== undefined && incoming.principal.role !== spec.role) {
    return refuse("forbidden", `This needs a key with the role ${spec.role}.`);
  }
  const params = parsePart(spec.params, incoming.rawParams, "path");
  if (!params.ok) return params;
  const query = spec.open ? ok(undefined) : parseQuery(spec.query ?? NO_QUERY, incoming.request.url);
  if (!query.ok) return query;
  const body = await parseBody(spec.body, incoming.request);
  if (!body.ok) return body;
  return spec.handle({
    params: params.value as P,
    query: query.value as Q,
    body: body.value?.parsed as B,
    sent: body.value?.sent,
    principal: incoming.principal,
    request: incoming.request,
    requestId: incoming.requestId,
    deps: incoming.deps,
  });
}

/** Of a route that takes none; probes of the open ones may bring what they like. */
const NO_QUERY: Query<unknown> = { schema: z.strictObject({}) };

function parseQuery(query: Query<unknown>, url: string): Result<unknown, ApiRefusal> {
  const given = withoutUnsupported(queryRecord(new URL(url).searchParams), query.unsupported ?? {});
  return given.ok ? parsePart(query.schema, given.value, "query") : given;
}

async function parseBody<B>(
  body: JsonBody<B> | undefined,
  request: Request,
): Promise<Result<{ sent: unknown; parsed: B | undefined } | undefined, ApiRefusal>> {
  if (body === undefined) return ok(undefined);
  const json = await readJson(request, body.bytesMax);
  if (!json.ok) return json;
  const given = withoutUnsupported(body.respell?.(json.value) ?? json.value, body.unsupported ?? {});
  if (!given.ok) return given;
  const parsed = parsePart(body.schema, given.value, "body");
  return parsed.ok ? ok({ sent: given.value, parsed: parsed.value }) : parsed;
}

function parsePart<T>(
  schema: z.ZodType<T> | undefined,
  input: unknown,
  where: "body" | "query" | "path",
): Result<T | undefined, ApiRefusal> {
  if (schema === undefined) return ok(undefined);
  const parsed = schema.safeParse(input);
  return parsed.success ? ok(parsed.data) : invalidRequest(parsed.error, where);
}

/** A name given several times is a list. */
function queryRecord(search: URLSearchParams): Record<string, string | string[]> {
  const names = [...new Set(search.keys())];
  return Object.fromEntries(
    names.map((name) => {
      const all = search.getAll(name);
      return [name, all.length > 1 ? all : (all[0] ?? "")];
    }),
  );
}

/** The thread an authenticated caller means. */
export function addressOf(principal: Principal, threadId: string): ThreadAddress {
  return { v: 1, owner: principal.owner, thread_id: threadId, role: principal.role };
}
