/**
 * The cells of the kill matrix: where a thread is parked, what must be true of it afterwards, and which cells there are
 * none of. Written for both kills: SIGKILL of `wrangler dev` (test/e2e/kill-matrix.test.ts) and the abort of objects alone
 * (test/workers/faults/kill-matrix.test.ts).
 */
import type { Hold, HoldPoint } from "./failpoint-holds.ts";

export const POINTS = [
  "before the first model token",
  "mid-stream",
  "between model answer and its commit",
  "tools: one finished, one running, one not started",
  "after a tool result",
  "queued for admission",
  "waiting on an interrupt",
  "flush to D1",
  "terminal commit",
  "during cancel",
  "during rollback",
] as const;

export const SUBJECTS = ["lead run", "child", "batch item"] as const;

export type Point = (typeof POINTS)[number];
export type Subject = (typeof SUBJECTS)[number];
/** `abort` ends the objects alone: consumers of batch items are other invocations, and go on. */
export type Kill = "sigkill" | "abort";

type Reasons = Readonly<Partial<Record<Point, Readonly<Partial<Record<Subject, string>>>>>>;

/** Cells that are not here, and why. */
export const MISSING: Reasons = {
  "waiting on an interrupt": {
    child:
      "no tool of the default configuration asks; over a tool of the test's own: test/workers/thread/superseded.test.ts",
    "batch item": "nobody answers an item: a question asked in one fails it, so none ever waits",
  },
  "during rollback": {
    child: "a rollback ends the run first, and its children with it, before anything is removed",
    "batch item": "a batch outlives the run that submitted it, and no strategy rolls it back",
  },
};

/** Cells that the abort of objects does not have, and why. */
export const NOT_ABORTED: Reasons = {
  "mid-stream": {
    "batch item":
      "an item's stream is its consumer's and nobody else reads it: the abort of an object neither breaks it nor can be timed against it; consumers that live on are in the cells before and behind",
  },
};

export interface CellExpectation {
  readonly status: "success" | "interrupted" | "gone";
  /** Model requests, those that the kill cut included. */
  readonly requests: number;
  /**
   * Of a consumer that lives on and is still held: nothing of its item is open any more (B4). Let go it goes on until its
   * next heartbeat, a third of a lease away, and whether that comes before its second request is the machine's speed.
   */
  readonly whileHeld?: { readonly requests: number; readonly mayAskMore: number };
  /** What recovery tells of a run that it ends: the event of each frame, and what a `custom` one says. */
  readonly told?: readonly (readonly [event: string, type?: string])[];
  /** How often each call acted, by a word of its arguments. */
  readonly executions?: Readonly<Record<string, number>>;
  /** Files of the workspace (of the item's outputs, for a batch item) and their lines. */
  readonly files?: Readonly<Record<string, string>>;
  /** Attempts that the kill cost each item. */
  readonly attempts?: number;
  /** Ended before the kill: nothing recovers it. */
  readonly endedBefore?: boolean;
}

export interface KillCell {
  readonly point: Point;
  readonly subject: Subject;
  /** The lead's script, or the items' prompts. */
  readonly work: (threadId: string) => { readonly script?: string; readonly items?: readonly string[] };
  /** Each must hold somebody when the kill comes. */
  readonly holds: readonly Omit<Hold, "threadId">[];
  /** What is asked of the thread once everything else is parked. */
  readonly provoke?: "cancel" | "rollback" | "enqueue" | "read the log";
  readonly options?: Readonly<Record<string, unknown>>;
  /** Sent once the kill is over: the answer to what the thread waits for. */
  readonly answer?: Readonly<Record<string, unknown>>;
  /** Held only after `provoke`. */
  readonly provoked?: Omit<Hold, "threadId">;
  /** Evidence besides the holds. */
  readonly evidence?: "partial text" | "one result" | "one queued" | "waiting" | "first frame";
  readonly expect: (kill: Kill) => CellExpectation;
}

