import { env } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import type { OperatorAgent } from "../../../src/domain/assistant/agent-snapshot.ts";
import { D1Assistants } from "../../../src/platform/d1/assistants.ts";
import { defaultAssistantId } from "../../../src/platform/identifiers.ts";
import type { Assistant } from "../../../src/protocol/assistants.ts";
import { ask, failure, type Failure, gatewayDeps } from "../../support/gateway.ts";

beforeEach(async () => {
  await env.DB.exec("DELETE FROM assistants");
});

const REVIEWER: OperatorAgent = {
  name: "reviewer",
  description: "Reviews.",
  instructions: "Secret operator text.",
  model: "scripted",
  allowedSubagents: ["bash"],
  tools: null,
};

const deps = gatewayDeps({ operatorAgents: [REVIEWER], now: () => 1_700_000_000_000 });
const AT = "2023-11-14T22:13:20.000Z";

function call(method: string, path: string, json?: unknown, key = "key-alice"): Promise<Response> {
  return ask(deps, path, { method, key, ...(json === undefined ? {} : { json }) });
}

async function created(json: object, key?: string): Promise<Assistant> {
  const answer = await call("POST", "/assistants", { graph_id: "lead_agent", ...json }, key);
  expect(answer.status).toBe(200);
  return answer.json<Assistant>();
}

const fetched = async (id: string, key?: string) =>
  (await call("GET", `/assistants/${id}`, undefined, key)).json<Assistant>();

const names = async (path: string, json: object = {}, key?: string) =>
  (await (await call("POST", path, json, key)).json<Assistant[]>()).map(({ name }) => name);

describe("POST /assistants", () => {
  it("stores what was given and mints an id; without a name it is called as the reference API calls it", async () => {
    const config = { configurable: { allowed_subagents: ["bash"], instructions: "Be brief.", other: 1 }, tags: ["t"] };
    const made = await created({
      config,
      context: { model_name: "scripted" },
      metadata: { team: "a" },
      description: "d",
    });
    expect(made).toEqual({
      assistant_id: expect.stringMatching(/^id-\d+$/) as string,
      graph_id: "lead_agent",
      name: "Untitled",
      description: "d",
      config,
      context: { model_name: "scripted" },
      metadata: { team: "a" },
      version: 1,
      created_at: AT,
      updated_at: AT,
    });
    expect(await fetched(made.assistant_id)).toEqual(made);
  });

  it("an id that is taken: `raise` is 409, `do_nothing` answers the one that is there, as it is", async () => {
    const first = await created({ assistant_id: "mine", name: "First" });
    const body = { graph_id: "echo", assistant_id: "mine", name: "Second" };
    expect(await failure(await call("POST", "/assistants", body))).toEqual([409, "already_exists"]);
    expect(await failure(await call("POST", "/assistants", { ...body, if_exists: "raise" }))).toEqual([
      409,
      "already_exists",
    ]);
    const kept = await call("POST", "/assistants", { ...body, if_exists: "do_nothing" });
    expect([kept.status, await kept.json()]).toEqual([200, first]);
  });

  it.each(["lead_agent", "echo", "reviewer", defaultAssistantId("lead_agent"), defaultAssistantId("reviewer")])(
    "%s is the deployment's: taken for everyone",
    async (assistant_id) => {
      const body = { graph_id: "lead_agent", assistant_id };
      expect(await failure(await call("POST", "/assistants", body))).toEqual([409, "already_exists"]);
      const kept = await call("POST", "/assistants", { ...body, if_exists: "do_nothing" });
      expect(await kept.json()).toEqual(await fetched(assistant_id));
      const rows = await env.DB.prepare("SELECT count(*) AS n FROM assistants").first<{ n: number }>();
      expect(rows?.n).toBe(0);
    },
  );

  it.each<[string, object, string]>([
    ["no graph", {}, "body.graph_id"],
    [
      "a graph nobody has",
      { graph_id: "nope" },
      "body.graph_id: there is no graph 'nope'; there are: lead_agent, echo",
    ],
    ["a bad id", { graph_id: "echo", assistant_id: "a/b" }, "body.assistant_id: must match ^[A-Za-z0-9_-]{1,64}$"],
    ["an empty name", { graph_id: "echo", name: "" }, "body.name"],
    ["a long name", { graph_id: "echo", name: "x".repeat(257) }, "body.name"],
    ["a long description", { graph_id: "echo", description: "x".repeat(4_001) }, "body.description"],
    ["metadata that is no object", { graph_id: "echo", metadata: ["x"] }, "body.metadata"],
    ["a config field nobody honours", { graph_id: "echo", config: { callbacks: [] } }, "body.config: unknown field"],
    ["a bad recursion limit", { graph_id: "echo", config: { recursion_limit: 0 } }, "body.config.recursion_limit"],
    ["an unknown field", { graph_id: "echo", version: 7 }, 'body: unknown field "version"'],
    ["a bad if_exists", { graph_id: "echo", if_exists: "replace" }, "body.if_exists"],
    [
      "a restriction that is no list",
      { graph_id: "lead_agent", config: { configurable: { allowed_subagents: "bash" } } },
      "body.config.configurable.allowed_subagents: must be null for all, or a list",
    ],
    [
      "a model nobody has",
      { graph_id: "lead_agent", context: { model_name: "nope" } },
      'body.context.model_name: no model "nope"; must be one of scripted',
    ],
    [
      "instructions that are no text",
      { graph_id: "lead_agent", context: { instructions: 7 } },
      "body.context.instructions: must be a string of at most 100000 characters",
    ],
  ])("%s is refused with the path and what is allowed", async (_what, body, message) => {
    const answer = await call("POST", "/assistants", body);
    const refusal = await answer.json<Failure>();
    expect([answer.status, refusal.code]).toEqual([422, "invalid_request"]);
    expect(refusal.message).toContain(message);
  });

  it("options of other graphs are theirs: nothing is read into them", async () => {
    const config = { configurable: { allowed_subagents: 7, instructions: [] } };
    expect((await created({ graph_id: "echo", config })).config).toEqual(config);
  });

  it("P8 more bytes than one may have are 413", async () => {
    const answer = await call("POST", "/assistants", { graph_id: "echo", metadata: { k: "x".repeat(300_001) } });
    expect(await failure(answer)).toEqual([413, "too_large"]);
  });
});

