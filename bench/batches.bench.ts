/** What a batch item costs: D1 rows and object requests exactly, then time against a floor and against the batch's size. */
import { env } from "cloudflare:test";
import { test } from "vitest";
import { BATCH_ITEM_BOUNDS, type BatchBill, measureBatchItems } from "./batch-items.ts";
import { runFloor } from "./batch-floor.ts";
import { type BatchLife, liveBatch } from "./batch-life.ts";
import { type BenchRow, rounded } from "./bench-row.ts";
import { report } from "./report.ts";

const newId = (): string => crypto.randomUUID();

/** The default of `subagent_runtime.max_running` and of a batch's `max_running_items`. */
const DEFAULT_RUNNING = 3;
const ITEMS = 1_000;
const SIZES = [100, 500, 1_000, 2_000, 5_000] as const;

test("rows of the repository", async ({ task }) => {
  const together = await measureBatchItems(env.DB, { items: 200, maxRunning: 10, settle: "together", newId });
  const oneByOne = await measureBatchItems(env.DB, { items: 200, maxRunning: 10, settle: "one_by_one", newId });
  const byDefault = await measureBatchItems(env.DB, {
    items: 200,
    maxRunning: DEFAULT_RUNNING,
    settle: "together",
    newId,
  });
  const { rowsWrittenTogether, rowsWrittenOneByOne, rowsRead, statements, objectRequests } = BATCH_ITEM_BOUNDS;
  report(task, [
    ...billRows("batch item, max_running 10", together, {
      rowsWritten: rowsWrittenTogether,
      rowsRead,
      statements,
      objectRequests,
    }),
    ...billRows("batch item, max_running 10, settled one by one", oneByOne, { rowsWritten: rowsWrittenOneByOne }),
    ...billRows(`batch item, default max_running ${DEFAULT_RUNNING}`, byDefault, {}),
  ]);
});

test("a whole batch against the floor", async ({ task }) => {
  const { rowsWrittenTogether, rowsRead, statements, objectRequests } = BATCH_ITEM_BOUNDS;
  const ten = await liveBatch({ items: ITEMS, maxRunning: 10 });
  const byDefault = await liveBatch({ items: ITEMS });
  const floor = await runFloor(env.DB, { items: ITEMS, atOnce: 10 });
  const bounds = { rowsWritten: rowsWrittenTogether, rowsRead, statements, objectRequests };
  report(task, [
    ...billRows("whole batch, max_running 10", toBill(ten, 10), bounds),
    ...whereRows("whole batch, max_running 10: D1 rows written, ", ten),
    {
      name: "whole batch, max_running 10: object rows written",
      value: ten.objectRowsWritten / ITEMS,
      unit: "an item",
    },
    ...billRows(`whole batch, default max_running ${DEFAULT_RUNNING}`, toBill(byDefault, DEFAULT_RUNNING), {}),
    speed(`whole batch of ${ITEMS} instant items, max_running 10`, ten.seconds),
    speed(`whole batch of ${ITEMS} instant items, default max_running ${DEFAULT_RUNNING}`, byDefault.seconds),
    speed(`floor: one D1 write an item, ${ITEMS} items, 10 at once`, floor),
    { name: "whole batch, max_running 10, over the floor", value: rounded(ten.seconds / floor), unit: "times" },
  ]);
});

test("size of the batch", async ({ task }) => {
  const rows: BenchRow[] = [];
  for (const items of SIZES) {
    const { seconds, d1 } = await liveBatch({ items, maxRunning: 10 });
    rows.push(
      { name: `whole batch of ${items}: D1 rows read`, value: rounded(d1.rowsRead / items), unit: "an item" },
      { name: `whole batch of ${items}: time`, value: rounded((seconds * 1_000) / items), unit: "ms an item" },
    );
  }
  report(task, rows);
});

function toBill({ d1, objectRequests }: BatchLife, maxRunning: number): BatchBill {
  return {
    items: ITEMS,
    maxRunning,
    rowsWrittenPerItem: d1.rowsWritten / ITEMS,
    rowsReadPerItem: d1.rowsRead / ITEMS,
    statementsPerItem: d1.statements / ITEMS,
    objectRequestsPerItem: objectRequests / ITEMS,
  };
}

/** Where the rows of the lines above go. */
function whereRows(prefix: string, { d1ByKind }: BatchLife): BenchRow[] {
  return Object.entries(d1ByKind)
    .filter(([, totals]) => totals.rowsWritten > 0)
    .map(([kind, totals]) => ({ name: prefix + kind, value: totals.rowsWritten / ITEMS, unit: "an item" }));
}

interface BillBounds {
  readonly rowsWritten?: number;
  readonly rowsRead?: number;
  readonly statements?: number;
  readonly objectRequests?: number;
}

function billRows(name: string, bill: BatchBill, bounds: BillBounds): BenchRow[] {
  const row = (what: string, value: number, bound: number | undefined): BenchRow => ({
    name: `${name}: ${what}`,
    value,
    unit: "an item",
    ...(bound === undefined ? {} : { bound }),
  });
  return [
    row("D1 rows written", bill.rowsWrittenPerItem, bounds.rowsWritten),
    row("D1 rows read", bill.rowsReadPerItem, bounds.rowsRead),
    row("D1 statements", bill.statementsPerItem, bounds.statements),
    row("object requests", bill.objectRequestsPerItem, bounds.objectRequests),
  ];
}

function speed(name: string, seconds: number): BenchRow {
  return { name, value: rounded(ITEMS / seconds), unit: "items/s" };
}
