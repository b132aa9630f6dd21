/**
 * The promises, asked of what is stored once everything rests. What must hold at every instant is watched by triggers
 * (`d1.ts`, `object-storage.ts`) and by the ledger.
 */
import type { Clients } from "./clients.ts";
import type { Platform, ThreadPlace } from "./platform.ts";
import { namespaceOf } from "./step-child.ts";
import type { StepKind, StepState } from "./step-state.ts";
import type { World } from "./world.ts";

interface Stage {
  readonly world: World;
  readonly platform: Platform;
  readonly clients: Clients;
}

interface RunRow {
  readonly run_id: string;
  readonly status: string;
  readonly command: string;
  readonly error: string | null;
  readonly frames_reserved: number;
  /** 0: it never started. */
  readonly attempt: number;
  /** What it waits for. */
  readonly interrupts: string | null;
}

interface EventRow {
  readonly seq: number;
  readonly run_id: string;
  readonly event_type: string;
  /** Of the delegation it tells. */
  readonly task_id: string | null;
}

const ENDED = new Set(["success", "error", "timeout", "interrupted"]);

/** Before the last wake only what a client was told is accepted must have ended. */
export function checkAtRest(stage: Stage, { isWoken }: { isWoken: boolean }): void {
  for (const place of stage.platform.places) {
    const runs = place.disk.rows<RunRow>(
      "SELECT run_id, status, command, error, frames_reserved, attempt, interrupts FROM runs ORDER BY run_id",
    );
    checkTold(stage, place, { runs, isWoken });
    if (!isWoken) continue;
    for (const run of runs) checkRun(stage, place, run);
    checkState(stage, place, runs);
    checkLog(stage, place, runs);
    checkProjection(stage, place, runs);
    checkNothingHeld(stage, place);
    checkChildren(stage, place);
    checkFrames(stage, place, runs);
  }
  checkBatches(stage, isWoken);
}

/** P1 */
function checkTold(
  { world, clients, platform }: Stage,
  place: ThreadPlace,
  { runs, isWoken }: { runs: readonly RunRow[]; isWoken: boolean },
): void {
  for (const { runId } of clients.runs.filter((run) => run.place === place)) {
    const run = runs.find(({ run_id }) => run_id === runId);
    if (run === undefined) {
      if (isWoken) world.count("a run that was accepted is rolled back at rest");
      if (!clients.mayBeRolledBack(place)) world.violate("P1", `run ${runId} was accepted and is gone`);
    } else if (!ENDED.has(run.status)) world.violate("P1", `run ${runId} was accepted and is ${run.status} at rest`);
    else if (clients.rollbacks.has(runId))
      world.violate("P3", `run ${runId} was to be rolled back and is ${run.status} at rest`);
  }
  for (const { batchId } of clients.batches.filter((batch) => batch.place === place)) {
    const [batch] = platform.d1.rows<{ status: string }>("SELECT status FROM batches WHERE batch_id = ?", batchId);
    if (batch?.status !== "completed" && batch?.status !== "cancelled") {
      world.violate("P1", `batch ${batchId} was accepted and is ${batch?.status ?? "gone"} at rest`);
    }
  }
}

interface Body {
  readonly input?: { readonly steps: readonly StepKind[] } | null;
  readonly command?: {
    /** By the question it answers. */
    readonly resume?: Readonly<Record<string, unknown>>;
    readonly update?: { readonly edits?: readonly string[] } | null;
  } | null;
}

function bodyOf({ command }: RunRow): Body {
  return (JSON.parse(command) as { body: Body }).body;
}

/** P1 and P5: each run ended, and as what it did. */
function checkRun(stage: Stage, place: ThreadPlace, run: RunRow): void {
  const { world, platform, clients } = stage;
  const { run_id: runId, status } = run;
  const { ledger } = platform;
  world.count(`a run is ${run.interrupts === null ? status : "waiting"} at rest`);
  if (!ENDED.has(status)) return world.violate("P1", `run ${runId} is ${status} after the last wake`);
  const steps = ledger.begun.get(runId)?.steps ?? [];
  const { owner = runId, from = 0 } = ledger.begun.get(runId) ?? {};
  const open = steps.filter((kind, at) => at >= from && !ledger.isStepCommitted(owner, at, kind));
  if (status === "success" && (open.length > 0 || !ledger.begun.has(runId))) {
    world.violate("P5", `run ${runId} is a success without ${open.join(", ")} of ${steps.join(", ")}`);
  }
  const isCancelled = clients.cancelsAsked.has(runId) || clients.asked(place).size > 0;
  checkWait(stage, place, run);
  if (status === "interrupted" && run.interrupts === null && !isCancelled)
    world.violate("P5", `run ${runId} is interrupted and nobody cancelled it`);
  if (status === "error") checkError(platform, run, steps.slice(from));
}

