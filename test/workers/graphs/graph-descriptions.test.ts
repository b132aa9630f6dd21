/** What clients are told of a graph without a run: over HTTP, of the test graphs and of the lead agent. */
import { describe, expect, it } from "vitest";
import type { GraphDrawing, GraphSchemas } from "../../../src/protocol/assistants.ts";
import { ALICE, send, sendJson } from "../../support/http.ts";

const schemasOf = (id: string) => sendJson<GraphSchemas>("GET", `/assistants/${id}/schemas`);
const drawn = (id: string, query = "") => sendJson<GraphDrawing>("GET", `/assistants/${id}/graph${query}`);
const subgraphs = (id: string, rest = "") =>
  sendJson<Record<string, GraphSchemas>>("GET", `/assistants/${id}/subgraphs${rest}`);

const namesIn = (schema: Record<string, unknown> | null) => Object.keys(schema?.["properties"] ?? {}).toSorted();

describe("GET /assistants/{id}/schemas", () => {
  it("zod schemas are told whole, the context's as config's too", async () => {
    const told = await schemasOf("contextual");
    expect(told).toMatchObject({
      graph_id: "contextual",
      input_schema: { properties: { topic: { type: "string" } } },
      output_schema: { properties: { said: { type: "string" } } },
      context_schema: {
        properties: { user_id: { type: "string" }, level: { type: "integer" } },
        required: ["user_id"],
      },
    });
    expect(namesIn(told.state_schema)).toEqual(["said", "topic"]);
    expect(told.config_schema).toEqual(told.context_schema);
  });

  it("annotations are told by name, and messages as what they are", async () => {
    const told = await schemasOf("chatting");
    expect(namesIn(told.state_schema)).toEqual(["gate", "messages"]);
    expect(told.input_schema).toMatchObject({ properties: { messages: { type: "array" }, gate: {} } });
    expect([told.config_schema, told.context_schema]).toEqual([null, null]);
  });

  it("a graph that tells nothing has no schema, instead of a failure", async () => {
    expect(await schemasOf("functional")).toEqual({
      graph_id: "functional",
      input_schema: null,
      output_schema: null,
      state_schema: null,
      config_schema: null,
      context_schema: null,
    });
  });

  it("of the lead agent: what a client may write, what it reads, and its options", async () => {
    const told = await schemasOf("lead_agent");
    expect(namesIn(told.input_schema)).toContain("messages");
    expect(namesIn(told.input_schema)).not.toContain("delegations");
    expect(namesIn(told.state_schema)).toContain("delegations");
    expect(namesIn(told.state_schema)).not.toContain("run_progress");
    expect(namesIn(told.context_schema)).toEqual(
      expect.arrayContaining(["allowed_subagents", "instructions", "model_name"]),
    );
  });

  it("a factory is asked with the assistant's config; where it fails, its own words are told", async () => {
    const refused = await send("GET", "/assistants/dynamic/schemas");
    expect(refused.status).toBe(422);
    expect((await refused.json<{ message: string }>()).message).toContain("FlavourError: a flavour is required");
    const made = await sendJson<{ assistant_id: string }>("POST", "/assistants", {
      graph_id: "dynamic",
      config: { configurable: { flavour: "plain" } },
    });
    expect(namesIn((await schemasOf(made.assistant_id)).state_schema)).toEqual(["count", "said"]);
  });
});

describe("GET /assistants/{id}/graph", () => {
  it("names nodes and edges, conditional ones among them", async () => {
    const { nodes, edges } = await drawn("counting");
    expect(nodes.map(({ id }) => id)).toEqual(["__start__", "add", "__end__"]);
    expect(edges).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ source: "__start__", target: "add" }),
        expect.objectContaining({ source: "add", target: "__end__", conditional: true }),
      ]),
    );
  });

  it("draws nested graphs in their place, as deep as `xray` says", async () => {
    const ids = async (query: string) => (await drawn("nested", query)).nodes.map(({ id }) => id);
    expect(await ids("")).toEqual(["__start__", "before", "middle", "end", "__end__"]);
    expect(await ids("?xray=1")).toEqual(expect.arrayContaining(["middle:inner", "middle:after"]));
    const whole = await ids("?xray=true");
    expect(whole.some((id) => String(id).endsWith("second"))).toBe(true);
    expect((await send("GET", "/assistants/nested/graph?xray=deep")).status).toBe(422);
  });

  it.each(["lead_agent", "functional", "fan_out", "commanding"])("of %s is drawn", async (id) => {
    expect((await drawn(id, "?xray=true")).nodes.length).toBeGreaterThan(1);
  });
});

describe("GET /assistants/{id}/subgraphs", () => {
  it("tells the graphs inside, those inside of them, or one", async () => {
    const names = async (rest?: string) => Object.keys(await subgraphs("nested", rest)).toSorted();
    expect(await names()).toEqual(["middle"]);
    expect(await names("?recurse=true")).toEqual(["middle", "middle|inner"]);
    expect(await names("/middle")).toEqual(["middle"]);
    expect(await names(`/${encodeURIComponent("middle|inner")}?recurse=true`)).toEqual(["middle|inner"]);
    expect(await names("/nobody")).toEqual([]);
    const { middle } = await subgraphs("nested");
    expect([middle?.graph_id, namesIn(middle?.state_schema ?? null)]).toEqual(["nested", ["answer", "ask", "gate"]]);
  });
});

it.each(["graph", "schemas", "subgraphs", "subgraphs/x"])(
  "P7 %s of a foreign assistant is that of a missing one",
  async (path) => {
    const made = await send("POST", "/assistants", { graph_id: "nested" }, { ...ALICE, "x-api-key": "key-bob" });
    const { assistant_id: foreign } = await made.json<{ assistant_id: string }>();
    const seen = async (id: string) => {
      const answer = await send("GET", `/assistants/${id}/${path}`);
      const { code, message } = await answer.json<{ code: string; message: string }>();
      return [answer.status, code, message];
    };
    expect(await seen(foreign)).toEqual([404, "not_found", "Assistant not found"]);
    expect(await seen("missing")).toEqual(await seen(foreign));
  },
);
