import { env } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import {
  ASSISTANT_BYTES_MAX,
  ASSISTANT_VERSIONS_MAX,
  ASSISTANTS_BYTES_MAX,
  ASSISTANTS_MAX,
  type AssistantFields,
} from "../../../src/domain/assistant/assistant.ts";
import { D1Assistants } from "../../../src/platform/d1/assistants.ts";

const store = new D1Assistants(env.DB);

beforeEach(async () => {
  await env.DB.exec("DELETE FROM assistants");
  await env.DB.exec("DELETE FROM assistant_versions");
});

const fields = (over: Partial<AssistantFields> = {}): AssistantFields => ({
  graphId: "lead_agent",
  name: "Auditor",
  description: null,
  config: {},
  context: {},
  metadata: {},
  ...over,
});

async function made(assistantId: string, over: Partial<AssistantFields> = {}, owner = "alice") {
  const created = await store.create(owner, { assistantId, ...fields(over) }, 1_000);
  if (!created.ok) throw new Error(created.error.reason);
  return created.value;
}

/** As many as asked, quickly: what the store itself would write. */
async function fill(count: number, configBytes: number): Promise<void> {
  const config = JSON.stringify({ tags: ["x".repeat(configBytes - 13)] });
  await env.DB.prepare(
    `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
     INSERT INTO assistants (owner, assistant_id, version, graph_id, name, created_at, updated_at, metadata, context, config)
     SELECT 'alice', 'filler-' || i, 1, 'lead_agent', 'f', 1, 1, '{}', '{}', ?2 FROM n`,
  )
    .bind(count, config)
    .run();
}

