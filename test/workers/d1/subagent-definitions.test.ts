import { env } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import { MANAGED_SUBAGENTS_BYTES_MAX, MANAGED_SUBAGENTS_MAX } from "../../../src/domain/delegation/managed-subagent.ts";
import { D1SubagentDefinitions } from "../../../src/platform/d1/subagent-definitions.ts";
import { managedDefinition, managedSubagent } from "../../support/managed.ts";

const store = new D1SubagentDefinitions(env.DB);
const BY = { by: "root", now: 1_000 };

const create = (name: string, over: Parameters<typeof managedDefinition>[0] = {}, enabled = true) =>
  store.systemCreate({ name, enabled, definition: managedDefinition(over) }, BY);

beforeEach(async () => {
  await env.DB.exec("DELETE FROM subagent_definitions");
});

describe("managed definitions in D1", () => {
  it("R6 gives back what was stored, once per name", async () => {
    const definition = managedDefinition({ tools: ["bash"], maxDepth: 2 });
    const created = await store.systemCreate({ name: "a", enabled: false, definition }, BY);
    const stored = {
      name: "a",
      version: 1,
      enabled: false,
      definition,
      createdAt: 1_000,
      updatedAt: 1_000,
      updatedBy: "root",
    };
    expect(created).toEqual({ ok: true, value: stored });
    expect(await store.systemFind("a")).toEqual(stored);
    expect(await create("a", { description: "again" })).toEqual({ ok: false, error: { reason: "already_exists" } });
    expect(await store.systemList()).toEqual([stored]);
    expect(await store.systemFind("b")).toBeUndefined();
  });

  it("an update changes the version it names, or nothing", async () => {
    await create("a");
    const next = managedSubagent("a", { description: "new" });
    const change = { by: "other", now: 2_000 };
    expect(await store.systemUpdate(next, change)).toMatchObject({
      value: { version: 2, definition: { description: "new" }, createdAt: 1_000, updatedAt: 2_000, updatedBy: "other" },
    });
    expect(await store.systemUpdate(managedSubagent("a", { description: "late" }), change)).toEqual({
      ok: false,
      error: { reason: "version_conflict", version: 2 },
    });
    expect(await store.systemFind("a")).toMatchObject({ version: 2, definition: { description: "new" } });
    expect(await store.systemUpdate(managedSubagent("b"), change)).toEqual({
      ok: false,
      error: { reason: "not_found" },
    });
  });

  it("of two updates of one version that race, one wins", async () => {
    await create("a");
    const updates = ["left", "right"].map((description) =>
      store.systemUpdate(managedSubagent("a", { description }), BY),
    );
    const ended = await Promise.all(updates);
    expect(ended.filter((each) => each.ok)).toHaveLength(1);
    expect((await store.systemFind("a"))?.version).toBe(2);
  });

  it("switching is idempotent, and only enabled definitions are what runs read", async () => {
    await create("b");
    await create("a");
    expect(await store.systemSetEnabled("b", true, BY)).toMatchObject({ value: { version: 1 } });
    expect(await store.systemSetEnabled("b", false, BY)).toMatchObject({ value: { version: 2, enabled: false } });
    expect(await store.systemListEnabled()).toEqual([managedSubagent("a")]);
    expect(await store.systemSetEnabled("b", true, BY)).toMatchObject({ value: { version: 3, enabled: true } });
    expect((await store.systemListEnabled()).map((each) => each.name)).toEqual(["a", "b"]);
    expect(await store.systemSetEnabled("c", true, BY)).toEqual({ ok: false, error: { reason: "not_found" } });
  });

  it("deletes, and says when there was nothing", async () => {
    await create("a");
    expect([await store.systemDelete("a"), await store.systemDelete("a")]).toEqual([true, false]);
  });

  it("P8 keeps so many and no more, also against writers at once", async () => {
    const names = Array.from({ length: MANAGED_SUBAGENTS_MAX - 1 }, (_, at) => `n${at}`);
    await env.DB.prepare(
      `INSERT INTO subagent_definitions SELECT value, 1, 0, '{"v":1}', 0, 0, 'root' FROM json_each(?1)`,
    )
      .bind(JSON.stringify(names))
      .run();
    const raced = await Promise.all([create("x"), create("y")]);
    expect(raced.filter((each) => each.ok)).toHaveLength(1);
    expect(raced).toContainEqual({ ok: false, error: { reason: "too_many", limit: MANAGED_SUBAGENTS_MAX } });
    expect(await create("n0")).toEqual({ ok: false, error: { reason: "already_exists" } });
  });

  it("P8 holds so many bytes together, in create and in update: a run's row has to take them all", async () => {
    const tooLarge = { ok: false, error: { reason: "too_large", limit: MANAGED_SUBAGENTS_BYTES_MAX } };
    // Three bytes a character: the bound counts bytes.
    const prompt = "€".repeat(90_000);
    expect((await create("a", { systemPrompt: prompt })).ok).toBe(true);
    expect(await create("b", { systemPrompt: "x".repeat(40_000) })).toEqual(tooLarge);
    expect((await create("b")).ok).toBe(true);
    expect(await store.systemUpdate(managedSubagent("b", { systemPrompt: prompt }), BY)).toEqual(tooLarge);
    // Its own earlier bytes do not count against a definition.
    expect((await store.systemUpdate(managedSubagent("a", { systemPrompt: prompt }), BY)).ok).toBe(true);
  });
});
