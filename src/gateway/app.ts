/**
 * The HTTP gateway: a stateless Hono app that knows who asks, checks what is asked, and hands it to the thread's
 * object or to D1. Owns no state. Invariants: every error has one form (errors.ts); every route is an `Operation`, so
 * `/openapi.json` lists what is served; streams pass through untouched.
 */
import { Hono } from "hono";
import { describeRoute } from "hono-openapi";
import type { Result } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { Principal } from "../domain/trust/principal.ts";
import { describeOperation } from "./describe.ts";
import { faultRefusal, refusalResponse, refuse } from "./errors.ts";
import { type Authenticate, createAuthenticate } from "./middleware/authenticate.ts";
import { preflightResponse, requestIdOf, withEdgeHeaders } from "./middleware/edge-headers.ts";
import { createOpenApiDocument } from "./openapi.ts";
import type { Operation } from "./operation.ts";
import type { GatewayDeps } from "./ports.ts";
import { assistantOperations } from "./routes/assistants.ts";
import { batchOperations } from "./routes/batches.ts";
import { eventOperations } from "./routes/events.ts";
import { fileOperations } from "./routes/files.ts";
import { testOperations } from "./routes/internal.ts";
import { ownerOperations } from "./routes/owners.ts";
import { runOperations } from "./routes/runs.ts";
import { runBulkOperations } from "./routes/run-bulk.ts";
import { runLifecycleOperations } from "./routes/run-lifecycle.ts";
import { runStreamOperations } from "./routes/run-streams.ts";
import { stateOperations } from "./routes/state.ts";
import { statelessRunOperations } from "./routes/stateless-runs.ts";
import { subagentOperations } from "./routes/subagents.ts";
import { systemOperations } from "./routes/system.ts";
import { runSearchOperations } from "./routes/run-search.ts";
import { threadExportOperations } from "./routes/thread-export.ts";
import { threadOperations } from "./routes/threads.ts";

interface GatewayEnv {
  Variables: { requestId: string };
}

export type Gateway = Hono<GatewayEnv>;

/** Every route served, in matching order. */
export const OPERATIONS: readonly Operation[] = [
  ...systemOperations,
  ...assistantOperations,
  ...threadOperations,
  ...threadExportOperations,
  ...stateOperations,
  ...runSearchOperations,
  ...runOperations,
  ...runLifecycleOperations,
  ...runBulkOperations,
  ...runStreamOperations,
  ...statelessRunOperations,
  ...eventOperations,
  ...fileOperations,
  ...batchOperations,
  ...subagentOperations,
  ...ownerOperations,
];

export function createGateway(deps: GatewayDeps): Gateway {
  const app: Gateway = new Hono<GatewayEnv>();
  app.use(async (c, next) => {
    const requestId = requestIdOf(c.req.raw.headers, deps.newId);
    c.set("requestId", requestId);
    if (c.req.method === "OPTIONS") return preflightResponse(c.req.raw, requestId);
    await next();
    c.res = withEdgeHeaders(c.res, requestId);
    return undefined;
  });
  const authenticate = createAuthenticate(deps.auth);
  const served = deps.testRoutes === true ? [...OPERATIONS, ...testOperations] : OPERATIONS;
  for (const operation of served) mount(app, operation, { deps, authenticate });
  const document = createOpenApiDocument(app, deps.version);
  const described = describeRoute({
    operationId: "getOpenApi",
    tags: ["system"],
    summary: "This document.",
    security: [],
    responses: { 200: { description: "OpenAPI 3.1.", content: { "application/json": {} } } },
  });
  app.get("/openapi.json", described, async () => Response.json(await document()));
  app.notFound((c) => {
    const message = `No route answers ${c.req.method} ${c.req.path}.`;
    return refusalResponse(refuse("not_found", message).error, c.get("requestId"));
  });
  app.onError((fault, c) => {
    const requestId = c.get("requestId");
    deps.log({
      level: "error",
      request_id: requestId,
      method: c.req.method,
      path: c.req.path,
      fault: String(fault.stack),
    });
    return refusalResponse(faultRefusal(fault), requestId);
  });
  return app;
}

interface Mounting {
  readonly deps: GatewayDeps;
  readonly authenticate: Authenticate;
}

/** Open routes see a principal that owns nothing. */
const NOBODY: Result<Principal, ApiRefusal> = { ok: true, value: { owner: "", role: "user" } };

function mount(app: Gateway, operation: Operation, { deps, authenticate }: Mounting): void {
  const { spec } = operation;
  app.on(spec.method.toUpperCase(), [spec.path], describeRoute(describeOperation(spec)), async (c) => {
    const requestId = c.get("requestId");
    const request = c.req.raw;
    const principal = spec.open ? NOBODY : await authenticate(request.headers);
    if (!principal.ok) return refusalResponse(principal.error, requestId);
    const rawParams = c.req.param() as Record<string, string>;
    const answered = await operation.run({ request, rawParams, principal: principal.value, requestId, deps });
    return answered.ok ? answered.value : refusalResponse(answered.error, requestId);
  });
}
