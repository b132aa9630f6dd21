/**
 * The simulated machines' common ground: what is under way (effects), the clock, timers, and what went wrong.
 * Owns determinism: one effect at a time, chosen by the seed, and nothing else happens until every promise that follows
 * from it has settled. Does not own storage, D1 or the queue: they ask it when something happens.
 */
import { Random } from "./random.ts";

/** A process of the platform: one instance of an object, or one invocation of a consumer. */
export interface Process {
  readonly name: string;
  /** A dead process sees and sends nothing more. What it had sent may still arrive. */
  isAlive: boolean;
  /** Its storage is another's by now: what it would send behind a write of its own never leaves (the output gate). */
  isGateBroken: boolean;
}

export interface Effect {
  readonly label: string;
  run(): void;
}

interface Timer {
  readonly at: number;
  readonly id: number;
  readonly action: () => void;
}

const START = Date.UTC(2027, 0, 1);

/** Keeps the real one: the global is the simulation's while it runs. */
const realSetImmediate = setImmediate;

/** Only a dead process's code sees it: the platform has stopped it, JavaScript cannot. */
export class ProcessGone extends Error {
  override readonly name = "ProcessGone";
}

export type EffectFault = "before" | "after";

export class World {
  readonly random: Random;
  readonly violations: string[] = [];
  readonly trace: string[] = [];
  readonly effects: Effect[] = [];
  /** Faults of the next effects of a kind, in order. */
  readonly armed = new Map<string, EffectFault[]>();
  /** How often each kind of thing happened: a simulation in which nothing happens finds nothing (`floors.ts`). */
  readonly counts = new Map<string, number>();
  #timers: Timer[] = [];
  #elapsed = 0;
  #ids = 0;
  steps = 0;
  /** How many instances of objects were lost, and how many of these to a deploy. */
  deaths = 0;
  deploys = 0;
  readonly #isTracing: boolean;

  constructor(seed: number, { isTracing = false } = {}) {
    this.#isTracing = isTracing;
    this.random = new Random(seed, "world");
  }

  /** Milliseconds since the start, which no clock fault touches: what timers go by. */
  get elapsed(): number {
    return this.#elapsed;
  }

  /** What a machine's clock says that is `skew` off. */
  now(skew = 0): number {
    return START + this.#elapsed + skew;
  }

  /** A UUID v7 out of the simulated time and a count. */
  newId(skew = 0, notBefore = 0): string {
    const time = Math.max(this.now(skew), notBefore).toString(16).padStart(12, "0");
    const count = (this.#ids += 1).toString(16).padStart(15, "0");
    return `${time.slice(0, 8)}-${time.slice(8)}-7${count.slice(0, 3)}-8${count.slice(3, 6)}-${count.slice(6).padStart(12, "0")}`;
  }

  violate(promise: string, what: string): void {
    const told = `${promise}: ${what}`;
    if (!this.violations.includes(told)) this.violations.push(told);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** For the trace of a schedule that is told in full. */
  note(what: string, details?: unknown): void {
    if (!this.#isTracing) return;
    const rest = details === undefined ? "" : ` ${JSON.stringify(details)}`;
    this.trace.push(`${this.steps} +${this.#elapsed} ${what}${rest}`);
  }

  died(process: Process, how: string): void {
    this.deaths += 1;
    this.count(`an object ${how}`);
    this.note(`${process.name} ${how}`);
  }

  /**
   * Something outside of the process: it happens when the seed says so, and only then the process hears of it.
   * A dead process's effect may still happen, late, and nobody hears of it; that is the stale write (P3).
   */
  effect<T>(process: Process, kind: string, perform: () => T): Promise<T> {
    if (!process.isAlive || process.isGateBroken) return new Promise(() => {});
    return new Promise((resolve, reject) => {
      const run = (): void => {
        if (!process.isAlive) {
          const isLost = this.random.chance(0.5);
          this.count(`what a dead process sent ${isLost ? "never arrives" : "arrives"}: ${kind}`);
          if (isLost) return this.note(`${kind} of ${process.name} never arrived`);
        } else this.count(`effect: ${kind}`);
        const fault = this.armed.get(kind)?.shift();
        this.note(`${kind} of ${process.name}${process.isAlive ? "" : " (late)"}${fault ? ` fails ${fault}` : ""}`);
        if (fault !== undefined) this.count(`${kind} fails ${fault} it was done`);
        if (fault === "before") return reject(new Error(`D1_ERROR: ${kind} failed before it was done`));
        try {
          const value = perform();
          if (!process.isAlive) return;
          if (fault === "after") reject(new Error(`D1_ERROR: ${kind} failed after it was done`));
          else resolve(value);
        } catch (error) {
          if (process.isAlive) reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      this.effects.push({ label: `${kind} ${process.name}`, run });
    });
  }

  setTimer(afterMs: number, action: () => void): number {
    const id = (this.#ids += 1);
    this.#timers.push({ at: this.#elapsed + Math.max(0, Math.ceil(afterMs)), id, action });
    return id;
  }

  clearTimer(id: unknown): void {
    this.#timers = this.#timers.filter((timer) => timer.id !== id);
  }

  /** When the next timer is due. */
  nextTimerAt(): number | undefined {
    return this.#timers.length === 0 ? undefined : Math.min(...this.#timers.map(({ at }) => at));
  }

  advanceTo(elapsed: number): void {
    this.#elapsed = Math.max(this.#elapsed, elapsed);
    const due = this.#timers.filter(({ at }) => at <= this.#elapsed).toSorted((a, b) => a.at - b.at || a.id - b.id);
    if (due.length === 0) return;
    this.#timers = this.#timers.filter(({ at }) => at > this.#elapsed);
    for (const { action } of due) this.effects.push({ label: "timer", run: action });
  }

  /** Runs one pending effect and everything that follows from it by itself. */
  async turn(): Promise<void> {
    const [effect] = this.effects.splice(this.random.int(this.effects.length), 1);
    this.steps += 1;
    try {
      effect?.run();
    } catch (error) {
      if (!(error instanceof ProcessGone)) throw error;
    }
    await settled();
  }
}

/** Every promise that can settle has settled: the event loop is reached only when no microtask is left. */
export function settled(): Promise<void> {
  return new Promise((resolve) => void realSetImmediate(resolve));
}

/** Gives the shipped code the world's timers for as long as `use` takes. */
export async function withWorldTimers<T>(world: World, use: () => Promise<T>): Promise<T> {
  const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
  const scheduler: unknown = Reflect.get(globalThis, "scheduler");
  const repeat = (action: () => void, everyMs: number): number => world.setTimer(everyMs, () => action());
  Object.assign(globalThis, {
    setTimeout: (action: () => void, afterMs = 0) => world.setTimer(afterMs, action),
    clearTimeout: (timer: unknown) => world.clearTimer(timer),
    setInterval: repeat,
    clearInterval: (timer: unknown) => world.clearTimer(timer),
    scheduler: { wait: (ms: number) => new Promise<void>((resolve) => void world.setTimer(ms, resolve)) },
  });
  try {
    return await use();
  } finally {
    Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval, scheduler });
  }
}