describe("PATCH /assistants/{id}", () => {
  it("replaces what is given, merges metadata key by key, and makes the next version", async () => {
    const before = await created({
      assistant_id: "mine",
      name: "First",
      description: "d",
      config: { tags: ["a"], recursion_limit: 9 },
      metadata: { kept: 1, changed: { deep: true } },
    });
    const patch = { config: { tags: ["b"] }, metadata: { changed: 2, added: 3 } };
    const patched = await (await call("PATCH", "/assistants/mine", patch)).json<Assistant>();
    expect(patched).toEqual({
      ...before,
      version: 2,
      config: { tags: ["b"] },
      metadata: { kept: 1, changed: 2, added: 3 },
    });
    const again = await (
      await call("PATCH", "/assistants/mine", { name: "Second", description: null })
    ).json<Assistant>();
    expect(again).toEqual({ ...patched, version: 3, name: "Second" });
    const moved = await (
      await call("PATCH", "/assistants/mine", { graph_id: "echo", context: { a: 1 } })
    ).json<Assistant>();
    expect([moved.graph_id, moved.context, moved.version]).toEqual(["echo", { a: 1 }, 4]);
    expect(await fetched("mine")).toEqual(moved);
  });

  it("is refused as a whole: a change to another graph must fit what is stored", async () => {
    await created({ graph_id: "echo", assistant_id: "mine", config: { configurable: { allowed_subagents: 7 } } });
    const answer = await call("PATCH", "/assistants/mine", { graph_id: "lead_agent", name: "New" });
    expect(await answer.json<Failure>()).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("body.config.configurable.allowed_subagents") as string,
    });
    expect(await fetched("mine")).toMatchObject({ version: 1, name: "Untitled", graph_id: "echo" });
    expect(await failure(await call("PATCH", "/assistants/mine", { graph_id: "nope" }))).toEqual([
      422,
      "invalid_request",
    ]);
    expect(await failure(await call("PATCH", "/assistants/mine", { assistant_id: "other" }))).toEqual([
      422,
      "invalid_request",
    ]);
  });

  it("two at once are both in it, one after the other, each with a version of its own", async () => {
    await created({ assistant_id: "mine" });
    const answers = await Promise.all(
      ["a", "b", "c"].map((key) => call("PATCH", "/assistants/mine", { metadata: { [key]: true } })),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    const versions = await Promise.all(answers.map(async (answer) => (await answer.json<Assistant>()).version));
    expect(new Set(versions)).toEqual(new Set([2, 3, 4]));
    expect(await fetched("mine")).toMatchObject({ version: 4, metadata: { a: true, b: true, c: true } });
  });

  it("one that others overtake at every try is told so, and has changed nothing", async () => {
    await created({ assistant_id: "mine" });
    let tries = 0;
    /** Whoever reads it has been overtaken when they have. */
    class Overtaken extends D1Assistants {
      override async find(owner: string, id: string) {
        const read = (await super.find(owner, id))!;
        tries += 1;
        await super.replace(owner, { read, next: { ...read, name: `other ${tries}` } }, 1);
        return read;
      }
    }
    const assistants = new Overtaken(env.DB);
    const answer = await ask({ ...deps, assistants }, "/assistants/mine", { method: "PATCH", json: { name: "mine" } });
    expect(await failure(answer)).toEqual([409, "version_conflict"]);
    expect(tries).toBeLessThan(20);
    expect((await fetched("mine")).name).toMatch(/^other/);
  });

  it("against a DELETE: one of the two answers is true, and nothing comes back from the dead", async () => {
    for (let round = 0; round < 5; round += 1) {
      await created({ assistant_id: "mine" });
      const [patched, deleted] = await Promise.all([
        call("PATCH", "/assistants/mine", { name: "New" }),
        call("DELETE", "/assistants/mine"),
      ]);
      expect(deleted.status).toBe(204);
      expect([200, 404]).toContain(patched.status);
      expect((await call("GET", "/assistants/mine")).status).toBe(404);
    }
  });
});

