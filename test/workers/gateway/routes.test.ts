/** The same questions to every route, made from the route table: a new route is asked them all. */
import { describe, expect, it } from "vitest";
import { OPERATIONS } from "../../../src/gateway/app.ts";
import { errorCodesOf } from "../../../src/gateway/describe.ts";
import { STATUS_BY_CODE } from "../../../src/protocol/errors.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ROUTE_SAMPLES } from "../../support/route-samples.ts";
import { ask, failure, gatewayDeps, type Ask } from "../../support/gateway.ts";

const routes = OPERATIONS.map(({ spec }) => ({ spec, name: `${spec.method.toUpperCase()} ${spec.path}` }));

function sample(id: string): { path: string; init: Ask } {
  const found = ROUTE_SAMPLES[id];
  if (found === undefined) throw new Error(`no sample request for ${id}`);
  const { path, json, body } = found;
  return { path, init: { ...(json === undefined ? {} : { json }), ...(body === undefined ? {} : { body }) } };
}

it("has a sample for every route and no route twice", () => {
  expect(Object.keys(ROUTE_SAMPLES).sort()).toEqual(routes.map(({ spec }) => spec.id).sort());
  expect(new Set(routes.map(({ name }) => name)).size).toBe(routes.length);
});

describe.each(routes)("$name", ({ spec }) => {
  const { path, init } = sample(spec.id);
  const key = spec.role === "admin" ? "key-admin" : "key-alice";
  const request = { ...init, method: spec.method.toUpperCase(), key };

  if (spec.role === "admin")
    it("refuses a key of another role, before the body is read", async () => {
      const answer = await ask(gatewayDeps(), path, { method: request.method, body: "{", key: "key-alice" });
      expect(await failure(answer)).toEqual([403, "forbidden"]);
    });

  it(spec.open ? "answers without a key" : "refuses no key and a wrong key before anything is read", async () => {
    const threads = new FakeThreads();
    for (const key of [null, "key-nobody"]) {
      const answer = await ask(gatewayDeps({ threads }), path, { ...request, key });
      if (spec.open) expect(answer.status).toBe(200);
      else expect(await failure(answer)).toEqual([401, "unauthorized"]);
    }
    expect(threads.calls).toEqual([]);
  });

  if (/:(thread|run|batch|assistant)_id/.test(spec.path))
    it("refuses a bad id with 422", async () => {
      for (const bad of ["a%20b", "a.b", "x".repeat(65), "%00", "a%2Fb"]) {
        const threads = new FakeThreads();
        const segments = spec.path.split("/").filter((part) => /^:(thread|run|batch|assistant)_id$/.test(part));
        for (const which of segments.keys()) {
          const answer = await ask(gatewayDeps({ threads }), withBadId(spec.path, path, { which, bad }), request);
          expect(await failure(answer)).toEqual([422, "invalid_request"]);
        }
        expect(threads.calls).toEqual([]);
      }
    });

  if (spec.body !== undefined)
    it("refuses broken JSON, a wrong shape, an unknown field and too much", async () => {
      const threads = new FakeThreads();
      const send = (body: BodyInit) =>
        ask(gatewayDeps({ threads }), path, { method: request.method, body, key }).then((answer) => failure(answer));
      expect(await send("{")).toEqual([400, "invalid_json"]);
      expect(await send("[]")).toEqual([422, "invalid_request"]);
      const surprise = { ...(request.json as object), surprise: 1 };
      expect(await send(JSON.stringify(surprise))).toEqual([422, "invalid_request"]);
      expect(await send(new Uint8Array((spec.body?.bytesMax ?? 0) + 1).fill(32))).toEqual([413, "too_large"]);
      expect(threads.calls).toEqual([]);
    });

  if (!spec.open)
    it("refuses an unknown query parameter, also where it takes none", async () => {
      const answer = await ask(gatewayDeps(), `${path}?surprise=1`, request);
      expect(await failure(answer)).toEqual([422, "invalid_request"]);
    });

  if (/:(thread|batch|assistant)_id/.test(spec.path))
    it("P7: a missing or foreign one is 404", async () => {
      const threads = new FakeThreads();
      for (const key of ["key-alice", "key-bob"]) {
        expect(await failure(await ask(gatewayDeps({ threads }), path, { ...request, key }))).toEqual([
          404,
          "not_found",
        ]);
      }
      for (const call of threads.calls) expect(["alice", "bob"]).toContain(call.owner);
    });

  it("answers only codes that its description names", async () => {
    const documented = new Set(errorCodesOf(spec).map((code) => STATUS_BY_CODE[code] as number));
    const answers = [
      await ask(gatewayDeps(), path, request),
      await ask(gatewayDeps(), path, { ...request, key: null }),
      await ask(gatewayDeps({ auth: { apiKeys: undefined, devOwner: undefined } }), path, request),
    ];
    for (const answer of answers) {
      const named = answer.ok ? new Set(Object.keys(spec.responses).map(Number)) : documented;
      expect(named).toContain(answer.status);
      await answer.body?.cancel();
    }
  });
});

/** The sample's path with its `which`-th id replaced. */
function withBadId(pattern: string, path: string, { which, bad }: { which: number; bad: string }): string {
  const parts = pattern.split("/");
  const at = [...parts.keys()].filter((index) => /^:(thread|run|batch|assistant)_id$/.test(parts[index] ?? ""))[which];
  return path
    .split("/")
    .map((segment, index) => (index === at ? bad : segment))
    .join("/");
}