/** Where a model request is held: at the server that got it, or right before it leaves. */
export const modelPoint = (kill: Kill): HoldPoint => (kill === "sigkill" ? "model_headers" : "model_request");

const CHILD = "general-purpose";

/** A call as failpoints tell it; one that only speaks of it, as a lead's `task` does of its child's, is another. */
export const bashCall = (file: string): string =>
  `bash ${JSON.stringify({ command: `mkdir -p outputs; echo ${file} >> outputs/${file}.txt` })}`;

function bash(file: string, joined = false): string {
  return `@ ${joined ? "& " : ""}call ${bashCall(file)}`;
}

const SAY = "@ say done one two three four five";
const ONE_TOOL = [bash("one"), SAY];
const THREE_TOOLS = [bash("fa", true), bash("fb", true), bash("fc", true), SAY];
const STALLS = ["@ fail stall 1", "@ say one two three four five six"];

/** The first line says whose request it is, where the model server sees it. */
const headed = (who: string, threadId: string, lines: readonly string[]) =>
  [`${who} of ${threadId}`, ...lines].join("\n");

const lead = (lines: readonly string[]) => (threadId: string) => ({ script: headed("lead", threadId, lines) });

const child = (lines: readonly string[]) => (threadId: string) => ({
  script: headed("lead", threadId, [
    `@ delegate ${CHILD} :: work :: <<'CHILD'`,
    headed("child", threadId, lines),
    "CHILD",
    "@ say lead done",
  ]),
});

const item = (lines: readonly string[]) => (threadId: string) => ({ items: [headed("item", threadId, lines)] });

/** The three subjects of one point over the same work. `turns`: model requests of the work when nothing goes wrong. */
function alike(point: Point, lines: readonly string[], rest: Alike): KillCell[] {
  const { turns, repeated, beforeKill, files = {}, again = {}, evidence, holdOf } = rest;
  const more = evidence === undefined ? {} : { evidence };
  const executions = Object.fromEntries(Object.keys(files).map((file) => [file, 1 + (again[file] ?? 0)]));
  const once = Object.fromEntries(Object.keys(files).map((file) => [file, 1]));
  return [
    {
      point,
      subject: "lead run",
      work: lead(lines),
      holds: holdOf("lead"),
      ...more,
      expect: () => ({ status: "success", requests: turns + repeated, executions, files }),
    },
    {
      point,
      subject: "child",
      work: child(lines),
      holds: holdOf("child"),
      ...more,
      expect: () => ({ status: "success", requests: 2 + turns + repeated, executions, files }),
    },
    {
      point,
      subject: "batch item",
      work: item(lines),
      holds: holdOf("item"),
      ...more,
      // An item is redone as a whole, or not at all.
      expect: (kill) =>
        kill === "sigkill"
          ? { status: "success", requests: beforeKill + turns, files, attempts: 1 }
          : { status: "success", requests: turns, executions: once, files, attempts: 0 },
    },
  ];
}

interface Alike {
  readonly turns: number;
  /** Requests that recovery makes again. */
  readonly repeated: number;
  /** Requests made when the kill comes. */
  readonly beforeKill: number;
  readonly files?: Readonly<Record<string, string>>;
  /** Calls that were running, by file: they act again. */
  readonly again?: Readonly<Record<string, number>>;
  readonly evidence?: NonNullable<KillCell["evidence"]>;
  readonly holdOf: (who: "lead" | "child" | "item") => KillCell["holds"];
}

/** The agent's name as failpoints give it, or the request's first word at the model server. */
const whose = (kill: Kill, who: "lead" | "child" | "item") => (kill === "sigkill" ? who : who === "lead" ? "" : CHILD);

const answeredBy = (who: "lead" | "child" | "item") => (who === "lead" ? "" : CHILD);