describe("DELETE /assistants/{id}", () => {
  it("answers 204 once, with the query the SDK sends; threads are not deleted with it", async () => {
    await created({ assistant_id: "mine" });
    expect(await failure(await call("DELETE", "/assistants/mine?delete_threads=maybe"))).toEqual([
      422,
      "invalid_request",
    ]);
    const deleted = await call("DELETE", "/assistants/mine?delete_threads=false");
    expect([deleted.status, await deleted.text()]).toEqual([204, ""]);
    expect(await failure(await call("DELETE", "/assistants/mine"))).toEqual([404, "not_found"]);
  });
});

describe("whose an assistant is", () => {
  it.each(["lead_agent", "reviewer", defaultAssistantId("echo"), defaultAssistantId("reviewer")])(
    "%s belongs to the deployment: neither changed nor deleted, by anybody",
    async (id) => {
      for (const key of ["key-alice", "key-admin"]) {
        for (const answer of [
          await call("PATCH", `/assistants/${id}`, { name: "x" }, key),
          await call("DELETE", `/assistants/${id}`, undefined, key),
          await call("DELETE", `/assistants/${id}?delete_threads=true`, undefined, key),
          await call("POST", `/assistants/${id}/latest`, { version: 1 }, key),
        ]) {
          const refusal = await answer.json<Failure>();
          expect([answer.status, refusal.code]).toEqual([403, "forbidden"]);
          expect(refusal.message).toContain("belongs to the deployment");
        }
      }
    },
  );

  it("P7 a foreign id answers exactly like a missing one, on every route", async () => {
    await created({ assistant_id: "foreign" }, "key-bob");
    const run = { assistant_id: "?", input: { messages: [] } };
    const routes: [string, (id: string) => string, ((id: string) => object)?][] = [
      ["GET", (id) => `/assistants/${id}`],
      ["PATCH", (id) => `/assistants/${id}`, () => ({ name: "x" })],
      ["DELETE", (id) => `/assistants/${id}`],
      ["DELETE", (id) => `/assistants/${id}?delete_threads=true`],
      ["POST", (id) => `/assistants/${id}/versions`, () => ({})],
      ["POST", (id) => `/assistants/${id}/latest`, () => ({ version: 1 })],
      ...[
        "/threads/t/runs",
        "/threads/t/runs/stream",
        "/threads/t/runs/wait",
        "/runs",
        "/runs/stream",
        "/runs/wait",
      ].map((path): [string, (id: string) => string, (id: string) => object] => [
        "POST",
        () => path,
        (assistant_id) => ({ ...run, assistant_id }),
      ]),
    ];
    for (const [method, path, body] of routes) {
      const seen = async (id: string) => {
        const answer = await call(method, path(id), body?.(id));
        const { request_id: _own, ...rest } = await answer.json<Failure>();
        return [answer.status, rest];
      };
      expect(await seen("foreign")).toEqual(await seen("missing"));
      expect(await seen("foreign")).toEqual([404, { code: "not_found", message: "Assistant not found" }]);
    }
    expect((await fetched("foreign", "key-bob")).version).toBe(1);
  });

  it("P7 the same id of two owners is two assistants", async () => {
    await created({ assistant_id: "same", name: "Alice's" });
    await created({ assistant_id: "same", name: "Bob's" }, "key-bob");
    await call("PATCH", "/assistants/same", { name: "Bob's new" }, "key-bob");
    expect([(await fetched("same")).name, (await fetched("same", "key-bob")).name]).toEqual(["Alice's", "Bob's new"]);
  });

  it("an operator's agent is an assistant of the lead agent under a stable id and its name, without its instructions", async () => {
    const agent = await fetched("reviewer");
    expect(agent).toEqual({
      assistant_id: defaultAssistantId("reviewer"),
      graph_id: "lead_agent",
      name: "reviewer",
      description: "Reviews.",
      config: { configurable: { model_name: "scripted", allowed_subagents: ["bash"] } },
      context: {},
      metadata: { created_by: "system" },
      version: 1,
      created_at: "1970-01-01T00:00:00.000Z",
      updated_at: "1970-01-01T00:00:00.000Z",
    });
    expect(await fetched(agent.assistant_id)).toEqual(agent);
  });

  it("a row whose id the deployment takes later is kept, unseen until the id is free again", async () => {
    const without = gatewayDeps({ operatorAgents: [] });
    await ask(without, "/assistants", {
      method: "POST",
      json: { graph_id: "echo", assistant_id: "reviewer", name: "Old" },
    });
    expect(await fetched("reviewer")).toMatchObject({ description: "Reviews." });
    expect(await names("/assistants/search", { name: "old" })).toEqual([]);
    expect(await (await call("POST", "/assistants/count", { graph_id: "echo" })).json()).toBe(1);
    expect(await (await ask(without, "/assistants/reviewer")).json()).toMatchObject({ name: "Old" });
  });
});

