import { expect, it } from "vitest";
import { MeteredSql, rowsOf } from "../../../src/platform/durable-storage/metered-sql.ts";
import { SqlMemory } from "../../../src/platform/durable-storage/sql-memory.ts";
import { inFreshObject } from "../../support/object-storage.ts";

/** Two tables, and how often storage was asked. */
function open(storage: DurableObjectStorage) {
  const memory = new SqlMemory();
  const meter = new MeteredSql(storage.sql, memory);
  const sql = meter.labelled("here");
  for (const table of ["kept", "other"]) sql.exec(`CREATE TABLE ${table} (id INTEGER PRIMARY KEY, text)`);
  sql.exec("INSERT INTO kept (id, text) VALUES (1, 'first')");
  const read = () => rowsOf<{ text: string }>(sql, "SELECT text FROM kept WHERE id = ?", 1)[0]?.text;
  const asked = () => meter.totals().statements;
  return { memory, meter, sql, read, asked };
}

/** A write closes its table until the microtasks that follow it. */
const settled = () => Promise.resolve();

it("a read is asked once, until its table is written, through whichever label", async () => {
  await inFreshObject(async (storage) => {
    const { meter, sql, read, asked } = open(storage);
    await settled();
    expect(read()).toBe("first");
    const before = asked();
    expect(read()).toBe("first");
    sql.exec("INSERT INTO other (id, text) VALUES (1, 'beside')");
    expect(read()).toBe("first");
    expect(asked()).toBe(before + 1);
    for (const [text, write] of [
      ["second", "UPDATE kept SET text = 'second'"],
      ["third", "INSERT OR REPLACE INTO kept (id, text) VALUES (1, 'third')"],
      [undefined, "DELETE FROM kept"],
    ] as const) {
      meter.labelled("elsewhere").exec(write);
      expect(read()).toBe(text);
      await settled();
    }
  });
});

it("what a transaction read of its own writes is not kept: it may be rolled back", async () => {
  await inFreshObject(async (storage) => {
    const { sql, read } = open(storage);
    await settled();
    expect(() =>
      storage.transactionSync(() => {
        sql.exec("UPDATE kept SET text = 'never'");
        expect(read()).toBe("never");
        throw new Error("rolled back");
      }),
    ).toThrow("rolled back");
    expect(read()).toBe("first");
    await settled();
    expect(read()).toBe("first");
  });
});

it("a new event sees what others wrote", async () => {
  await inFreshObject(async (storage) => {
    const { memory, read } = open(storage);
    await settled();
    expect(read()).toBe("first");
    storage.sql.exec("UPDATE kept SET text = 'by another'");
    expect(read()).toBe("first");
    memory.forget();
    expect(read()).toBe("by another");
  });
});

it("large answers and bytes are read anew, and what is kept is bounded", async () => {
  await inFreshObject(async (storage) => {
    const { sql, asked } = open(storage);
    sql.exec("INSERT INTO other (id, text) VALUES (1, ?), (2, ?)", "x".repeat(16_385), new Uint8Array([1]));
    await settled();
    const select = "SELECT text FROM other WHERE id = ?";
    for (const id of [1, 2]) {
      const before = asked();
      rowsOf(sql, select, id);
      rowsOf(sql, select, id);
      expect(asked()).toBe(before + 2);
    }
    for (let id = 100; id < 200; id += 1) rowsOf(sql, select, id);
    const before = asked();
    rowsOf(sql, select, 100);
    expect(asked()).toBe(before + 1);
  });
});
