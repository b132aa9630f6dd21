/** The clients of a schedule: they ask what the plan says and remember what they were told. */
import { createRunBodySchema } from "../../src/protocol/runs.ts";
import { createBatchBodySchema } from "../../src/protocol/batches.ts";
import type { ApiRefusal } from "../../src/protocol/errors.ts";
import type { BatchWish, CommandWish, Request, RunWish } from "./plan.ts";
import type { Platform, ThreadPlace } from "./platform.ts";
import { STEP_GRAPH_ID, STEP_NODE } from "./step-graph.ts";

/** A command that fits nothing is refused, by its form or by where the thread stands. */
const MAY_REFUSE_COMMAND = new Set([
  "thread_busy",
  "not_found",
  "invalid_request",
  "unsupported_option",
  "idempotency_conflict",
]);

export interface ToldRun {
  readonly runId: string;
  readonly place: ThreadPlace;
}

export interface ToldBatch {
  readonly batchId: string;
  readonly place: ThreadPlace;
}

export class Clients {
  readonly #platform: Platform;
  readonly #threads: readonly { readonly owner: string; readonly threadId: string }[];
  /** Accepted to their client's face. */
  readonly runs: ToldRun[] = [];
  readonly batches: ToldBatch[] = [];
  /** Ids of runs and batches somebody asked to cancel, whatever the answer was. */
  readonly cancelsAsked = new Set<string>();
  /** Runs whose rollback was accepted. */
  readonly rollbacks = new Set<string>();
  readonly #keys = new Map<string, Set<string>>();
  readonly #ends = new Map<string, BatchWish["items"][number]>();
  readonly #itemRuns = new Map<string, number>();
  readonly #bodies = new Map<string, BatchWish>();
  readonly #wishes = new Map<string, unknown>();
  readonly #askedOf = new Map<ThreadPlace, Set<string>>();
  #asked = 0;

  constructor(platform: Platform, threads: readonly { readonly owner: string; readonly threadId: string }[]) {
    this.#platform = platform;
    this.#threads = threads;
    platform.itemOutcome = (key) => this.#itemOutcome(key);
  }