/** Holds the queue, not a cell: a batch of one item, which is let go before the kill. */
export function plugOf(kill: Kill): KillCell {
  return {
    point: "before the first model token",
    subject: "batch item",
    work: item([SAY]),
    holds: [{ point: modelPoint(kill), detail: whose(kill, "item") }],
    expect: () => ({ status: "success", requests: 1 }),
  };
}

export function killCells(kill: Kill): KillCell[] {
  return allCells(kill).filter(({ point, subject }) => kill === "sigkill" || !NOT_ABORTED[point]?.[subject]);
}

function allCells(kill: Kill): KillCell[] {
  const point = modelPoint(kill);
  const one = { one: "one\n" };
  return [
    ...alike("before the first model token", ONE_TOOL, {
      turns: 2,
      repeated: 1,
      beforeKill: 1,
      files: one,
      holdOf: (who) => [{ point, detail: whose(kill, who) }],
    }),
    ...alike("mid-stream", STALLS, {
      turns: 1,
      repeated: 1,
      beforeKill: 1,
      evidence: "partial text",
      holdOf: () => [],
    }),
    ...alike("between model answer and its commit", ONE_TOOL, {
      turns: 2,
      repeated: 1,
      beforeKill: 1,
      files: one,
      holdOf: (who) => [{ point: "model_answered", detail: answeredBy(who) }],
    }),
    ...alike("tools: one finished, one running, one not started", THREE_TOOLS, {
      turns: 2,
      repeated: 0,
      beforeKill: 1,
      files: { fa: "fa\n", fb: "fb\n", fc: "fc\n" },
      // Held at the threshold: it was noted as started and did not act yet.
      again: { fb: 1 },
      evidence: "one result",
      holdOf: () => [
        { point: "tool_started", detail: bashCall("fb") },
        { point: "tool_not_started", detail: bashCall("fc") },
      ],
    }),
    ...alike("after a tool result", ONE_TOOL, {
      turns: 2,
      repeated: 1,
      beforeKill: 2,
      files: one,
      holdOf: (who) => [{ point, detail: whose(kill, who), skip: 1 }],
    }),
    ...queued(kill),
    waiting,
    ...flushes(),
    ...ends(),
    ...cancels(kill),
  ];
}

/**
 * Three work, and what comes next waits: `max_running` is 3. Held behind their answers: of requests that wait for headers
 * a consumer has five, and other cells' items need theirs.
 */
function queued(kill: Kill): KillCell[] {
  const holds: KillCell["holds"] = [{ point: "model_answered", detail: CHILD }];
  const items = (count: number) => (threadId: string) =>
    Array.from({ length: count }, (_, place) => headed("item", threadId, [`@ say item ${place}`]));
  const lost = kill === "sigkill" ? 3 : 0;
  return [
    {
      // A lead takes no slot: what queues is its run, behind another one.
      point: "queued for admission",
      subject: "lead run",
      work: lead(ONE_TOOL),
      holds: [{ point: modelPoint(kill), detail: whose(kill, "lead") }],
      provoke: "enqueue",
      expect: () => ({ status: "success", requests: 1 + 2 + 2, executions: { one: 2 }, files: { one: "one\none\n" } }),
    },
    {
      // An answer starts at most as many children as there are slots; this one finds them taken by items.
      point: "queued for admission",
      subject: "child",
      work: (threadId) => ({ items: items(3)(threadId), ...child([SAY])(threadId) }),
      holds,
      evidence: "one queued",
      expect: () => ({ status: "success", requests: lost + 3 + 2 + 1 }),
    },
    {
      point: "queued for admission",
      subject: "batch item",
      work: (threadId) => ({ items: items(4)(threadId) }),
      holds,
      evidence: "one queued",
      expect: () => ({ status: "success", requests: lost + 4 }),
    },
  ];
}

