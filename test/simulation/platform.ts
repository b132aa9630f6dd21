/**
 * Cloudflare as the simulation has it: named objects with storage and one alarm, instances of them that die, are replaced
 * and go on as zombies, a queue that loses, doubles and reorders, consumers that die. The object's class, its stores,
 * the batch repository and the consumers are the shipped ones; only what they stand on is made here.
 */
import { parseDeputyConfig, type DeputyConfig } from "../../src/config.ts";
import type { AdmissionController } from "../../src/agent/subagents/admission-controller.ts";
import type { BatchItemOutcome } from "../../src/domain/batch/item-settlement.ts";
import { ThreadObjectBase } from "../../src/durable-objects/thread-object.ts";
import type { Env } from "../../src/env.ts";
import { D1BatchRepository } from "../../src/platform/d1/batch-repository.ts";
import type { ThreadAddress } from "../../src/protocol/thread-rpc.ts";
import { consumeBatchWakes, type BatchConsumerDeps } from "../../src/queue-consumers/batch-items.ts";
import { sweepBatches } from "../../src/queue-consumers/batch-sweep.ts";
import { consumeDeadLetters } from "../../src/queue-consumers/dead-letters.ts";
import type { SimulatedD1 } from "./d1.ts";
import { ObjectDisk, SimulatedStorage } from "./object-storage.ts";
import { RunLedger } from "./run-ledger.ts";
import { stepCatalog } from "./step-graph.ts";
import { type Process, ProcessGone, type World } from "./world.ts";

export const LEASE_SECONDS = 6;
/** A message that failed this often goes to the dead letters. */
const DELIVERIES_MAX = 3;
const ALARM_RETRY_MS = 2_000;

/** One process's life: what died with it answers its callers so. */
interface Instance extends Process {
  readonly object: ThreadObjectBase;
  readonly storage: SimulatedStorage;
  readonly calls: Set<(error: Error) => void>;
}

interface Message {
  readonly id: number;
  readonly body: unknown;
  deliveries: number;
}

export type QueueFault = "lose" | "double" | "dead_letter";

export class ThreadPlace {
  readonly address: ThreadAddress;
  readonly disk: ObjectDisk;
  instance: Instance | undefined;
  /** The state as the last reader was given it. */
  values: unknown;
  /** Of the newest instance that has one. */
  admission: AdmissionController | undefined;
  /** The alarm whose handler runs now. */
  alarm: object | undefined;

  constructor(world: World, address: ThreadAddress, isNew: boolean) {
    this.address = address;
    this.disk = new ObjectDisk(world, `${address.owner}/${address.thread_id}`, { isNew });
  }
}

const configs = new Map<string, DeputyConfig>();

function configOf(maxRunning: number, recoveryAttempts: number): DeputyConfig {
  const known = configs.get(`${maxRunning}/${recoveryAttempts}`);
  if (known !== undefined) return known;
  const config = parseDeputyConfig({
    runtime: { recovery_attempts: recoveryAttempts },
    subagent_runtime: { max_running: maxRunning, queue_timeout_seconds: 60 },
    subagent_batches: { lease_seconds: LEASE_SECONDS },
  });
  configs.set(`${maxRunning}/${recoveryAttempts}`, config);
  return config;
}

export class Platform {
  readonly world: World;
  readonly d1: SimulatedD1;
  readonly ledger: RunLedger;
  readonly places: ThreadPlace[] = [];
  readonly messages: Message[] = [];
  readonly deadLetters: Message[] = [];
  readonly consumers = new Map<Process, Message>();
  readonly faults: string[] = [];
  maxRunning = 3;
  recoveryAttempts = 10;
  /** Of the Worker that is deployed. */
  version = 1;
  /** Objects begin without tables. */
  isNew = false;
  /** How far the clocks of objects and consumers are off. */
  skew = { objects: 0, consumers: 0 };
  /** How an item's attempt ends, by its key; decided by the workload. */
  itemOutcome: (key: string, attempt: number) => "done" | "fail" | "defer" | "throw" = () => "done";
  readonly #zombies = new Set<Instance>();
  #instances = 0;
  #messages = 0;
  /** Faults that strike the next consumer and the next message: chance alone seldom meets one. */
  #consumerCrashes = 0;
  readonly #queueFaults: QueueFault[] = [];

