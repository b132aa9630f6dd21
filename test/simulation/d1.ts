/**
 * D1 over `node:sqlite`, with the repository's own migrations: the part of `D1Database` that Deputy uses. Each call is an
 * effect of the world, so it happens when the seed says so, alone, and may fail before or after it was done.
 * The rows are watched by triggers: what a promise forbids at every instant is told at that instant.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { prepared } from "./prepared.ts";
import type { Process, World } from "./world.ts";

const MIGRATIONS = join(import.meta.dirname, "..", "..", "migrations");

const TERMINAL_ITEM = "('completed', 'failed', 'cancelled')";
const TERMINAL_RUN = "('success', 'error', 'timeout', 'interrupted')";

const WATCHES = [
  `CREATE TEMP TRIGGER sim_item_end BEFORE UPDATE ON batch_items
   WHEN OLD.status IN ${TERMINAL_ITEM}
     AND (NEW.status <> OLD.status OR NEW.attempts <> OLD.attempts OR NEW.result IS NOT OLD.result OR NEW.lease_token IS NOT OLD.lease_token)
   BEGIN SELECT sim_violate('B5', 'item ' || OLD.ordinal || ' had ended as ' || OLD.status || ' and changed to ' || NEW.status); END`,
  `CREATE TEMP TRIGGER sim_item_attempts AFTER UPDATE ON batch_items
   WHEN NEW.attempts > (SELECT max_attempts FROM batches b WHERE b.batch_id = NEW.batch_id)
   BEGIN SELECT sim_violate('P8', 'item ' || NEW.ordinal || ' spent ' || NEW.attempts || ' attempts, past its budget'); END`,
  `CREATE TEMP TRIGGER sim_item_lease AFTER UPDATE ON batch_items
   WHEN (NEW.status = 'leased') <> (NEW.lease_token IS NOT NULL)
   BEGIN SELECT sim_violate('B1', 'item ' || NEW.ordinal || ' is ' || NEW.status || ' with lease ' || coalesce(NEW.lease_token, 'none')); END`,
  `CREATE TEMP TRIGGER sim_leased AFTER UPDATE ON batches WHEN NEW.leased > NEW.max_running_items
   BEGIN SELECT sim_violate('B7', NEW.leased || ' items are leased, at most ' || NEW.max_running_items || ' may be'); END`,
  `CREATE TEMP TRIGGER sim_run_end BEFORE UPDATE ON runs WHEN OLD.status IN ${TERMINAL_RUN} AND NEW.status <> OLD.status
   BEGIN SELECT sim_violate('P3', 'D1: run ' || OLD.run_id || ' had ended as ' || OLD.status || ' and became ' || NEW.status); END`,
  `CREATE TEMP TRIGGER sim_epoch BEFORE UPDATE ON runs WHEN NEW.epoch < OLD.epoch
   BEGIN SELECT sim_violate('P3', 'D1: run ' || OLD.run_id || ' of epoch ' || OLD.epoch || ' was written by epoch ' || NEW.epoch); END`,
  `CREATE TEMP TRIGGER sim_thread_epoch BEFORE UPDATE ON threads WHEN NEW.epoch < OLD.epoch
   BEGIN SELECT sim_violate('P3', 'D1: the thread of epoch ' || OLD.epoch || ' was written by epoch ' || NEW.epoch); END`,
  `CREATE TEMP TRIGGER sim_event BEFORE UPDATE ON run_events
   BEGIN SELECT sim_violate('P3', 'D1: event ' || OLD.seq || ' was written twice'); END`,
];

const COUNTERS = `
  SELECT b.batch_id, b.pending, b.leased, b.completed, b.failed, b.cancelled, b.total_items,
    sum(i.status = 'pending') AS p, sum(i.status = 'leased') AS l, sum(i.status = 'completed') AS c,
    sum(i.status = 'failed') AS f, sum(i.status = 'cancelled') AS x
  FROM batches b JOIN batch_items i ON i.batch_id = b.batch_id WHERE b.status <> 'loading' GROUP BY b.batch_id`;

type Bindings = readonly unknown[];

/** One for a whole process, cleaned between schedules: making it costs more than a schedule. */
export class SimulatedD1 {
  readonly #database = new DatabaseSync(":memory:");
  readonly #tables: readonly string[];
  #world: World | undefined;