const waiting: KillCell = {
  point: "waiting on an interrupt",
  subject: "lead run",
  work: lead(ONE_TOOL),
  holds: [],
  options: { interrupt_before: ["tools"] },
  evidence: "waiting",
  answer: { assistant_id: "lead_agent", input: null },
  expect: () => ({
    status: "interrupted",
    requests: 2,
    executions: { one: 1 },
    files: { one: "one\n" },
    endedBefore: true,
  }),
};

function flushes(): KillCell[] {
  const point = "flush to D1";
  const files = { one: "one\n" };
  const executions = { one: 1 };
  return [
    {
      point,
      subject: "lead run",
      work: lead(ONE_TOOL),
      holds: [{ point: "flush", detail: "run.end" }],
      expect: () => ({ status: "success", requests: 2, executions, files, endedBefore: true }),
    },
    {
      point,
      subject: "child",
      work: child([...ONE_TOOL]),
      // The lead waits for its second answer, so that what a reader of the log flushes is the child's end and no run's.
      holds: [{ point: "model_answered", detail: "lead", skip: 1 }],
      provoke: "read the log",
      provoked: { point: "flush", detail: "subagent.end" },
      expect: () => ({ status: "success", requests: 4 + 1, executions, files }),
    },
    {
      point,
      subject: "batch item",
      work: item(ONE_TOOL),
      holds: [{ point: "flush", detail: "batch.end" }],
      expect: () => ({ status: "success", requests: 2, executions, files, attempts: 0 }),
    },
  ];
}

function ends(): KillCell[] {
  const point = "terminal commit";
  const files = { one: "one\n" };
  const executions = { one: 1 };
  return [
    {
      point,
      subject: "lead run",
      work: lead(ONE_TOOL),
      holds: [{ point: "terminal_commit" }],
      expect: () => ({ status: "success", requests: 2, executions, files }),
    },
    {
      point,
      subject: "child",
      work: child(ONE_TOOL),
      holds: [{ point: "tool_finished", detail: " task " }],
      expect: () => ({ status: "success", requests: 4, executions, files }),
    },
    {
      point,
      subject: "batch item",
      work: item(ONE_TOOL),
      holds: [{ point: "item_settle" }],
      expect: (kill) =>
        kill === "sigkill"
          ? { status: "success", requests: 4, files, attempts: 1 }
          : { status: "success", requests: 2, executions, files, attempts: 0 },
    },
  ];
}

function cancels(kill: Kill): KillCell[] {
  const holdOf = (who: "lead" | "child" | "item") => [{ point: modelPoint(kill), detail: whose(kill, who) }];
  const shared = { point: "during cancel", provoke: "cancel" } as const;
  return [
    {
      ...shared,
      subject: "lead run",
      work: lead(ONE_TOOL),
      holds: holdOf("lead"),
      evidence: "first frame",
      provoked: { point: "cancel" },
      // The end of a cancelled run has no frame of its own.
      expect: () => ({ status: "interrupted", requests: 1, executions: { one: 0 }, told: [] }),
    },
    {
      ...shared,
      subject: "child",
      work: child(ONE_TOOL),
      holds: holdOf("child"),
      evidence: "first frame",
      provoked: { point: "cancel" },
      expect: () => ({
        status: "interrupted",
        requests: 2,
        executions: { one: 0 },
        told: [["metadata"], ["custom", "task_cancelled"]],
      }),
    },
    {
      ...shared,
      subject: "batch item",
      work: item(ONE_TOOL),
      holds: holdOf("item"),
      provoked: { point: "batch_cancel" },
      expect: () =>
        kill === "sigkill"
          ? { status: "interrupted", requests: 1, executions: { one: 0 } }
          : { status: "interrupted", requests: 1, whileHeld: { requests: 1, mayAskMore: 1 } },
    },
    {
      point: "during rollback",
      subject: "lead run",
      work: lead(ONE_TOOL),
      holds: holdOf("lead"),
      provoke: "rollback",
      provoked: { point: "rollback" },
      expect: () => ({ status: "gone", requests: 1, executions: { one: 0 } }),
    },
  ];
}