  constructor(world: World, d1: SimulatedD1) {
    this.world = world;
    this.d1 = d1;
    this.ledger = new RunLedger(world);
    const find = <T>(query: string, runId: string): T[] =>
      this.places.flatMap(({ disk }) => disk.rows<T>(query, runId));
    this.ledger.findRun = (runId) => find("SELECT status, cancel_requested FROM runs WHERE run_id = ?", runId);
    this.ledger.activeRuns = (runId) =>
      this.places.flatMap(({ disk }) => {
        const running = disk.rows<{ run_id: string }>("SELECT run_id FROM runs WHERE status = 'running'");
        const isHere = running.some((run) => run.run_id === runId);
        return isHere ? running.map((run) => run.run_id).filter((id) => id !== runId) : [];
      });
  }

  place(owner: string, threadId: string): ThreadPlace {
    const known = this.places.find(({ address }) => address.owner === owner && address.thread_id === threadId);
    if (known !== undefined) return known;
    const place = new ThreadPlace(this.world, { v: 1, owner, thread_id: threadId, role: "user" }, this.isNew);
    this.places.push(place);
    return place;
  }

  /** The schedule is over. */
  close(): void {
    for (const place of this.places) {
      if (place.instance !== undefined) place.instance.isAlive = false;
      place.disk.recycle();
    }
    for (const zombie of this.#zombies) zombie.isAlive = false;
    for (const consumer of this.consumers.keys()) consumer.isAlive = false;
  }

  /** A call to an object, from outside of any process. Rejects when the instance dies before it answered. */
  call<T>(place: ThreadPlace, use: (object: ThreadObjectBase) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.world.effects.push({
        label: "call",
        run: () => {
          this.#dispatch(place, use).then(resolve, reject);
        },
      });
    });
  }

  #dispatch<T>(place: ThreadPlace, use: (object: ThreadObjectBase) => Promise<T>): Promise<T> {
    const instance = (place.instance ??= this.#start(place));
    return new Promise<T>((resolve, reject) => {
      const lost = (): Error => new Error("the object was reset");
      instance.calls.add(reject);
      const answered = async (): Promise<void> => {
        try {
          const value = await use(instance.object);
          place.disk.watch();
          if (instance.isAlive && !instance.isGateBroken) resolve(value);
          else reject(lost());
        } catch (error) {
          reject(error instanceof ProcessGone ? lost() : (error as Error));
        }
        instance.calls.delete(reject);
        if (!instance.isAlive) this.#bury(place, instance);
      };
      void answered();
    });
  }

  #start(place: ThreadPlace): Instance {
    this.#instances += 1;
    const process = { name: `${place.address.owner}#${this.#instances}`, isAlive: true, isGateBroken: false };
    place.disk.maxRunning = this.maxRunning;
    const storage = new SimulatedStorage(place.disk, process);
    const newId = (notBefore?: number): string => this.world.newId(this.skew.objects, notBefore);
    const object = new ThreadObjectBase({ storage } as unknown as DurableObjectState, {} as Env, {
      config: configOf(this.maxRunning, this.recoveryAttempts),
      catalog: stepCatalog({ world: this.world, ledger: this.ledger, process, newId }),
      db: this.d1.binding(process),
      sendWake: (wake) => this.world.effect(process, "queue", () => this.#send(wake)),
      now: () => this.world.now(this.skew.objects),
      newId,
      version: `v${this.version}`,
      observe: ({ admission }) => {
        place.admission = admission;
      },
      report: (what, details) => {
        this.world.count(`told: ${what}`);
        if (process.isAlive) this.faults.push(`${what} ${JSON.stringify(details)}`);
      },
    });
    this.world.note(`${process.name} wakes`);
    return Object.assign(process, { object, storage, calls: new Set<(error: Error) => void>() });
  }

  #send(body: unknown): void {
    this.messages.push({ id: (this.#messages += 1), body, deliveries: 0 });
    const fault = this.#queueFaults.shift();
    if (fault !== undefined) this.disturbQueue(fault, this.messages.length - 1);
  }

  /** What a queue may do to a message; to the next one when none is there. */
  disturbQueue(fault: QueueFault, nth: number): void {
    const at = nth % Math.max(1, this.messages.length);
    const message = this.messages[at];
    if (message === undefined) return void this.#queueFaults.push(fault);
    this.world.count(`a message: ${fault}`);
    if (fault === "double") this.messages.push({ ...message });
    else this.messages.splice(at, 1);
    if (fault === "dead_letter") this.deadLetters.push(message);
  }

  /** The instance is gone, whatever it was doing. False when there was none. */
  crash(place: ThreadPlace): boolean {
    const { instance } = place;
    if (instance === undefined) return false;
    this.world.died(instance, "crashes");
    this.#bury(place, instance);
    return true;
  }

  /** It dies by itself, right before a later commit. */
  dieAfterCommits(place: ThreadPlace, commits: number): void {
    if (place.instance !== undefined) place.instance.storage.groupsLeft = commits;
  }

  /** Another instance is in its place, and it does not know. */
  replace(place: ThreadPlace): void {
    const { instance } = place;
    if (instance === undefined || !instance.isAlive) return;
    this.world.died(instance, "is replaced and goes on");
    instance.storage.fork();
    place.instance = undefined;
    this.#zombies.add(instance);
    // An alarm is delivered at least once: what the old instance makes of it does not count.
    this.#endAlarm(place, place.alarm, ALARM_RETRY_MS);
  }

  /** Instances that died by themselves are noticed. */
  noticeDeaths(): void {
    for (const zombie of this.#zombies) if (!zombie.isAlive || zombie.isGateBroken) this.#bury(undefined, zombie);
    for (const place of this.places) {
      place.disk.watch();
      const { instance } = place;
      if (instance !== undefined && !instance.isAlive) this.#bury(place, instance);
    }
  }

  #bury(place: ThreadPlace | undefined, instance: Instance): void {
    instance.isAlive = false;
    this.#zombies.delete(instance);
    if (place?.instance === instance) place.instance = undefined;
    for (const reject of instance.calls) reject(new Error("the object was reset"));
    instance.calls.clear();
  }

  /** An alarm that is due, if any: it fires at least once, and again when its handler failed or died. */
  fireAlarms(): void {
    for (const place of this.places) {
      const { disk } = place;
      if (disk.alarmAt === null || place.alarm !== undefined || disk.alarmAt > this.world.now(this.skew.objects))
        continue;
      this.#fireAlarm(place);
    }
  }

  #fireAlarm(place: ThreadPlace): void {
    const { disk } = place;
    const alarm = {};
    disk.alarmAt = null;
    place.alarm = alarm;
    this.world.note(`alarm of ${disk.name}`);
    this.call(place, (object) => object.alarm()).then(
      () => this.#endAlarm(place, alarm),
      () => {
        this.world.count("an alarm fails and comes again");
        this.#endAlarm(place, alarm, ALARM_RETRY_MS);
      },
    );
  }

  #endAlarm(place: ThreadPlace, alarm: object | undefined, againAfterMs?: number): void {
    if (alarm === undefined || place.alarm !== alarm) return;
    place.alarm = undefined;
    if (againAfterMs !== undefined) place.disk.alarmAt ??= this.world.now(this.skew.objects) + againAfterMs;
  }

  /** When the next alarm is due, in elapsed time. */
  nextAlarmAt(): number | undefined {
    const times = this.places
      .filter(({ alarm }) => alarm === undefined)
      .flatMap(({ disk }) => disk.alarmAt ?? [])
      .map((at) => this.world.elapsed + at - this.world.now(this.skew.objects));
    return times.length === 0 ? undefined : Math.max(this.world.elapsed, Math.min(...times));
  }

  /** Any message, not the oldest: a queue promises no order. */
  deliver(): void {
    const [message] = this.messages.splice(this.world.random.int(this.messages.length), 1);
    if (message !== undefined) this.#consume(message);
  }

  #consume(message: Message): void {
    const process: Process = {
      name: `consumer#${message.id}.${message.deliveries}`,
      isAlive: true,
      isGateBroken: false,
    };
    this.consumers.set(process, message);
    message.deliveries += 1;
    this.world.note(`${process.name} gets`, message.body);
    const delivery = deliveryOf(message, () => {
      this.consumers.delete(process);
    });
    void consumeBatchWakes(delivery, this.#consumerDeps(process));
  }

  /** At one of the next effects at which there is a consumer. */
  crashAConsumer(): void {
    this.#consumerCrashes += 1;
  }

  crashAsArmed(): void {
    const consumers = [...this.consumers.keys()];
    if (this.#consumerCrashes === 0 || consumers.length === 0) return;
    this.#consumerCrashes -= 1;
    this.crashConsumer(this.world.random.pick(consumers));
  }

  /** It stops where it is; its message comes again, or goes to the dead letters. */
  crashConsumer(process: Process): void {
    this.world.note(`${process.name} crashes`);
    this.world.count("a consumer crashes");
    process.isAlive = false;
    const message = this.consumers.get(process);
    this.consumers.delete(process);
    if (message === undefined) return;
    if (message.deliveries < DELIVERIES_MAX) this.messages.push(message);
    else this.deadLetters.push(message);
  }

  /** The queue gave up on a message. */
  deliverDead(): void {
    const [message] = this.deadLetters.splice(0, 1);
    if (message === undefined) return;
    const process: Process = { name: `dead#${message.id}`, isAlive: true, isGateBroken: false };
    void consumeDeadLetters(
      deliveryOf(message, () => undefined),
      { grants: this.#grants(process), log: () => undefined },
    );
  }

  /** The cron. */
  async sweep(): Promise<void> {
    const process: Process = { name: "cron", isAlive: true, isGateBroken: false };
    await sweepBatches({
      repository: new D1BatchRepository(this.d1.binding(process)),
      poke: async ({ owner, threadId, batchIds }) => {
        const place = this.place(owner, threadId);
        const poked = await this.call(place, (object) => object.pokeBatches(place.address, batchIds));
        return poked.ok ? "poked" : "no_thread";
      },
      now: () => this.world.now(this.skew.consumers),
      log: (what, details) => void this.faults.push(`${what} ${JSON.stringify(details)}`),
    });
  }

  #grants(process: Process): BatchConsumerDeps["grants"] {
    return {
      returnGrant: async ({ owner, threadId, batchId, grantId }) => {
        if (!process.isAlive) return new Promise(() => {});
        const place = this.place(owner, threadId);
        const grant = { batch_id: batchId, grant_id: grantId };
        await this.call(place, (object) => object.returnGrant(place.address, grant));
      },
    };
  }

  #consumerDeps(process: Process): BatchConsumerDeps {
    const { world } = this;
    return {
      rows: new D1BatchRepository(this.d1.binding(process)),
      grants: this.#grants(process),
      runner: {
        run: ({ batchId, ordinal, key, attempt }, _setting, signal) =>
          this.#item(process, { batchId, ordinal, key, attempt, signal }),
      },
      timers: {
        set: (afterMs, action) => world.setTimer(afterMs, () => (process.isAlive ? action() : undefined)),
        clear: (timer) => world.clearTimer(timer),
      },
      now: () => world.now(this.skew.consumers),
      newId: () => world.newId(this.skew.consumers),
      leaseMs: LEASE_SECONDS * 1_000,
      resultCharsMax: 1_000,
      log: () => undefined,
    };
  }

  async #item(
    process: Process,
    item: { batchId: string; ordinal: number; key: string; attempt: number; signal: AbortSignal },
  ): Promise<BatchItemOutcome> {
    const { batchId, ordinal, key, attempt, signal } = item;
    const name = `${batchId}:${ordinal}`;
    this.world.note(`${process.name} runs item ${key} of ${batchId}, attempt ${attempt}`);
    const [row] = this.d1.rows<{ status: string; lease: number | null }>(
      `SELECT i.status, l.expires_at AS lease FROM batch_items i LEFT JOIN leases l
         ON l.batch_id = i.batch_id AND l.lease_token = i.lease_token WHERE i.batch_id = ? AND i.ordinal = ?`,
      batchId,
      ordinal,
    );
    if (row !== undefined && ["completed", "failed"].includes(row.status)) {
      // The consumer may have been slow to begin: its lease is over then, and it will be told.
      this.ledger.endItem(name, "late");
    } else if (row?.status === "leased" && row.lease === null) {
      this.world.violate("B1", `item ${name} runs under a lease that is no row`);
    }
    const how = this.itemOutcome(key, attempt);
    const stop = new Promise<"stopped">((resolve) => {
      signal.addEventListener("abort", () => resolve("stopped"), { once: true });
    });
    const ended = await Promise.race([this.world.effect(process, "item", () => how), stop]);
    this.ledger.endItem(name, ended);
    if (ended === "stopped") return { kind: "aborted" };
    if (how === "throw") throw new Error(`item ${name} threw`);
    if (how === "fail") return { kind: "failed", error: `item ${name} failed` };
    if (how === "defer") return { kind: "deferred", reason: "not now" };
    return { kind: "completed", result: `result of ${name}`, usage: null, outputs: null };
  }
}

function deliveryOf(message: Message, onAck: () => void): MessageBatch {
  const delivered = {
    id: String(message.id),
    timestamp: new Date(0),
    attempts: message.deliveries,
    body: message.body,
    ack: onAck,
    retry: () => undefined,
  };
  return { queue: "deputy-batch-wakes", messages: [delivered], ackAll: onAck, retryAll: () => undefined } as never;
}
