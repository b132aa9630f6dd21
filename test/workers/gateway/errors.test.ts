import { expect, it } from "vitest";
import { err } from "../../../src/domain/shared/result.ts";
import { STATUS_BY_CODE, type ErrorCode } from "../../../src/protocol/errors.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps, type Failure } from "../../support/gateway.ts";

const codes = Object.keys(STATUS_BY_CODE) as ErrorCode[];

it.each(codes)("a refusal %s of the object has its status and the one form, by RPC and by fetch", async (code) => {
  const refusal = { code, message: "why", details: { field: "x" } };
  const threads = new FakeThreads({
    getThread: async () => err(refusal),
    fetch: async () => Response.json(refusal, { status: STATUS_BY_CODE[code] }),
  });
  for (const path of ["/threads/t", "/threads/t/runs/r/join"]) {
    const answer = await ask(gatewayDeps({ threads }), path, { headers: { "x-request-id": "req-1" } });
    expect(answer.status).toBe(STATUS_BY_CODE[code]);
    expect(await answer.json()).toEqual({ ...refusal, request_id: "req-1" });
  }
});

class Fault extends Error {
  readonly overloaded: boolean;
  readonly retryable: boolean;
  constructor(message: string, flags: { overloaded?: boolean; retryable?: boolean } = {}, cause?: unknown) {
    super(message, { cause });
    this.overloaded = flags.overloaded ?? false;
    this.retryable = flags.retryable ?? false;
  }
}

it.each([
  [new Fault("Durable Object is overloaded. Too many requests queued.", { overloaded: true }), 503, "overloaded"],
  [new Fault("Network connection lost.", { retryable: true }), 503, "overloaded"],
  [new Error("Durable Object reset because its code was updated."), 503, "overloaded"],
  [new Error("D1_ERROR: D1 DB is overloaded. Requests queued for too long."), 503, "overloaded"],
  [new Error("D1_ERROR: database is locked: SQLITE_BUSY"), 503, "overloaded"],
  [new Error("Failed query", { cause: new Error("D1_ERROR: Network connection lost.") }), 503, "overloaded"],
  [new Error("D1_ERROR: no such table: secrets"), 500, "internal_error"],
  [new TypeError("undefined is not a function"), 500, "internal_error"],
])("a thrown fault is an answer without its text: %s", async (fault, status, code) => {
  const threads = new FakeThreads({ getThread: () => Promise.reject(fault) });
  const answer = await ask(gatewayDeps({ threads }), "/threads/t");
  expect(answer.headers.get("access-control-allow-origin")).toBe("*");
  const body = await answer.json<Failure>();
  expect([answer.status, body.code]).toEqual([status, code]);
  expect(body.request_id).toBe(answer.headers.get("x-request-id"));
  expect(JSON.stringify(body)).not.toMatch(/secrets|function|D1_ERROR|Durable/);
});

it("an object's answer that is no refusal of ours is a fault, not passed on", async () => {
  const threads = new FakeThreads({ fetch: async () => Response.json({ code: "weird" }, { status: 418 }) });
  const answer = await ask(gatewayDeps({ threads }), "/threads/t/runs/r/join");
  expect(await failure(answer)).toEqual([500, "internal_error"]);
});

it("unknown routes and wrong methods are 404 in JSON, with a key and without", async () => {
  for (const [method, path] of [
    ["GET", "/"],
    ["GET", "/nowhere"],
    ["PUT", "/threads"],
    ["POST", "/threads/t/clone"],
    ["DELETE", "/ok"],
  ] as const) {
    expect(await failure(await ask(gatewayDeps(), path, { method, key: null }))).toEqual([404, "not_found"]);
  }
});

it("names the path and what is allowed", async () => {
  const json = { limit: 0, sort_by: "age", surprise: 1 };
  const answer = await ask(gatewayDeps(), "/threads/search", { method: "POST", json });
  const body = await answer.json<Failure>();
  expect(body.code).toBe("invalid_request");
  expect(body.details?.["issues"]).toEqual([
    { path: "body.limit", message: expect.stringContaining(">=1") as string },
    { path: "body.sort_by", message: 'must be one of "thread_id", "status", "created_at", "updated_at"' },
    { path: "body", message: 'unknown field "surprise"' },
  ]);
});

it("shows at most 20 of many problems (P8)", async () => {
  const items = Array.from({ length: 200 }, () => ({ key: "", prompt: "" }));
  const json = { title: "t", subagent_type: "x", items };
  const answer = await ask(gatewayDeps(), "/threads/t/batches", { method: "POST", json });
  expect((await answer.json<Failure>()).details?.["issues"]).toHaveLength(20);
});
