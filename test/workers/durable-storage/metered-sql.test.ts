import { expect, it } from "vitest";
import { MeteredSql } from "../../../src/platform/durable-storage/metered-sql.ts";
import { inFreshObject } from "../../support/object-storage.ts";

it("rows and statements count under their label, whatever a statement touches", async () => {
  await inFreshObject((storage) => {
    const meter = new MeteredSql(storage.sql);
    const one = meter.labelled("one");
    const two = meter.labelled("two");
    one.exec("CREATE TABLE t (a INTEGER PRIMARY KEY) WITHOUT ROWID");
    meter.reset();
    one.exec("INSERT INTO t VALUES (1), (2), (3)");
    two.exec("DELETE FROM t WHERE a < 3");
    expect(meter.byLabel()).toMatchObject({
      one: { statements: 1, rowsWritten: 3 },
      two: { statements: 1, rowsWritten: 2 },
    });
    expect(meter.totals()).toMatchObject({ statements: 2, rowsWritten: 5 });
  });
});

it("rows read after the call returned still count, and rows of statements long ago are not forgotten", async () => {
  await inFreshObject((storage) => {
    const meter = new MeteredSql(storage.sql);
    const sql = meter.labelled("reads");
    sql.exec("CREATE TABLE t (a INTEGER PRIMARY KEY)");
    for (let n = 0; n < 200; n += 1) sql.exec("INSERT INTO t VALUES (?)", n);
    expect(meter.totals().rowsWritten).toBeGreaterThanOrEqual(200);
    meter.reset();
    const cursor = sql.exec("SELECT a FROM t");
    expect([...cursor]).toHaveLength(200);
    expect(meter.byLabel()["reads"]).toEqual({ statements: 1, rowsRead: 200, rowsWritten: 0 });
  });
});