describe("search and count", () => {
  it("list the deployment's and the owner's own, newest first, and nobody else's", async () => {
    await created({ name: "Mine", metadata: { team: { id: 7, tags: ["x", "y"] } } });
    await created({ name: "Theirs" }, "key-bob");
    expect(await names("/assistants/search")).toEqual(["Mine", "Echo", "Lead agent", "reviewer"]);
    expect(await (await call("POST", "/assistants/count", {})).json()).toBe(4);
    expect(await names("/assistants/search", { sort_by: "name", sort_order: "asc", limit: 2, offset: 1 })).toEqual([
      "Lead agent",
      "Mine",
    ]);
    expect(await names("/assistants/search", {}, "key-bob")).toContain("Theirs");
  });

  it("filter by graph, name and contained metadata alike", async () => {
    await created({ name: "Mine", metadata: { team: { id: 7, tags: ["x", "y"] }, n: 1 } });
    const filters: [object, string[]][] = [
      [{ graph_id: "echo" }, ["Echo"]],
      [{ name: "MI" }, ["Mine"]],
      [{ metadata: { team: { id: 7 } } }, ["Mine"]],
      [{ metadata: { team: { tags: ["y"] } } }, ["Mine"]],
      [{ metadata: { team: { id: 8 } } }, []],
      [{ metadata: { team: {}, n: "1" } }, []],
      [{ metadata: { toString: {} } }, []],
      [{ metadata: {}, name: "mine", graph_id: "lead_agent" }, ["Mine"]],
    ];
    for (const [filter, found] of filters) {
      expect(await names("/assistants/search", filter)).toEqual(found);
      expect(await (await call("POST", "/assistants/count", filter)).json()).toBe(found.length);
    }
  });

  it("refuse what they do not know", async () => {
    const selected = await call("POST", "/assistants/search", { select: ["secret"] });
    expect(await failure(selected)).toEqual([422, "invalid_request"]);
    expect(await failure(await call("POST", "/assistants/count", { limit: 1 }))).toEqual([422, "invalid_request"]);
    expect(await failure(await call("POST", "/assistants/search", { limit: 1_001 }))).toEqual([422, "invalid_request"]);
  });
});