/** P1 and P5: a run that waits asks for what it has not been given. */
function checkWait({ world, platform }: Stage, { values }: ThreadPlace, run: RunRow): void {
  if (run.interrupts === null) return;
  const { owner = run.run_id, steps = [] } = platform.ledger.begun.get(run.run_id) ?? {};
  if (!steps.includes("ask")) world.violate("P5", `run ${run.run_id} waits for an answer and asks nothing`);
  const asked = (JSON.parse(run.interrupts) as { id: string }[]).map(({ id }) => id);
  const given = Object.keys(bodyOf(run).command?.resume ?? {});
  if (asked.some((id) => given.includes(id)))
    world.violate("P1", `run ${run.run_id} brought an answer and waits for it: ${run.interrupts}`);
  const { runId, done = 0 } = (values ?? {}) as Partial<StepState>;
  if (runId === owner && asked.length === 0 && platform.ledger.isStepCommitted(owner, done, "ask"))
    world.violate("P1", `run ${run.run_id} waits at step ${done}, which has its answer`);
}

/**
 * P2, and what strategies promise: the state holds what each run committed, once, in the order in which the runs were
 * accepted; of a run that was rolled back it holds nothing.
 */
function checkState({ world, platform }: Stage, { disk, values }: ThreadPlace, runs: readonly RunRow[]): void {
  const { log = [], edits = [] } = (values ?? {}) as Partial<StepState>;
  const parts = log.map((entry) => entry.split(" ") as [runId: string, what: string]);
  const order = [...new Set(parts.map(([runId]) => runId))];
  if (order.join() !== order.toSorted().join())
    world.violate("P1", `the runs of ${disk.name} started out of order: ${log.join(", ")}`);
  for (const runId of order) {
    const own = parts.filter(([id]) => id === runId).map(([, what]) => what);
    if (!runs.some(({ run_id }) => run_id === runId))
      world.violate("P3", `run ${runId} is gone and the state still holds ${own.join(", ")} of it`);
    const expected = ["start", ...own.slice(1).map((_, at) => String(at))];
    if (own.join() !== expected.join()) world.violate("P2", `of run ${runId} the state holds ${own.join(", ")}`);
    const { steps = [] } = platform.ledger.begun.get(runId) ?? {};
    const committed = steps.filter((kind, at) => platform.ledger.isStepCommitted(runId, at, kind)).length;
    if (own.length - 1 > committed)
      world.violate("P2", `of run ${runId} ${committed} steps are committed, the state holds ${own.length - 1}`);
  }
  checkEdits(world, edits, runs);
  for (const _edit of edits) world.count("a command's update is in the state");
  for (const run of runs) {
    const { steps } = bodyOf(run).input ?? {};
    if (run.status !== "success" || steps === undefined) continue;
    const held = parts.filter(([id]) => id === run.run_id).length;
    if (held !== steps.length + 1)
      world.violate("P1", `run ${run.run_id} is a success, the state holds ${held} of ${steps.length + 1} parts of it`);
  }
}

/** P2 and P3: what a command wrote is in the state once, and not when its run was rolled back. */
function checkEdits(world: World, edits: readonly string[], runs: readonly RunRow[]): void {
  const twice = edits.find((edit, at) => edits.indexOf(edit) < at);
  if (twice !== undefined) world.violate("P2", `the state holds ${twice} twice: ${edits.join(", ")}`);
  const asked = runs.map((run) => ({ run, edits: bodyOf(run).command?.update?.edits ?? [] }));
  const stray = edits.find((edit) => !asked.some((each) => each.edits.includes(edit)));
  if (stray !== undefined) world.violate("P3", `the state holds ${stray} of a run that is gone`);
  for (const { run, edits: own } of asked) {
    const missing = own.find((edit) => !edits.includes(edit));
    if (run.status === "success" && missing !== undefined)
      world.violate("P1", `run ${run.run_id} is a success, the state lacks its ${missing}`);
  }
}

