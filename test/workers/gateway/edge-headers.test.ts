import { expect, it } from "vitest";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, gatewayDeps } from "../../support/gateway.ts";

it("keeps a well-formed request id and replaces one that could forge a log line", async () => {
  const deps = gatewayDeps({ newId: () => "minted" });
  const ids = [];
  for (const given of ["req-1.a_b", "", "a b", `x${"y".repeat(200)}`, 'a"b']) {
    ids.push((await ask(deps, "/ok", { headers: { "x-request-id": given } })).headers.get("x-request-id"));
  }
  expect(ids).toEqual(["req-1.a_b", "minted", "minted", "minted", "minted"]);
});

it("exposes the headers that the SDK needs across origins, on answers and on errors", async () => {
  for (const path of ["/ok", "/nowhere", "/threads/t"]) {
    const answer = await ask(gatewayDeps(), path, { headers: { origin: "https://app.example" } });
    expect(answer.headers.get("access-control-allow-origin")).toBe("*");
    for (const name of ["content-location", "location", "x-pagination-total", "x-pagination-next", "x-request-id"]) {
      expect(answer.headers.get("access-control-expose-headers")).toContain(name);
    }
  }
});

it("answers a preflight without a key, with the headers asked for", async () => {
  const headers = { origin: "https://app.example", "access-control-request-headers": "x-api-key, last-event-id" };
  const answer = await ask(gatewayDeps(), "/threads/t/runs/stream", { method: "OPTIONS", key: null, headers });
  expect(answer.status).toBe(204);
  expect(answer.headers.get("access-control-allow-headers")).toBe("x-api-key, last-event-id");
  expect(answer.headers.get("access-control-allow-methods")).toContain("PATCH");
});

it("hands a stream on as it comes: headers kept, each chunk at once, a cancel reaches the object", async () => {
  let cancelled = false;
  let pulls = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => controller.enqueue(new TextEncoder().encode(`data: ${pulls++}\n\n`)),
      cancel: () => {
        cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  const headers = {
    "content-type": "text/event-stream",
    "content-location": "/threads/t/runs/r",
    location: "/threads/t/runs/r/stream",
  };
  const threads = new FakeThreads({ fetch: async () => new Response(body, { headers }) });
  const json = { assistant_id: "lead_agent", input: {} };
  const answer = await ask(gatewayDeps({ threads }), "/threads/t/runs/stream", { method: "POST", json });
  expect(Object.fromEntries(answer.headers)).toMatchObject({ ...headers, "access-control-allow-origin": "*" });
  expect(answer.headers.get("x-request-id")).toMatch(/^id-/);
  const reader = answer.body?.getReader();
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("data: 0\n\n");
  expect(new TextDecoder().decode((await reader?.read())?.value)).toBe("data: 1\n\n");
  expect(pulls).toBeLessThan(5);
  await reader?.cancel();
  expect(cancelled).toBe(true);
});
