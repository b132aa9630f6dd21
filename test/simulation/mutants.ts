/**
 * Faults put into the domain's decisions on purpose, each of which the simulation must find: what shows that its checks
 * see. An edit matches its file exactly once, or the test fails.
 */
export interface Mutant {
  readonly name: string;
  /** Under `src/`. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** The promise it breaks. */
  readonly breaks: string;
  /** Where the search begins, for what few schedules meet; 1 for the others. */
  readonly firstSeed?: number;
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: "recovery-resumes-what-never-began",
    file: "domain/run/recovery.ts",
    from: `if (started || run.start === "nothing") return { kind: "resume", recovery };`,
    to: `return { kind: "resume", recovery };`,
    breaks: "P5: a run that did nothing ends as a success",
  },
  {
    name: "recovery-starts-anew",
    file: "domain/run/recovery.ts",
    from: "const started = input.headCheckpointId !== run.baseCheckpointId;",
    to: "const started = false;",
    breaks: "P2: committed steps run again",
  },
  {
    name: "two-runs-at-once",
    file: "domain/run/multitask.ts",
    from: `if (strategy === "reject") return err({ reason: "thread_busy", runId: oldest.runId });`,
    to: `if (strategy === "reject") return ok({ kind: "start_now", cancel: [] });`,
    breaks: "P3: two runs write one thread's state",
  },
  {
    name: "the-newest-waiting-run-starts-first",
    file: "domain/run/multitask.ts",
    from: "const [first] = runs.filter((run) => !isTerminal(run.status));",
    to: "const [first] = runs.filter((run) => !isTerminal(run.status)).toReversed();",
    breaks: "P1: runs start in another order than they were accepted",
  },
  {
    name: "returned-grants-keep-their-slots",
    file: "domain/admission/admission.ts",
    from: `return { state: { ...state, grants }, effects: [{ kind: "delete_grant", grantId }]`,
    to: `return { state, effects: [{ kind: "delete_grant", grantId }]`,
    breaks: "P1, P8: slots are never free again",
  },
  {
    name: "one-slot-too-many",
    file: "domain/admission/admission-state.ts",
    from: "return Math.max(0, state.config.maxRunning - heldSlots(state));",
    to: "return Math.max(0, state.config.maxRunning + 1 - heldSlots(state));",
    breaks: "P8: more children run than max_running",
  },
  {
    name: "pending-items-are-forgotten",
    file: "domain/batch/offer-window.ts",
    from: "const want = finding.pending + finding.leased;",
    to: "const want = finding.leased;",
    breaks: "P1: an item that failed once is never offered again",
  },
  {
    name: "lost-wakes-stay-lost",
    file: "domain/batch/offer-window.ts",
    from: `offer.state.kind === "out" ? offer.state.expiresAt <= now :`,
    to: `offer.state.kind === "out" ? false :`,
    breaks: "B6: nobody looks for a wake that was lost",
  },
  {
    name: "the-live-window-is-not-kept",
    file: "domain/batch/offer-window.ts",
    from: "Math.min(room, window.maxLive - live, window.total - window.next)",
    to: "Math.min(room, window.maxLive, window.total - window.next)",
    breaks: "B7: more items are live than max_live_items",
  },
  {
    name: "a-deferral-costs-an-attempt",
    file: "domain/batch/item-settlement.ts",
    from: `status: "pending", deferred: 1 };`,
    to: `status: "pending", deferred: 1, attemptsSpent: 1 };`,
    breaks: "B3, P4: waiting spends attempts",
  },
  {
    name: "one-attempt-too-many",
    file: "domain/batch/item-settlement.ts",
    from: `status: attempt < facts.maxAttempts ? "pending" : "failed",`,
    to: `status: attempt <= facts.maxAttempts ? "pending" : "failed",`,
    breaks: "P8: an item is tried once more than its budget",
  },
  {
    name: "a-clock-set-back-hides-what-was-put",
    file: "platform/durable-storage/checkpoint-order.ts",
    from: "if (id > before && id > above) return { latePosition: null, isNew: true };",
    to: "return { latePosition: null, isNew: true };",
    breaks: "P1: what was committed behind a clock that was set back is not found",
  },
  {
    name: "an-interrupted-command-is-forgotten",
    file: "domain/run/recovery.ts",
    from: `return { kind: "start_with_command", answers, recovery };`,
    to: `return { kind: "resume", recovery };`,
    breaks: "P1: an answer or an update that was accepted is lost with a crash",
  },
  {
    name: "a-deploy-costs-an-attempt",
    file: "domain/run/recovery.ts",
    from: "(isDeferred ? 0 : 1)",
    to: "1",
    breaks: "P4: a run is given up because of deploys",
  },
  {
    name: "a-rollback-does-not-outdo-an-interrupt",
    file: "domain/run/multitask.ts",
    from: `return stored === undefined || (action === "rollback" && stored === "interrupt");`,
    to: "return stored === undefined;",
    breaks: "P3: a run that was to be as if it had never been stays",
  },
  {
    name: "a-thread-that-waits-is-idle",
    file: "domain/run/run-status.ts",
    from: `return newest.waitsForAnswer ? "interrupted" : "idle";`,
    to: `return "idle";`,
    breaks: "P5: nobody learns that a question waits",
  },
  {
    name: "a-stopped-child-is-a-success",
    file: "agent/subagents/delegation-execution.ts",
    from: `return this.#stop({ status: "cancelled", error: CANCELLED_BY_USER });`,
    to: `return this.#stop({ status: "completed", result: "done" });`,
    breaks: "P5: a child that was cancelled is told as completed",
  },
  {
    name: "a-child-is-told-to-start-again",
    file: "durable-objects/delegation-journal.ts",
    from: "if (known !== undefined) {",
    to: "if (known === null) {",
    breaks: "P2: recovery starts a child anew in the log",
  },
  {
    name: "a-child-leaves-its-checkpoints",
    file: "durable-objects/commit-events.ts",
    from: "this.#ports.forgetChild(delegation.checkpointNs);",
    to: "",
    breaks: "P8: each child that ever ran stays in the object",
  },
  {
    name: "a-removed-run-leaves-the-door-open",
    file: "platform/d1/run-event-log.ts",
    from: "const [found] = await fenced<",
    to: "const [found] = await this.#db.batch<",
    breaks: "P7: a late flush of a replaced instance brings back a run that was rolled back",
    firstSeed: 1_400,
  },
];
