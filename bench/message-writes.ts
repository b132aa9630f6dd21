/**
 * Time to fold messages written one per write, as a thread's replay does: `mergeMessageWrites` in one call against the
 * public `addMessages` called per write. What to look at is the last two rows: how the time grows from 1,000 to 8,000
 * messages (8 is linear, 64 quadratic).
 */
import { HumanMessage } from "@langchain/core/messages";
import type { BaseMessage } from "@langchain/core/messages";
import { addMessages } from "@langchain/langgraph";
import { type BenchRow, rounded } from "./bench-row.ts";
import { mergeMessageWrites } from "../src/agent/thread-state/merge-message-writes.ts";

const MESSAGE_COUNTS = [1_000, 2_000, 4_000, 8_000] as const;
/** A fold of under a millisecond needs many rounds to be told from noise; one of seconds needs one. */
const ROUNDS_MS = 300;
const ROUNDS_MAX = 200;

const FOLDS = {
  mergeMessageWrites: (writes: readonly BaseMessage[][]) => mergeMessageWrites([], writes),
  addMessages: (writes: readonly BaseMessage[][]) =>
    writes.reduce<BaseMessage[]>((messages, write) => addMessages(messages, write), []),
} as const;
type FoldName = keyof typeof FOLDS;

function writesOf(count: number): BaseMessage[][] {
  return Array.from({ length: count }, (_, index) => [new HumanMessage({ id: `m${index}`, content: "text" })]);
}

function foldMs(name: FoldName, writes: readonly BaseMessage[][]): number {
  const from = performance.now();
  const folded = FOLDS[name](writes);
  const elapsed = performance.now() - from;
  if (folded.length !== writes.length) throw new Error(`${name} lost messages: ${folded.length} of ${writes.length}`);
  return elapsed;
}

/** The fastest round: a median holds the garbage of the rounds before it, which is what grew from 4,000 messages on. */
function fastestMs(name: FoldName, count: number): number {
  const writes = writesOf(count);
  const times: number[] = [];
  const until = performance.now() + ROUNDS_MS;
  do times.push(foldMs(name, writes));
  while (performance.now() < until && times.length < ROUNDS_MAX);
  return Math.min(...times);
}

function benchFold(name: FoldName): BenchRow[] {
  fastestMs(name, MESSAGE_COUNTS[0]);
  const fastest = MESSAGE_COUNTS.map((count) => fastestMs(name, count));
  const rows = MESSAGE_COUNTS.map((count, index) => ({
    name: `messages, ${name}, ${count} written one by one`,
    value: rounded(fastest[index] ?? 0),
    unit: "ms",
  }));
  const growth = (fastest.at(-1) ?? 0) / (fastest[0] ?? 1);
  return [
    ...rows,
    { name: `messages, ${name}, time at 8,000 over time at 1,000`, value: rounded(growth), unit: "times" },
  ];
}

export async function messageWritesBench(): Promise<BenchRow[]> {
  return (Object.keys(FOLDS) as FoldName[]).flatMap(benchFold);
}

if (import.meta.main) console.table(await messageWritesBench());