function checkError(platform: Platform, run: RunRow, steps: readonly string[]): void {
  const { world } = platform;
  const { run_id: runId, error } = run;
  const { error: name, message } = JSON.parse(error ?? "{}") as { error?: string; message?: string };
  world.count(`a run's error: ${name}`);
  if (name === "RecoveryError") {
    // A clock that jumps makes a window of its own; otherwise only deaths spend attempts, and a deploy is none (P4).
    const needed = /attempts without progress/.test(message ?? "") ? platform.recoveryAttempts + 1 : 2;
    const deaths = world.deaths - world.deploys;
    if (deaths < needed) world.violate("P4", `run ${runId} was given up after ${deaths} deaths: ${message}`);
  } else if (name === "RunNotStartedError") {
    // It waited its turn, and then fitted nothing.
    if (bodyOf(run).input) world.violate("P5", `run ${runId} brought its input and could not start: ${message}`);
  } else if (!(message === "the step fails" && steps.includes("fail"))) {
    world.violate("P5", `run ${runId} is an error for no reason of its own: ${name} ${message}`);
  }
}

/** P1 and P3: the log in D1 has no gap, each run begins and ends once, each committed step is told once. */
function checkLog(stage: Stage, place: ThreadPlace, runs: readonly RunRow[]): void {
  const { world, platform, clients } = stage;
  const { address, disk } = place;
  const events = platform.d1.rows<EventRow>(
    "SELECT seq, run_id, event_type, metadata ->> 'task_id' AS task_id FROM run_events WHERE owner = ? AND thread_id = ? ORDER BY seq",
    address.owner,
    address.thread_id,
  );
  // A run that was rolled back takes its events along.
  const isWhole = !clients.mayBeRolledBack(place);
  const gap = events.findIndex(({ seq }, index) => seq !== index + 1);
  if (gap >= 0 && isWhole) world.violate("P3", `the log of ${disk.name} has a gap at ${gap + 1}`);
  const [outbox] = disk.rows<{ last_seq: number; waiting: number }>(
    "SELECT max(last_seq) AS last_seq, sum(bytes > 2) AS waiting FROM event_outbox",
  );
  if ((outbox?.waiting ?? 0) > 0) world.violate("P1", `${disk.name} keeps events at rest`);
  if (isWhole && (outbox?.last_seq ?? 0) !== events.length) {
    world.violate("P1", `the object numbered ${outbox?.last_seq} events, D1 has ${events.length}`);
  }
  for (const { run_id: runId, status } of runs) {
    const own = events.filter((event) => event.run_id === runId).map(({ event_type }) => event_type);
    const count = (...types: string[]): number => own.filter((type) => types.includes(type)).length;
    const isStarted = platform.ledger.begun.has(runId);
    if (
      !/^run\.(start|queued)$/.test(own[0] ?? "") ||
      count("run.start") > 1 ||
      (isStarted && count("run.start") === 0)
    ) {
      world.violate("P1", `run ${runId} is ${status} and its events are ${own.join(" ")}`);
    }
    // The end of a wait is told behind it.
    const last = own.findLast((type) => type !== "run.cancelled");
    if (!/^run\.(end|error)$/.test(last ?? "") || count("run.end", "run.error") !== 1) {
      world.violate("P1", `run ${runId} is ${status} and its events end with ${own.at(-1)}: ${own.join(" ")}`);
    }
    if (count("run.recovered") > 0) world.count("a run is recovered");
    const parts = platform.ledger.drivenBy(runId).filter((part) => !part.includes("#"));
    const results = parts.filter((part) => part.includes(".")).length;
    const answers = parts.length - results;
    if (count("llm.ai.response") !== answers || count("llm.tool.result") !== results) {
      world.violate("P2", `run ${runId} committed ${parts.join(", ")} and tells ${own.join(" ")}`);
    }
    checkChildrenLog(
      stage,
      { run_id: runId, status },
      events.filter((event) => event.run_id === runId),
    );
  }
}

