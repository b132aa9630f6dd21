import { env } from "cloudflare:test";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { createGateway, OPERATIONS } from "../../../src/gateway/app.ts";
import type { OpenApiDocument } from "../../../src/gateway/openapi.ts";
import { ok } from "../../../src/domain/shared/result.ts";
import { D1RunEventLog } from "../../../src/platform/d1/run-event-log.ts";
import type { Batch } from "../../../src/protocol/batches.ts";
import type { Run } from "../../../src/protocol/runs.ts";
import type { Thread, ThreadStateBody } from "../../../src/protocol/threads.ts";
import { FakeThreads } from "../../support/fake-threads.ts";
import { ROUTE_SAMPLES } from "../../support/route-samples.ts";
import { ask, gatewayDeps } from "../../support/gateway.ts";

let document: OpenApiDocument;

beforeAll(async () => {
  document = await (await ask(gatewayDeps(), "/openapi.json", { key: null })).json<OpenApiDocument>();
});

interface Entry {
  operationId?: string;
  summary?: string;
  parameters?: { name: string; in: string; schema: object }[];
  requestBody?: { content: Record<string, { schema: object }> };
  responses: Record<string, { description: string; content?: Record<string, { schema?: object }> }>;
}

function entry(method: string, path: string): Entry | undefined {
  const documented = path.replace(/:(\w+)(\{[^}]*\})?/g, "{$1}");
  return (document.paths[documented] as unknown as Record<string, Entry> | undefined)?.[method.toLowerCase()];
}

it("names its shapes as components, once", () => {
  const names = Object.keys(document.components.schemas ?? {});
  for (const name of [
    "Assistant",
    "Batch",
    "BatchItem",
    "Error",
    "ManagedSubagent",
    "Run",
    "RunEvent",
    "Thread",
    "ThreadState",
  ]) {
    expect(names).toContain(name);
  }
});

it("describes every route that Hono serves, and no other", () => {
  expect(document.openapi).toMatch(/^3\.1/);
  const served = createGateway(gatewayDeps()).routes.filter((route) => route.method !== "ALL");
  const paths = [...new Set(served.map((route) => `${route.method} ${route.path}`))];
  expect(paths.length).toBe(OPERATIONS.length + 1);
  for (const route of served) {
    expect(entry(route.method, route.path)?.operationId, `${route.method} ${route.path}`).toBeTruthy();
  }
  const described = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
  expect(described.length).toBe(paths.length);
});

describe.each(OPERATIONS.map(({ spec }) => ({ spec, name: `${spec.method.toUpperCase()} ${spec.path}` })))(
  "$name",
  ({ spec }) => {
    it("is described whole: summary, path parameters, query, body, answers and errors with schemas", () => {
      const found = entry(spec.method, spec.path);
      expect(found).toMatchObject({ operationId: spec.id, summary: spec.summary });
      const inPath = [...spec.path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? "").sort();
      const parameters = found?.parameters ?? [];
      expect(
        parameters
          .filter((one) => one.in === "path")
          .map((one) => one.name)
          .sort(),
      ).toEqual(inPath);
      if (spec.query !== undefined) expect(parameters.some((one) => one.in === "query")).toBe(true);
      if (spec.body !== undefined) {
        const { schema } = found?.requestBody?.content["application/json"] ?? {};
        expect(z.fromJSONSchema(standalone(schema)).safeParse(ROUTE_SAMPLES[spec.id]?.json).success).toBe(true);
        expect(z.fromJSONSchema(standalone(schema)).safeParse({ surprise: 1 }).success).toBe(false);
      }
      for (const status of Object.keys(spec.responses)) expect(found?.responses[status]?.description).toBeTruthy();
      if (!spec.open) expect(found?.responses["401"]?.content?.["application/json"]?.schema).toBeTruthy();
    });
  },
);

/** The schema with its references resolved: each part of the document stands alone for the validator. */
function standalone(schema: unknown): Parameters<typeof z.fromJSONSchema>[0] {
  const schemas = (document.components.schemas ?? {}) as Record<string, object>;
  const text = JSON.stringify({ ...(schema as object), $defs: schemas }).replaceAll(
    "#/components/schemas/",
    "#/$defs/",
  );
  return JSON.parse(text) as Parameters<typeof z.fromJSONSchema>[0];
}

