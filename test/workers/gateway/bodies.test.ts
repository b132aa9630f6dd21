import { FILE_BYTES_MAX } from "../../../src/domain/workspace/paths.ts";
import { expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import { BATCH_BODY_BYTES_MAX, JSON_BODY_BYTES_MAX, RUN_BODY_BYTES_MAX } from "../../../src/gateway/bounds.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps, type Failure } from "../../support/gateway.ts";

/** Spaces, without a content-length, in chunks; counts how far it was read. */
function streamed(bytes: number): { body: ReadableStream<Uint8Array>; read: () => number } {
  const chunk = new Uint8Array(65_536).fill(32);
  let sent = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (sent >= bytes) return controller.close();
        const part = chunk.subarray(0, Math.min(chunk.length, bytes - sent));
        sent += part.length;
        controller.enqueue(part);
      },
    },
    { highWaterMark: 0 },
  );
  return { body, read: () => sent };
}

it.each([
  ["POST", "/threads", RUN_BODY_BYTES_MAX],
  ["POST", "/threads/search", JSON_BODY_BYTES_MAX],
  ["POST", "/threads/t/runs", RUN_BODY_BYTES_MAX],
  ["POST", "/threads/t/batches", BATCH_BODY_BYTES_MAX],
  ["PUT", "/threads/t/files/a.txt", FILE_BYTES_MAX],
])("P8: %s %s stops reading a streamed body at its bound and names it", async (method, path, limit) => {
  const { body, read } = streamed(limit * 4);
  const answer = await ask(gatewayDeps(), path, { method, body });
  const refused = await answer.json<Failure>();
  expect([answer.status, refused.code, refused.details]).toEqual([413, "too_large", { limit_bytes: limit }]);
  expect(read()).toBeLessThan(limit + 4 * 65_536);
});

it("takes a body of exactly the bound", async () => {
  const sizes: number[] = [];
  const threads = new FakeThreads({
    putFile: async (_address, path, bytes) => {
      sizes.push(bytes.length);
      return ok({ path, size: bytes.length, created: true });
    },
  });
  const at = (size: number) =>
    ask(gatewayDeps({ threads }), "/threads/t/files/a.bin", { method: "PUT", body: streamed(size).body });
  expect((await at(FILE_BYTES_MAX)).status).toBe(201);
  expect((await at(FILE_BYTES_MAX + 1)).status).toBe(413);
  expect(sizes).toEqual([FILE_BYTES_MAX]);
});

it("refuses an announced size without reading a byte", async () => {
  const body = new Uint8Array(JSON_BODY_BYTES_MAX + 1);
  const answer = await ask(gatewayDeps(), "/threads/search", { method: "POST", body });
  expect(await failure(answer)).toEqual([413, "too_large"]);
});

it.each([
  ["cut JSON", '{"limit": 1'],
  ["no JSON", "limit=1"],
  ["bytes that are not UTF-8", new Uint8Array([0x22, 0xff, 0x22])],
])("400 invalid_json for %s", async (_what, body) => {
  const answer = await ask(gatewayDeps(), "/threads/search", { method: "POST", body });
  expect(await failure(answer)).toEqual([400, "invalid_json"]);
});

it.each(["[]", "1", "null", '"x"'])("422 for the JSON %s where an object belongs", async (body) => {
  const answer = await ask(gatewayDeps(), "/threads/search", { method: "POST", body });
  expect(await failure(answer)).toEqual([422, "invalid_request"]);
});

it("an empty body is an empty object", async () => {
  expect((await ask(gatewayDeps(), "/threads/search", { method: "POST" })).status).toBe(200);
});