/** P2 and P5: a child is told to start once and to end once, when its result is committed; each step of it once. */
function checkChildrenLog(
  { world, platform }: Stage,
  { run_id: runId, status }: Pick<RunRow, "run_id" | "status">,
  events: readonly EventRow[],
): void {
  const parts = platform.ledger.drivenBy(runId);
  for (const taskId of new Set(events.flatMap(({ task_id }) => task_id ?? []))) {
    const own = events.filter((event) => event.task_id === taskId).map(({ event_type }) => event_type);
    const count = (type: string): number => own.filter((each) => each === type).length;
    const steps = parts.filter((part) => part.startsWith(`${taskId}#`)).length;
    const isEnded = parts.includes(taskId);
    const isWhole = count("subagent.start") === 1 && count("subagent.end") === (isEnded ? 1 : 0);
    if (!isWhole || count("subagent.step") !== steps || (status === "success" && !isEnded))
      world.violate("P2", `run ${runId} is ${status}, child ${taskId} committed ${steps} steps: ${own.join(" ")}`);
  }
}

/** P3: D1's copies are what the object has, whoever wrote late. */
function checkProjection({ world, platform }: Stage, { address, disk }: ThreadPlace, runs: readonly RunRow[]): void {
  const copies = platform.d1.rows<{ run_id: string; status: string }>(
    "SELECT run_id, status FROM runs WHERE owner = ? AND thread_id = ?",
    address.owner,
    address.thread_id,
  );
  for (const { run_id: runId, status } of runs) {
    const copy = copies.find(({ run_id }) => run_id === runId);
    if (copy?.status !== status) world.violate("P3", `run ${runId} is ${status}, its copy in D1 is ${copy?.status}`);
  }
  const strays = copies.filter(({ run_id }) => !runs.some((run) => run.run_id === run_id));
  if (strays.length > 0)
    world.violate("P7", `D1 has runs of ${disk.name} that it never had: ${JSON.stringify(strays)}`);
  // A run that was cancelled before its start changed nothing of the thread.
  const newest = runs.findLast(({ attempt }) => attempt > 0);
  if (newest === undefined) return;
  const [thread] = platform.d1.rows<{ status: string }>(
    "SELECT status FROM threads WHERE owner = ? AND thread_id = ?",
    address.owner,
    address.thread_id,
  );
  const isFailed = newest.status === "error" || newest.status === "timeout";
  const expected = newest.interrupts !== null ? "interrupted" : isFailed ? "error" : "idle";
  if (thread?.status !== expected)
    world.violate("P5", `the thread is ${thread?.status} after a run that is ${newest.status}`);
}

/** P8: at rest nothing is held and nobody waits. */
function checkNothingHeld({ world }: Stage, { disk, admission, instance }: ThreadPlace): void {
  for (const table of ["batch_grants", "batch_windows"]) {
    const rows = disk.rows(`SELECT * FROM ${table}`);
    if (rows.length > 0) world.violate("P8", `${disk.name} keeps ${table} at rest: ${JSON.stringify(rows)}`);
  }
  const snapshot = instance === undefined ? undefined : admission?.snapshot();
  if (snapshot !== undefined && snapshot.running + snapshot.queued + snapshot.waiting_batches > 0) {
    world.violate("P8", `${disk.name} holds slots at rest: ${JSON.stringify(snapshot)}`);
  }
  if (disk.alarmAt !== null) world.violate("P8", `${disk.name} has an alarm at rest`);
}

/** P5 and P8: no delegation is open at rest, and a child whose result is committed left no checkpoint. */
function checkChildren({ world, platform, clients }: Stage, { disk }: ThreadPlace): void {
  const open = disk.rows<{ task_id: string }>("SELECT task_id FROM delegations");
  if (open.length > 0) world.violate("P8", `${disk.name} keeps delegations at rest: ${JSON.stringify(open)}`);
  const kept = disk.rows<{ ns: string }>(
    "SELECT DISTINCT checkpoint_ns AS ns FROM checkpoints WHERE checkpoint_ns > ''",
  );
  for (const [taskId, status] of platform.ledger.taskEnds) {
    if (status === "cancelled" && !clients.cancelsAsked.has(taskId))
      world.violate("P5", `child ${taskId} is cancelled and nobody asked for it`);
    const isLeft = kept.some(({ ns }) => ns === namespaceOf(taskId));
    if (isLeft && platform.ledger.isPartCommitted(taskId))
      world.violate("P8", `${disk.name} keeps the checkpoints of child ${taskId}, whose result is committed`);
  }
}