  ask(request: Request): void {
    this.#asked += 1;
    const thread = this.#threads[request.thread % this.#threads.length];
    if (thread === undefined) return;
    const place = this.#platform.place(thread.owner, thread.threadId);
    this.#platform.world.note(`${thread.owner} asks`, request);
    // A client that got no answer knows nothing: what became of its request is read from storage.
    this.#ask(place, request).catch((error: unknown) => {
      this.#platform.world.note(`no answer: ${String(error)}`);
      if (!/object was reset|D1_ERROR/.test(String(error)))
        this.#platform.world.violate("P1", `a request failed: ${String(error)}`);
    });
  }

  async #ask(place: ThreadPlace, request: Request): Promise<void> {
    const platform = this.#platform;
    switch (request.kind) {
      case "run":
        return this.#run(place, request.run);
      case "command":
        return this.#command(place, request.command);
      case "cancel":
        return this.#cancel(place, request);
      case "cancel_task":
        return this.#cancelTask(place, request.nth);
      case "batch":
        return this.#batch(place, request.batch);
      case "cancel_batch":
        return this.#cancelBatch(place, request.nth);
      case "foreign":
        return this.#foreign(place);
      case "read":
        await platform.call(place, (object) => object.getThread(place.address));
        return;
      default:
        throw new Error("unknown request");
    }
  }

  async #run(place: ThreadPlace, wish: RunWish): Promise<void> {
    const { steps, strategy, afterSeconds } = this.#once(place, wish);
    const later = afterSeconds === null ? {} : { after_seconds: afterSeconds };
    const body = { input: { steps }, if_not_exists: "create", multitask_strategy: strategy, ...later };
    const refused = await this.#create(place, body, wish.key);
    if (refused !== undefined && refused.code !== "thread_busy") this.#refused(refused);
  }

  /** The same for each create of one key, so that a repeat is a repeat. */
  #once<T extends { readonly key: string | null }>(place: ThreadPlace, wish: T): T {
    if (wish.key === null) return wish;
    const name = `${place.address.owner}/${wish.key}`;
    const known = (this.#wishes.get(name) ?? wish) as T;
    this.#wishes.set(name, known);
    return known;
  }

  async #command(place: ThreadPlace, wish: CommandWish): Promise<void> {
    const { answer, update, goto, strategy } = this.#once(place, wish);
    // Taken before anything is waited for: others ask meanwhile.
    const token = `edit ${this.#asked}`;
    const read = await this.#platform.call(place, (object) => object.getThread(place.address));
    const [asked] = read.ok ? Object.values(read.value.interrupts).flat() : [];
    const named = { [asked?.id ?? "0".repeat(32)]: `answer to ${asked?.id ?? "nobody"}` };
    const command = {
      ...(answer === null ? {} : { resume: answer === "named" ? named : "an answer" }),
      ...(update ? { update: { edits: [token] } } : {}),
      ...(goto ? { goto: STEP_NODE } : {}),
    };
    const start = Object.keys(command).length === 0 ? { input: null } : { command };
    // What is answered is not known beforehand: a repeat may name another question, which is another body.
    const refused = await this.#create(place, { ...start, multitask_strategy: strategy }, wish.key, token);
    if (refused !== undefined && !MAY_REFUSE_COMMAND.has(refused.code)) this.#refused(refused);
  }

  /** The refusal, when it is one. */
  async #create(
    place: ThreadPlace,
    given: { readonly multitask_strategy: string } & Record<string, unknown>,
    key: string | null,
    bodyHash = "same",
  ): Promise<ApiRefusal | undefined> {
    const body = createRunBodySchema.parse({ assistant_id: STEP_GRAPH_ID, ...given });
    const idempotency = key === null ? {} : { idempotency: { key, body_hash: bodyHash } };
    const command = { graph_id: STEP_GRAPH_ID, body, ...idempotency };
    const strategy = given.multitask_strategy;
    if (strategy === "interrupt" || strategy === "rollback") this.asked(place).add(strategy);
    const created = await this.#platform.call(place, (object) => object.createRun(place.address, command));
    this.#platform.world.count(`create, ${strategy}: ${created.ok ? created.value.status : created.error.code}`);
    if (created.ok) this.#toldRun(place, created.value.run_id, key);
    return created.ok || this.#isOfRemovedRun(place, created.error) ? undefined : created.error;
  }

  #refused({ message }: ApiRefusal): void {
    this.#platform.world.violate("P1", `a run was refused: ${message}`);
  }

  /** A key stands for one execution: when that was rolled back, a repeat is refused (docs/decisions/idempotency.md). */
  #isOfRemovedRun(place: ThreadPlace, { code, details }: ApiRefusal): boolean {
    if (code !== "idempotency_conflict" || !this.mayBeRolledBack(place)) return false;
    const rows = place.disk.rows("SELECT 1 FROM runs WHERE run_id = ?", String(details?.["run_id"]));
    return rows.length === 0;
  }

  #toldRun(place: ThreadPlace, runId: string, key: string | null): void {
    const isRepeat = this.runs.some((run) => run.runId === runId);
    if (isRepeat) this.#platform.world.count("a create is repeated by its key");
    else this.runs.push({ runId, place });
    if (key === null) return;
    const name = `run ${place.address.owner}/${key}`;
    const ids = (this.#keys.get(name) ?? new Set<string>()).add(runId);
    this.#keys.set(name, ids);
    if (ids.size > 1) {
      this.#platform.world.violate("P2", `Idempotency-Key ${key} gave the runs ${[...ids].join(" and ")}`);
    }
  }

  /** Strategies and actions that end other runs, as they were asked of a thread. */
  asked(place: ThreadPlace): Set<string> {
    const known = this.#askedOf.get(place) ?? new Set<string>();
    this.#askedOf.set(place, known);
    return known;
  }

  mayBeRolledBack(place: ThreadPlace): boolean {
    return this.asked(place).has("rollback");
  }

  async #cancel(
    place: ThreadPlace,
    { wait, nth, action }: { wait: boolean; nth: number; action: "interrupt" | "rollback" },
  ): Promise<void> {
    const runs = this.runs.filter((run) => run.place === place);
    const run = runs.at(-1 - (nth % Math.max(1, runs.length)));
    if (run === undefined) return;
    this.cancelsAsked.add(run.runId);
    if (action === "rollback") this.asked(place).add(action);
    const cancelled = await this.#platform.call(place, (object) => {
      return object.cancelRun(place.address, run.runId, { wait, action });
    });
    if (cancelled.ok && action === "rollback") this.rollbacks.add(run.runId);
    this.#platform.world.count(`cancel, ${action}: ${cancelled.ok ? "accepted" : cancelled.error.code}`);
  }

  async #cancelTask(place: ThreadPlace, nth: number): Promise<void> {
    const { ledger } = this.#platform;
    const tasks = [...ledger.tasks].filter(([, runId]) =>
      this.runs.some((run) => run.place === place && run.runId === runId),
    );
    const [taskId, runId] = tasks.at(-1 - (nth % Math.max(1, tasks.length))) ?? [];
    if (taskId === undefined || runId === undefined) return;
    this.cancelsAsked.add(taskId);
    const cancelled = await this.#platform.call(place, (object) => object.cancelTask(place.address, runId, taskId));
    this.#platform.world.count(`cancel of a child: ${cancelled.ok ? "accepted" : cancelled.error.code}`);
  }

  async #batch(place: ThreadPlace, wish: BatchWish): Promise<void> {
    // A body of its own for each key, so that a repeat is a repeat.
    const name = wish.key === null ? `b${this.#asked}` : wish.key;
    const known = wish.key === null ? undefined : this.#bodies.get(`${place.address.owner}/${wish.key}`);
    const meant = known ?? wish;
    if (wish.key !== null) this.#bodies.set(`${place.address.owner}/${wish.key}`, meant);
    const items = meant.items.map((end, index) => {
      const key = `${place.address.owner}-${name}-${index}`;
      this.#ends.set(key, end);
      return { key, prompt: "count" };
    });
    const body = createBatchBodySchema.parse({
      title: name,
      subagent_type: "bash",
      items,
      max_live_items: meant.maxLive,
      max_running_items: meant.maxRunning,
      max_attempts: meant.maxAttempts,
    });
    const made = await this.#platform.call(place, (object) => object.createBatch(place.address, body, wish.key));
    this.#platform.world.count(`a batch: ${made.ok ? "accepted" : made.error.code}`);
    if (made.ok) this.#told(place, made.value.batch.batch_id, wish.key);
    else if (made.error.code !== "not_found")
      this.#platform.world.violate("P1", `a batch was refused: ${made.error.message}`);
  }

  /** B9 */
  #told(place: ThreadPlace, batchId: string, key: string | null): void {
    this.batches.push({ batchId, place });
    if (key === null) return;
    const name = `${place.address.owner}/${key}`;
    const ids = (this.#keys.get(name) ?? new Set()).add(batchId);
    this.#keys.set(name, ids);
    if (ids.size > 1) this.#platform.world.violate("B9", `key ${name} gave the batches ${[...ids].join(" and ")}`);
  }

  async #cancelBatch(place: ThreadPlace, nth: number): Promise<void> {
    const batches = this.batches.filter((batch) => batch.place === place);
    const batch = batches.at(-1 - (nth % Math.max(1, batches.length)));
    if (batch === undefined) return;
    this.cancelsAsked.add(batch.batchId);
    const cancelled = await this.#platform.call(place, (object) => object.cancelBatch(place.address, batch.batchId));
    this.#platform.world.count(`cancel of a batch: ${cancelled.ok ? "accepted" : cancelled.error.code}`);
    if (!cancelled.ok) return;
    const open = this.#platform.d1.rows<{ ordinal: number; status: string }>(
      "SELECT ordinal, status FROM batch_items WHERE batch_id = ? AND (status IN ('pending', 'leased') OR lease_token IS NOT NULL)",
      batch.batchId,
    );
    if (open.length > 0)
      this.#platform.world.violate("B4", `after its cancel batch ${batch.batchId} has ${JSON.stringify(open)}`);
  }

  /** P7: an owner with a thread of the same name asks for what is not theirs; each answer is that there is none. */
  async #foreign(place: ThreadPlace): Promise<void> {
    const { world } = this.#platform;
    const other = this.#platform.place("mallory", place.address.thread_id);
    const run = this.runs.findLast((each) => each.place === place);
    const batch = this.batches.findLast((each) => each.place === place);
    await this.#run(other, { steps: [], strategy: "reject", afterSeconds: null, key: null });
    const answers = [
      run && (await this.#platform.call(other, (object) => object.getRun(other.address, run.runId))),
      run &&
        (await this.#platform.call(other, (object) => object.cancelRun(other.address, run.runId, { wait: false }))),
      batch && (await this.#platform.call(other, (object) => object.cancelBatch(other.address, batch.batchId))),
    ];
    world.count("another owner asks");
    for (const answer of answers) {
      if (answer === undefined || (!answer.ok && answer.error.code === "not_found")) continue;
      world.violate("P7", `mallory was answered ${JSON.stringify(answer)}`);
    }
  }

  #itemOutcome(key: string): "done" | "fail" | "defer" | "throw" {
    const runs = (this.#itemRuns.get(key) ?? 0) + 1;
    this.#itemRuns.set(key, runs);
    const end = this.#ends.get(key) ?? "done";
    if (end === "fail_once") return runs === 1 ? "fail" : "done";
    if (end === "defer") return runs <= 2 ? "defer" : "done";
    return end;
  }
}
