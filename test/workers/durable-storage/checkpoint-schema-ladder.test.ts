import { env, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { ensureSchema, hasSchema, OBJECT_SCHEMA } from "../../../src/platform/durable-storage/object-schema.ts";
import {
  appliedSteps,
  climbSchemaLadder,
  type SchemaStep,
} from "../../../src/platform/durable-storage/schema-ladder.ts";

const FIRST: SchemaStep = { id: "first", statements: ["CREATE TABLE first (a TEXT)"] };
const SECOND: SchemaStep = { id: "second", statements: ["CREATE TABLE second (b TEXT)"] };
const BROKEN: SchemaStep = { id: "broken", statements: ["CREATE TABLE half (a TEXT)", "CREATE TABLE first (a TEXT)"] };

async function inFreshObject(test: (storage: DurableObjectStorage) => void): Promise<void> {
  const stub = env.THREADS.get(env.THREADS.idFromName(crypto.randomUUID()));
  await runInDurableObject(stub, (_instance, state) => test(state.storage));
}

function tables(storage: DurableObjectStorage): string[] {
  const rows = storage.sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
  return rows
    .toArray()
    .map((row) => row.name)
    .filter((name) => !name.startsWith("_cf_"));
}

describe("schema of the object's storage", () => {
  it("asking for an unknown thread leaves no table behind", async () => {
    await inFreshObject((storage) => {
      expect(hasSchema(storage)).toBe(false);
      expect(appliedSteps(storage)).toEqual([]);
      expect(tables(storage)).toEqual([]);
    });
  });

  it("the first command makes every table and records each step once", async () => {
    await inFreshObject((storage) => {
      ensureSchema(storage);
      ensureSchema(storage);
      expect(hasSchema(storage)).toBe(true);
      expect(appliedSteps(storage)).toEqual(OBJECT_SCHEMA.map((step) => step.id));
      expect(tables(storage)).toEqual(expect.arrayContaining(["checkpoints", "checkpoint_writes", "schema_version"]));
    });
  });

  it("a thread made by an older version gains the steps it lacks and keeps its rows", async () => {
    await inFreshObject((storage) => {
      climbSchemaLadder(storage, [FIRST]);
      storage.sql.exec("INSERT INTO first VALUES ('kept')");
      climbSchemaLadder(storage, [FIRST, SECOND]);
      expect(appliedSteps(storage)).toEqual(["first", "second"]);
      expect(storage.sql.exec("SELECT a FROM first").toArray()).toEqual([{ a: "kept" }]);
    });
  });

  it("a step that fails half-way leaves neither its tables nor a record", async () => {
    await inFreshObject((storage) => {
      climbSchemaLadder(storage, [FIRST]);
      expect(() => climbSchemaLadder(storage, [FIRST, SECOND, BROKEN])).toThrow(/already exists/);
      expect(tables(storage)).toEqual(["first", "schema_version"]);
      expect(appliedSteps(storage)).toEqual(["first"]);
    });
  });

  it("a roll-back meets the newer schema and leaves it alone; a reordered list is refused", async () => {
    await inFreshObject((storage) => {
      climbSchemaLadder(storage, [FIRST, SECOND]);
      climbSchemaLadder(storage, [FIRST]);
      expect(appliedSteps(storage)).toEqual(["first", "second"]);
      expect(() => climbSchemaLadder(storage, [SECOND, FIRST])).toThrow(/schema step 1 is first in storage/);
    });
  });

  it("step ids are unique, so no table is taken for another one's", () => {
    const ids = OBJECT_SCHEMA.map((step) => step.id);
    expect(new Set(ids).size).toBe(ids.length);
  });
});