/** Frame ids rise and never repeat, whatever attempt wrote them. */
function checkFrames({ world }: Stage, { disk }: ThreadPlace, runs: readonly RunRow[]): void {
  for (const { run_id: runId, frames_reserved: reserved } of runs) {
    const blocks = disk.rows<{ first_id: number; last_id: number }>(
      "SELECT first_id, last_id FROM frame_blocks WHERE run_id = ? ORDER BY first_id",
      runId,
    );
    for (const [index, block] of blocks.entries()) {
      const before = blocks[index - 1];
      if (before !== undefined && block.first_id <= before.last_id) {
        world.violate("P3", `frames ${block.first_id} of run ${runId} were numbered twice`);
      }
      if (block.last_id > reserved) world.violate("P3", `frame ${block.last_id} of run ${runId} was never reserved`);
    }
  }
}

interface ItemRow {
  readonly batch_id: string;
  readonly ordinal: number;
  readonly item_key: string;
  readonly status: string;
  readonly attempts: number;
  readonly deferrals: number;
  readonly result: string | null;
  readonly max_attempts: number;
  readonly batch: string;
  readonly owner: string;
  readonly failures: number;
  readonly expiries: number;
}

const ITEMS = `
  SELECT i.*, b.max_attempts, b.status AS batch, b.owner,
    (SELECT count(*) FROM batch_events e WHERE e.batch_id = i.batch_id AND e.ordinal = i.ordinal AND e.kind = 'failed') AS failures,
    (SELECT count(*) FROM batch_events e WHERE e.batch_id = i.batch_id AND e.ordinal = i.ordinal AND e.kind = 'lease_expired') AS expiries
  FROM batch_items i JOIN batches b ON b.batch_id = i.batch_id`;

function checkBatches({ world, platform, clients }: Stage, isWoken: boolean): void {
  if (!isWoken) return;
  const d1 = platform.d1;
  for (const row of d1.rows<{ batch_id: string }>("SELECT batch_id FROM live_batches")) {
    world.violate("P8", `batch ${row.batch_id} is still listed as live at rest`);
  }
  for (const row of d1.rows<{ batch_id: string; status: string }>("SELECT batch_id, status FROM batches")) {
    if (row.status === "running" || row.status === "loading")
      world.violate("P1", `batch ${row.batch_id} is ${row.status} at rest`);
    const isOdd = row.status === "cancelled" && !clients.cancelsAsked.has(row.batch_id);
    if (isOdd) world.violate("P5", `batch ${row.batch_id} is cancelled and nobody asked for it`);
  }
  for (const item of d1.rows<ItemRow>(ITEMS)) checkItem(world, platform, item);
}

/** P1, P4 and P5 of an item. */
function checkItem(world: World, platform: Platform, item: ItemRow): void {
  world.count(`an item is ${item.status} at rest`);
  if (item.expiries > 0) world.count("an item's lease expired");
  const name = `${item.batch_id}:${item.ordinal}`;
  const ends = platform.ledger.itemEnds.get(name) ?? [];
  const ended = (...how: string[]): number => ends.filter((end) => how.includes(end)).length;
  if (item.status === "pending" || item.status === "leased")
    world.violate("P1", `item ${name} is ${item.status} at rest`);
  if (item.status === "completed" && (ended("done") === 0 || item.result !== `result of ${name}`)) {
    world.violate(
      "P5",
      `item ${name} is completed with ${item.result}; its attempts ended ${ends.join(", ") || "never"}`,
    );
  }
  if (item.status === "failed" && item.attempts < item.max_attempts) {
    world.violate("P4", `item ${name} failed with ${item.attempts} of ${item.max_attempts} attempts`);
  }
  if (item.status === "cancelled" && item.batch !== "cancelled")
    world.violate("P5", `item ${name} is cancelled, its batch is not`);
  if (item.attempts !== item.failures + item.expiries) {
    world.violate(
      "B3",
      `item ${name} spent ${item.attempts} attempts: ${item.failures} failures, ${item.expiries} expired leases`,
    );
  }
  if (item.failures > ended("fail", "throw"))
    world.violate("B3", `item ${name} failed ${item.failures} times, its attempts ended ${ends.join(", ")}`);
  if (item.deferrals > ended("defer"))
    world.violate("B3", `item ${name} was deferred ${item.deferrals} times, its attempts ended ${ends.join(", ")}`);
}
