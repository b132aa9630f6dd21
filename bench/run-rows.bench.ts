/**
 * Rows that one run costs, in workerd, over HTTP: the object's rows by purpose (its SQL cursors, and `setAlarm` by hand)
 * and D1's by statement (`meta.rows_written`). Counted from a warm object at rest to the same object at rest again, so
 * that the alarms and the frame expiry a run causes are its own.
 */
import { test } from "vitest";
import type { BenchRow } from "./bench-row.ts";
import { BenchThread, type RunBill } from "./bench-thread.ts";
import { report } from "./report.ts";
import { ONE_TURN_PROMPT } from "./prompts.ts";

/** Issue 2, section 7. */
const OBJECT_ROWS_MAX = 20;
const D1_ROWS_MAX = 11;
const PRUNING_ROWS_MAX = 7;

/** Small, so that pruning starts after three runs; what one pruning costs does not depend on it. */
const RUNS_KEPT = 2;
const PRUNED_RUNS = 4;

/** Acceptance and its event, the child's three checkpoints with their writes and their deletion, the events of its end. */
const DELEGATION_OBJECT_ROWS_MAX = 17;
/** The events of start, step and end. */
const DELEGATION_D1_ROWS_MAX = 4;

const CALLING_PROMPT = `Call once.
@ call ls {"path": "."}
@ say {{result:1}}`;

const DELEGATING_PROMPT = `Delegate once.
@ delegate general-purpose :: Count :: <<'CHILD'
Count to three.
@ say one two three
CHILD
@ say {{result:1}}`;

test("one-turn run", async ({ task }) => {
  const thread = await BenchThread.create();
  await thread.bill(ONE_TURN_PROMPT);
  const bill = await thread.bill(ONE_TURN_PROMPT);
  report(task, [
    ...billRows("one-turn run", bill, { object: OBJECT_ROWS_MAX, d1: D1_ROWS_MAX }),
    { name: "one-turn run: object rows read", value: bill.objectRowsRead, unit: "rows" },
    { name: "one-turn run: D1 rows read", value: bill.d1RowsRead, unit: "rows" },
  ]);
});

test("pruning", async ({ task }) => {
  const thread = await BenchThread.create({ runtime: { checkpoint_runs_kept: RUNS_KEPT } });
  const prunings: number[] = [];
  for (let run = 0; run < RUNS_KEPT + PRUNED_RUNS; run += 1) {
    prunings.push((await thread.bill(ONE_TURN_PROMPT)).pruningRows);
  }
  if (prunings.filter((rows) => rows > 0).length < PRUNED_RUNS - 1) {
    throw new Error(`checkpoints were not pruned: ${prunings.join()}`);
  }
  const value = Math.max(...prunings);
  report(task, [{ name: "pruning after a one-turn run: object rows", value, unit: "rows", bound: PRUNING_ROWS_MAX }]);
});

test("delegation", async ({ task }) => {
  const thread = await BenchThread.create();
  await thread.bill(ONE_TURN_PROMPT);
  const delegating = await thread.bill(DELEGATING_PROMPT);
  const calling = await thread.bill(CALLING_PROMPT);
  const own = { object: delegating.objectRows - calling.objectRows, d1: delegating.d1Rows - calling.d1Rows };
  report(task, [
    ...billRows("run with one delegation", delegating, {}),
    countRow(
      "delegation to a child of one turn, over a tool call: object rows",
      own.object,
      DELEGATION_OBJECT_ROWS_MAX,
    ),
    countRow("delegation to a child of one turn, over a tool call: D1 rows", own.d1, DELEGATION_D1_ROWS_MAX),
  ]);
});

function billRows(name: string, bill: RunBill, bounds: { object?: number; d1?: number }): BenchRow[] {
  return [
    countRow(`${name}: object rows`, bill.objectRows, bounds.object),
    ...whereRows(`${name}: object rows, `, bill.objectByLabel),
    countRow(`${name}: D1 rows`, bill.d1Rows, bounds.d1),
    ...whereRows(`${name}: D1 rows, `, bill.d1ByKind),
  ];
}

function countRow(name: string, value: number, bound: number | undefined): BenchRow {
  return { name, value, unit: "rows", ...(bound === undefined ? {} : { bound }) };
}

/** Where the rows of the line above go. */
function whereRows(prefix: string, rows: Readonly<Record<string, number>>): BenchRow[] {
  return Object.entries(rows)
    .filter(([, value]) => value > 0)
    .map(([label, value]) => countRow(prefix + label, value, undefined));
}