  constructor() {
    for (const file of readdirSync(MIGRATIONS).toSorted())
      this.#database.exec(readFileSync(join(MIGRATIONS, file), "utf8"));
    this.#tables = this.rows<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").map(
      ({ name }) => name,
    );
    this.#database.function("sim_violate", (promise: unknown, what: unknown) => {
      this.#world?.violate(String(promise), String(what));
      return null;
    });
    for (const watch of WATCHES) this.#database.exec(watch);
  }

  /** Empties it for the next schedule. */
  open(world: World): void {
    this.#world = undefined;
    for (const table of this.#tables) prepared(this.#database, `DELETE FROM ${table}`).run();
    this.#world = world;
  }

  /** Reads beside the simulated parts, for the checks. */
  rows<T>(query: string, ...bindings: (string | number | null)[]): T[] {
    return prepared(this.#database, query).all(...bindings) as T[];
  }

  /** As one process reaches it. */
  binding(process: Process): D1Database {
    const prepare = (query: string, bindings: Bindings = []): unknown => ({
      query,
      bindings,
      bind: (...values: unknown[]) => prepare(query, values),
      run: () => this.#later(process, query, () => this.#run(query, bindings)),
      all: () => this.#later(process, query, () => this.#run(query, bindings)),
      first: async (column?: string) => {
        const { results } = await this.#later(process, query, () => this.#run(query, bindings));
        const [row] = results;
        if (row === undefined) return null;
        return column === undefined ? row : row[column];
      },
      raw: async () => {
        const { results } = await this.#later(process, query, () => this.#run(query, bindings));
        return results.map((row) => Object.values(row));
      },
    });
    const batch = (statements: readonly { query: string; bindings: Bindings }[]): Promise<unknown> =>
      this.#later(process, statements.map(({ query }) => query).join(";"), () => this.#batch(statements));
    return { prepare, batch } as unknown as D1Database;
  }

  #later<T>(process: Process, query: string, perform: () => T): Promise<T> {
    const world = this.#world;
    if (world === undefined) throw new Error("no schedule is open");
    const touchesBatches = /batch|leases/.test(query);
    return world.effect(process, "d1", () => {
      // A database of the next schedule is none of a late call's.
      if (this.#world !== world) throw new Error("late");
      const value = perform();
      if (touchesBatches && /UPDATE|INSERT|DELETE/.test(query)) this.#checkCounters(world);
      return value;
    });
  }

  /** B8 holds between any two calls, since each call is one transaction. */
  #checkCounters(world: World): void {
    for (const row of this.rows<Record<string, number>>(COUNTERS)) {
      const { pending, leased, completed, failed, cancelled } = row;
      const isEqual =
        pending === row["p"] &&
        leased === row["l"] &&
        completed === row["c"] &&
        failed === row["f"] &&
        cancelled === row["x"];
      if (!isEqual) world.violate("B8", `the counters are not the sums: ${JSON.stringify(row)}`);
    }
  }

  #batch(statements: readonly { query: string; bindings: Bindings }[]): D1Result<Record<string, unknown>>[] {
    this.#database.exec("BEGIN");
    try {
      const results = statements.map(({ query, bindings }) => this.#run(query, bindings));
      this.#database.exec("COMMIT");
      return results;
    } catch (error) {
      this.#database.exec("ROLLBACK");
      if (String(error).includes("epoch_in_order")) this.#world?.count("D1 refuses a write of an older epoch");
      throw error;
    }
  }

  #run(query: string, bindings: Bindings): D1Result<Record<string, unknown>> {
    const values = bindings.map((value) => (value === undefined ? null : value)) as string[];
    const results = prepared(this.#database, query).all(...values) as Record<string, unknown>[];
    const isRead = /^\s*SELECT/i.test(query);
    const changes = isRead ? 0 : Number(prepared(this.#database, "SELECT changes() AS n").all()[0]?.["n"] ?? 0);
    return { results, success: true, meta: { changes, rows_written: changes, rows_read: results.length } } as never;
  }
}