const AT = "2026-01-01T00:00:00.000Z";
const THREAD: Thread = {
  thread_id: "t",
  created_at: AT,
  updated_at: AT,
  metadata: {},
  status: "idle",
  values: { messages: [] },
  interrupts: {},
};
const RUN: Run = {
  run_id: "r",
  thread_id: "t",
  assistant_id: "a",
  created_at: AT,
  updated_at: AT,
  status: "error",
  metadata: {},
  multitask_strategy: "reject",
  error: { error: "GraphRecursionError", message: "spent" },
};
const STATE: ThreadStateBody = {
  values: {},
  next: [],
  checkpoint: null,
  metadata: null,
  created_at: null,
  parent_checkpoint: null,
  tasks: [
    {
      id: "1",
      name: "model",
      error: null,
      interrupts: [{ id: "i", value: 1 }],
      checkpoint: null,
      state: null,
      result: null,
      path: [],
    },
  ],
};
const BATCH: Batch = {
  batch_id: "b",
  thread_id: "t",
  title: "x",
  subagent_type: "bash",
  status: "running",
  total_items: 1,
  counts: { pending: 1, leased: 0, completed: 0, failed: 0, cancelled: 0 },
  max_live_items: 1,
  max_running_items: 1,
  max_attempts: 1,
  timeout_seconds: 1,
  created_at: AT,
  updated_at: AT,
};

const threads = new FakeThreads({
  createThread: async () => ok(THREAD),
  getThread: async () => ok(THREAD),
  getState: async () => ok(STATE),
  history: async () => ok([STATE]),
  createRun: async () => ok(RUN),
  listRuns: async () => ok([RUN]),
  flushEvents: async () => ok(null),
  getFile: async () =>
    ok({ kind: "directory", path: "", entries: [{ path: "a", kind: "file", size: 1, modified_at: AT }] }),
  putFile: async (_address, path, bytes) => ok({ path, size: bytes.length, created: true }),
  createBatch: async () => ok({ batch: BATCH, created: true }),
});

it("says that a file comes as bytes of any media type, beside a directory's listing", () => {
  const answers = entry("get", "/threads/:thread_id/files/:path")?.responses["200"]?.content ?? {};
  expect(Object.keys(answers).sort()).toEqual(["*/*", "application/json"]);
  expect(answers["*/*"]).toEqual({ schema: { type: "string", format: "binary" } });
});

it("promises no conflict for deleting a thread: what runs is cancelled first", () => {
  expect(Object.keys(entry("delete", "/threads/:thread_id")?.responses ?? {})).not.toContain("409");
});

it.each([
  ["getInfo", 200],
  ["searchAssistants", 200],
  ["createThread", 200],
  ["getState", 200],
  ["getHistory", 200],
  ["createRun", 200],
  ["listRuns", 200],
  ["listRunEvents", 200],
  ["listFiles", 200],
  ["putFile", 201],
  ["createBatch", 201],
  ["getBatch", 404],
  ["listSubagents", 200],
  ["getSubagent", 200],
] as const)("a real answer of %s (%i) is valid by the document, and spoilt it is not", async (id, status) => {
  const key = { owner: "alice", thread_id: "t" };
  const event = {
    seq: 1,
    run_id: "r",
    event_type: "run.start",
    category: "trace",
    content: null,
    metadata: {},
  } as const;
  const projected = { run_id: "r", assistant_id: "a", status: "running", metadata: {}, error: null } as const;
  await new D1RunEventLog(env.DB).flush(key, {
    epoch: 1,
    events: [{ ...event, created_at: AT }],
    runs: [{ ...projected, created_at: AT, updated_at: AT }],
  });
  const spec = OPERATIONS.find((one) => one.spec.id === id)?.spec;
  const sample = ROUTE_SAMPLES[id];
  if (spec === undefined || sample === undefined) throw new Error(`no route ${id}`);
  const { path, ...input } = sample;
  const answer = await ask(gatewayDeps({ threads }), path, { method: spec.method.toUpperCase(), ...input });
  expect(answer.status).toBe(status);
  const schema = entry(spec.method, spec.path)?.responses[String(status)]?.content?.["application/json"]?.schema;
  const validator = z.fromJSONSchema(standalone(schema));
  const body = await answer.json<object | object[]>();
  expect(Array.isArray(body) ? body.length : 1).toBeGreaterThan(0);
  expect(validator.safeParse(body)).toMatchObject({ success: true });
  expect(validator.safeParse(Array.isArray(body) ? ["spoilt"] : {}).success).toBe(false);
});
