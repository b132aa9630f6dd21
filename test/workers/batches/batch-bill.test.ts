import { env } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import { BATCH_ITEM_BOUNDS, measureBatchItems } from "../../../bench/batch-items.ts";

const newId = (): string => crypto.randomUUID();

describe("what a batch item costs in D1", () => {
  it("R205: with max_running 10 at most 4.5 rows written, 40 read, 3 statements and 0.5 object requests an item", async () => {
    const bill = await measureBatchItems(env.DB, { items: 200, maxRunning: 10, settle: "together", newId });
    expect(bill.rowsWrittenPerItem).toBeLessThanOrEqual(BATCH_ITEM_BOUNDS.rowsWrittenTogether);
    expect(bill.rowsReadPerItem).toBeLessThanOrEqual(BATCH_ITEM_BOUNDS.rowsRead);
    expect(bill.statementsPerItem).toBeLessThanOrEqual(BATCH_ITEM_BOUNDS.statements);
    expect(bill.objectRequestsPerItem).toBeLessThanOrEqual(BATCH_ITEM_BOUNDS.objectRequests);
    // Below four rows (insert, claim, settle, history) something would not have been counted.
    expect(bill.rowsWrittenPerItem).toBeGreaterThan(4);
  });

  it("settled one by one it stays within 6 rows written", async () => {
    const bill = await measureBatchItems(env.DB, { items: 200, maxRunning: 10, settle: "one_by_one", newId });
    expect(bill.rowsWrittenPerItem).toBeLessThanOrEqual(BATCH_ITEM_BOUNDS.rowsWrittenOneByOne);
    expect(bill.rowsWrittenPerItem).toBeGreaterThan(5);
  });

  it("rows read an item do not grow with the batch: no statement walks it", async () => {
    const small = await measureBatchItems(env.DB, { items: 100, maxRunning: 10, settle: "together", newId });
    const large = await measureBatchItems(env.DB, { items: 1_000, maxRunning: 10, settle: "together", newId });
    expect(large.rowsReadPerItem).toBeLessThan(small.rowsReadPerItem * 1.1);
  });
});
