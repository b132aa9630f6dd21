import { describe, expect, it } from "vitest";
import { ok } from "../../../src/domain/shared/result.ts";
import { fileHeaders } from "../../../src/gateway/content-types.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ask, failure, gatewayDeps } from "../../support/gateway.ts";

const bytes = new TextEncoder().encode("a,b\n1,2\n");

function workspace() {
  return new FakeThreads({
    getFile: async (_address, path) =>
      path === "/workspace" || path === "/workspace/data"
        ? ok({ kind: "directory", path, entries: [{ path: "data/a.csv", kind: "file", size: 8, modified_at: "" }] })
        : ok({ kind: "file", bytes }),
    putFile: async (_address, path, stored) =>
      ok({ path, size: stored.length, created: path !== "/workspace/old.txt" }),
    deleteFile: async () => ok(null),
  });
}

const paths = (threads: FakeThreads) => threads.calls.map((call) => call.args[1]);

it("decodes a path once, collapses slashes and takes the absolute form under /workspace", async () => {
  const threads = workspace();
  const deps = gatewayDeps({ threads });
  for (const path of [
    "a%20b/%C3%BC.txt",
    "x//y.txt",
    "%2Fworkspace%2Fz.txt",
    "100%25.txt",
    "a%252e.txt",
    "q%3Fr%23s",
  ]) {
    await ask(deps, `/threads/t/files/${path}`);
  }
  expect(paths(threads)).toEqual(
    ["a b/ü.txt", "x/y.txt", "z.txt", "100%.txt", "a%2e.txt", "q?r#s"].map((path) => `/workspace/${path}`),
  );
});

describe.each(["GET", "PUT", "DELETE"])("%s refuses, before the object is asked,", (method) => {
  it.each([
    ["a parent segment", "..%2fsecret"],
    ["a parent segment inside", "a/..%2f..%2fsecret"],
    ["an encoded parent segment", "a%2f%2e%2e%2fb"],
    ["a dot segment", "a%2f.%2fb"],
    ["another root", "%2Fetc%2Fpasswd"],
    ["a root that only looks right", "%2Fworkspace2%2Fa"],
    ["a NUL", "a%00b"],
    ["a newline", "a%0Ab"],
    ["a backslash", "..%5Csecret"],
    ["broken percent-encoding", "a%zz"],
    ["bytes that are not UTF-8", "a%ff"],
    ["an endless path", "x".repeat(1_025)],
  ])("%s", async (_what, path) => {
    const threads = workspace();
    const body = method === "PUT" ? { body: "x" } : {};
    const answer = await ask(gatewayDeps({ threads }), `/threads/t/files/${path}`, { method, ...body });
    expect(await failure(answer)).toEqual([422, "invalid_request"]);
    expect(threads.calls).toEqual([]);
  });
});

it("dot segments that the URL itself resolves lead to another route, never to a file above the root", async () => {
  const threads = workspace();
  const answer = await ask(gatewayDeps({ threads }), "/threads/t/files/%2e%2e/%2e%2e/ok", { method: "PUT", body: "x" });
  expect(await failure(answer)).toEqual([404, "not_found"]);
  expect(threads.calls).toEqual([]);
});

it("answers bytes with their type and directories with a listing", async () => {
  const deps = gatewayDeps({ threads: workspace() });
  const file = await ask(deps, "/threads/t/files/data/a.csv");
  expect(file.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(new Uint8Array(await file.arrayBuffer())).toEqual(bytes);
  for (const path of ["/threads/t/files", "/threads/t/files/", "/threads/t/files/data/"]) {
    expect(await (await ask(deps, path)).json()).toMatchObject({ entries: [{ path: "data/a.csv", kind: "file" }] });
  }
});

it("a write is 201 when new and 200 when it replaces; a delete is 204; neither takes the root", async () => {
  const deps = gatewayDeps({ threads: workspace() });
  const put = (path: string) => ask(deps, `/threads/t/files/${path}`, { method: "PUT", body: "12" });
  const created = await put("new.txt");
  expect([created.status, await created.json()]).toEqual([201, { path: "/workspace/new.txt", size: 2, created: true }]);
  expect((await put("old.txt")).status).toBe(200);
  expect((await ask(deps, "/threads/t/files/a", { method: "DELETE" })).status).toBe(204);
  expect(await failure(await put("%2Fworkspace"))).toEqual([422, "invalid_request"]);
});

it("a file that could run in a browser is only ever downloaded", () => {
  for (const name of ["x.html", "x.HTML", "x.svg", "x.xml", "x.js", "x", "x.unknown"]) {
    expect(fileHeaders(name)).toMatchObject({ "x-content-type-options": "nosniff" });
    expect(fileHeaders(name)["content-disposition"]).toMatch(/^attachment/);
  }
  expect(fileHeaders("d/plot.png")["content-disposition"]).toBe("inline; filename*=UTF-8''plot.png");
  expect(fileHeaders(`a"b'ü.txt`)["content-disposition"]).toBe("inline; filename*=UTF-8''a%22b%27%C3%BC.txt");
});
