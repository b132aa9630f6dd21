/**
 * One schedule: a plan carried out on the simulated platform until everything rests, then the promises are checked.
 * Owns the order of things: requests and faults at their moments, otherwise whatever effect the seed picks; time passes
 * a little with each effect and to the next alarm or timer when nothing else is left.
 */
import { checkAtRest } from "./checks.ts";
import { Clients } from "./clients.ts";
import { SimulatedD1 } from "./d1.ts";
import type { Fault, Plan } from "./plan.ts";
import { Platform, type ThreadPlace } from "./platform.ts";
import { STALE_AFTER_MS } from "../../src/queue-consumers/batch-sweep.ts";
import { settled, withWorldTimers, World } from "./world.ts";

export interface ScheduleResult {
  readonly violations: readonly string[];
  readonly effects: number;
  readonly trace: readonly string[];
  readonly faults: readonly string[];
  /** How often each kind of thing happened. */
  readonly counts: ReadonlyMap<string, number>;
}

/** A schedule that does not rest within it loops (P8). Most rest within 300. */
const EFFECTS_MAX = 4_000;
/** Days that may pass until it rests: idle objects have no alarm. */
const ELAPSED_MAX_MS = 3 * 86_400_000;

/** How long something under way may take. */
const SLOW_ANSWER_MAX_MS = 90_000;

let shared: SimulatedD1 | undefined;

export async function runSchedule(plan: Plan, options: { isTracing?: boolean } = {}): Promise<ScheduleResult> {
  const world = new World(plan.seed, options);
  const d1 = (shared ??= new SimulatedD1());
  d1.open(world);
  const platform = new Platform(world, d1);
  platform.maxRunning = plan.maxRunning;
  platform.recoveryAttempts = plan.recoveryAttempts;
  platform.isNew = plan.isNew;
  const clients = new Clients(platform, plan.threads);
  await withWorldTimers(world, async () => {
    await carryOut(plan, { world, platform, clients });
  });
  platform.close();
  const { violations, steps: effects, trace, counts } = world;
  return { violations, effects, trace, counts, faults: platform.faults };
}

interface Stage {
  readonly world: World;
  readonly platform: Platform;
  readonly clients: Clients;
}

async function carryOut(plan: Plan, stage: Stage): Promise<void> {
  const { world, platform, clients } = stage;
  const requests = [...plan.requests];
  const faults = [...plan.faults];
  const isDue = (moment: { at: number } | undefined): boolean =>
    moment !== undefined && (moment.at <= world.steps || world.effects.length === 0);
  while (requests.length > 0 || faults.length > 0) {
    while (isDue(requests[0]) && (requests[0]?.at ?? 0) <= (faults[0]?.at ?? Infinity))
      clients.ask(requests.shift()!.what);
    while (isDue(faults[0])) inject(faults.shift()!.what, stage);
    await advance(stage);
    if (world.steps > EFFECTS_MAX) break;
  }
  // Clocks that disagree by more than a lease for ever let no lease live; a jump is over when they agree again.
  platform.skew.consumers = platform.skew.objects;
  await rest(stage);
  checkAtRest(stage, { isWoken: false });
  // A run whose client got no answer may wait for the next wake, and an end that was not acknowledged for the cron.
  for (const place of platform.places) void readState(platform, place);
  await rest(stage);
  for (const place of platform.places) void readState(platform, place);
  await rest(stage);
  if (platform.d1.rows("SELECT 1 FROM live_batches").length > 0) {
    world.advanceTo(world.elapsed + STALE_AFTER_MS + 1);
    platform.sweep().catch((error: unknown) => world.violate("P1", `the sweep failed: ${String(error)}`));
    await rest(stage);
  }
  checkAtRest(stage, { isWoken: true });
}

async function readState(platform: Platform, place: ThreadPlace): Promise<void> {
  try {
    const thread = await platform.call(place, (object) => object.getThread(place.address));
    place.values = thread.ok ? thread.value.values : undefined;
  } catch (error) {
    platform.world.note(`no state: ${String(error)}`);
  }
}

async function rest(stage: Stage): Promise<void> {
  const { world } = stage;
  for (;;) {
    if (world.steps > EFFECTS_MAX) return world.violate("P8", `no rest after ${EFFECTS_MAX} effects`);
    if (world.elapsed > ELAPSED_MAX_MS) return world.violate("P8", `no rest after ${ELAPSED_MAX_MS} ms`);
    if (!(await advance(stage))) return;
  }
}

/** Lets one thing happen. False when nothing can. */
async function advance({ world, platform }: Stage): Promise<boolean> {
  const { random } = world;
  // Slow answers: the clock runs on while effects are under way.
  if (world.effects.length === 0 || random.chance(0.04)) {
    const next = [world.nextTimerAt(), platform.nextAlarmAt()].filter((at) => at !== undefined);
    const nothingElse =
      world.effects.length === 0 && platform.messages.length === 0 && platform.deadLetters.length === 0;
    const at = Math.min(...next);
    if (next.length > 0 && nothingElse) world.advanceTo(at);
    else if (next.length > 0 && random.chance(0.3)) world.advanceTo(Math.min(at, world.elapsed + SLOW_ANSWER_MAX_MS));
    else if (nothingElse && world.effects.length === 0) return false;
  } else world.advanceTo(world.elapsed + random.int(40));
  platform.fireAlarms();
  if (platform.messages.length > 0 && (world.effects.length === 0 || random.chance(0.3))) platform.deliver();
  if (platform.deadLetters.length > 0 && random.chance(0.3)) platform.deliverDead();
  if (world.effects.length > 0) await world.turn();
  else await settled();
  platform.noticeDeaths();
  if (random.chance(0.3)) platform.crashAsArmed();
  return true;
}

function inject(fault: Fault, stage: Stage): void {
  const { world, platform } = stage;
  world.note("fault", fault);
  world.count(`fault: ${fault.kind}`);
  const placeOf = (thread: number): ThreadPlace | undefined =>
    platform.places[thread % Math.max(1, platform.places.length)];
  switch (fault.kind) {
    case "crash":
    case "zombie":
    case "die_at_commit": {
      const place = placeOf(fault.thread);
      if (place === undefined) return;
      if (fault.kind === "crash") platform.crash(place);
      else if (fault.kind === "zombie") platform.replace(place);
      else if (fault.kind === "die_at_commit") platform.dieAfterCommits(place, fault.commits);
      return;
    }
    case "crash_consumer": {
      platform.crashAConsumer();
      return;
    }
    case "fail_d1":
      world.armed.set(
        "d1",
        Array.from({ length: fault.times }, () => fault.when),
      );
      return;
    case "fail_send":
      world.armed.set("queue", ["before"]);
      return;
    case "clock":
      platform.skew[fault.whose] += fault.byMs;
      return;
    case "deploy":
      platform.maxRunning = fault.maxRunning;
      platform.version += 1;
      for (const place of platform.places) if (platform.crash(place)) world.deploys += 1;
      return;
    case "cron":
      platform.sweep().catch((error: unknown) => world.note(`sweep failed: ${String(error)}`));
      return;
    case "lose":
    case "double":
    case "dead_letter":
      platform.disturbQueue(fault.kind, fault.nth);
  }
}