describe("R6 assistants in D1", () => {
  it("give back what was written, at version 1, with both times", async () => {
    const metadata = { team: "audit", "a.b": [1, null, { c: "ü" }], __proto__x: true };
    const config = { configurable: { model_name: "small", allowed_subagents: [] }, tags: ["t"] };
    const created = await made("a1", { config, metadata, context: { k: 1 }, description: "d" });
    expect(created).toEqual({
      assistantId: "a1",
      version: 1,
      graphId: "lead_agent",
      name: "Auditor",
      description: "d",
      config,
      context: { k: 1 },
      metadata,
      createdAt: 1_000,
      updatedAt: 1_000,
    });
    expect(await store.find("alice", "a1")).toEqual(created);
    expect(await store.list("alice")).toEqual([created]);
  });

  it("P7 belong to one owner: the same id of another one is another assistant", async () => {
    await made("same", { name: "Alice's" });
    await made("same", { name: "Bob's" }, "bob");
    expect((await store.find("bob", "same"))?.name).toBe("Bob's");
    const read = (await store.find("bob", "same"))!;
    await store.replace("bob", { read, next: fields({ name: "Bob's new" }) }, 2_000);
    expect(await store.delete("bob", "same")).toBe(true);
    expect(await store.delete("bob", "same")).toBe(false);
    expect((await store.list("alice")).map(({ name }) => name)).toEqual(["Alice's"]);
    expect(await store.find("carol", "same")).toBeUndefined();
    expect(await store.replace("carol", { read, next: fields() }, 2_000)).toMatchObject({
      error: { reason: "not_found" },
    });
  });

  it("an id that is taken is refused with the one that has it; two creates at once make one", async () => {
    const first = await made("a1", { name: "first" });
    expect(await store.create("alice", { assistantId: "a1", ...fields({ name: "second" }) }, 2_000)).toEqual({
      ok: false,
      error: { reason: "already_exists", existing: first },
    });
    const both = await Promise.all([1, 2].map((at) => store.create("alice", { assistantId: "a2", ...fields() }, at)));
    expect(both.filter(({ ok }) => ok)).toHaveLength(1);
  });

  it("a change is made to the version that was read or not at all; versions rise by one", async () => {
    // The same metadata throughout: the version alone tells the three apart.
    const read = await made("a1");
    const results = await Promise.all(
      ["x", "y", "z"].map((name) => store.replace("alice", { read, next: fields({ name }) }, 2_000)),
    );
    expect(results.filter(({ ok }) => ok)).toHaveLength(1);
    expect(results.filter((result) => !result.ok && result.error.reason === "changed")).toHaveLength(2);
    const now = (await store.find("alice", "a1"))!;
    expect([now.version, now.createdAt, now.updatedAt]).toEqual([2, 1_000, 2_000]);
    const again = await store.replace("alice", { read: now, next: fields({ name: "later" }) }, 1_500);
    expect(again).toMatchObject({ ok: true, value: { version: 3, name: "later", updatedAt: 2_000 } });
  });

  it("one deleted and made again is not taken for the one that was read", async () => {
    const read = await made("a1", { metadata: { old: true } });
    await store.delete("alice", "a1");
    await made("a1", { metadata: { new: true } });
    const next = fields({ metadata: { ...read.metadata, more: 1 } });
    expect(await store.replace("alice", { read, next }, 2_000)).toMatchObject({ error: { reason: "changed" } });
    expect((await store.find("alice", "a1"))?.metadata).toEqual({ new: true });
  });

  it("P8 one is bounded in bytes, whatever letters they are of; the largest fits", async () => {
    const letters = "é".repeat((ASSISTANT_BYTES_MAX - 4 - 8) / 2);
    const most = await made("a1", { metadata: { k: letters } });
    const more = fields({ metadata: { k: `${letters}é` } });
    const tooLarge = { ok: false, error: { reason: "too_large", limit: ASSISTANT_BYTES_MAX } };
    expect(await store.create("alice", { assistantId: "a2", ...more }, 1)).toEqual(tooLarge);
    expect(await store.replace("alice", { read: most, next: more }, 1)).toEqual(tooLarge);
  });

  it("P8 an owner's are bounded in number, and another owner's do not count", async () => {
    await fill(ASSISTANTS_MAX - 1, 20);
    const last = await made("last");
    expect(await store.create("alice", { assistantId: "more", ...fields() }, 1)).toEqual({
      ok: false,
      error: { reason: "too_many", limit: ASSISTANTS_MAX },
    });
    // An id that is taken is told as such at the bound too, and changes still go through.
    expect(await store.create("alice", { assistantId: "last", ...fields() }, 1)).toMatchObject({
      error: { reason: "already_exists" },
    });
    expect(await store.replace("alice", { read: last, next: fields() }, 1)).toMatchObject({ ok: true });
    await made("bob's", {}, "bob");
    expect(await store.list("alice")).toHaveLength(ASSISTANTS_MAX);
  });

  it("P8 and in bytes together, held in the statement that writes", async () => {
    const each = 200_000;
    await fill(ASSISTANTS_BYTES_MAX / each - 1, each - 4);
    const half = fields({ metadata: { k: "x".repeat(each / 2 + 100) } });
    const both = await Promise.all(["a", "b"].map((assistantId) => store.create("alice", { assistantId, ...half }, 1)));
    expect(both.filter(({ ok }) => ok)).toHaveLength(1);
    expect(both.find(({ ok }) => !ok)).toEqual({
      ok: false,
      error: { reason: "too_large", limit: ASSISTANTS_BYTES_MAX },
    });
    const read = both.find((result) => result.ok)!;
    if (!read.ok) throw new Error("unreachable");
    const next = fields({ metadata: { k: "x".repeat(each + 100) } });
    expect(await store.replace("alice", { read: read.value, next }, 1)).toEqual({
      ok: false,
      error: { reason: "too_large", limit: ASSISTANTS_BYTES_MAX },
    });
  });

  it("cost two rows written for a create and a change, three once the oldest version goes", async () => {
    const written: number[] = [];
    const counting = new Proxy(env.DB, {
      get(db, name) {
        if (name !== "batch") {
          const value = Reflect.get(db, name) as unknown;
          return typeof value === "function" ? (value as (...args: unknown[]) => unknown).bind(db) : value;
        }
        return async (statements: D1PreparedStatement[]) => {
          const results = await db.batch(statements);
          written.push(results.reduce((sum, { meta }) => sum + meta.rows_written, 0));
          return results;
        };
      },
    });
    const metered = new D1Assistants(counting);
    const made = await metered.create("alice", { assistantId: "a1", ...fields() }, 1);
    if (!made.ok) throw new Error("refused");
    let read = made.value;
    for (let change = 1; change <= ASSISTANT_VERSIONS_MAX; change += 1) {
      const changed = await metered.replace("alice", { read, next: fields({ name: `n${change}` }) }, 2);
      if (!changed.ok) throw new Error("refused");
      read = changed.value;
    }
    await metered.setLatest("alice", { assistantId: "a1", version: 5 }, 3);
    expect(written).toEqual([2, ...Array.from({ length: ASSISTANT_VERSIONS_MAX - 1 }, () => 2), 3, 1]);
    await metered.delete("alice", "a1");
    expect(written.at(-1)).toBe(1 + ASSISTANT_VERSIONS_MAX);
  });
});
