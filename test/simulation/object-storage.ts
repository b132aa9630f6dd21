/**
 * A Durable Object's storage over `node:sqlite`: what `DurableObjectStorage` promises and the object relies on.
 *
 * - Writes of one synchronous stretch commit together, as the platform's do; between two such groups the object can die.
 * - A replaced instance goes on with its own view (`fork`): what it writes there is lost, and what it would send
 *   afterwards never leaves.
 */
import { DatabaseSync } from "node:sqlite";
import { prepared } from "./prepared.ts";
import { type Process, ProcessGone, type World } from "./world.ts";

const WRITES = /^\s*(INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|WITH[\s\S]*\b(INSERT|UPDATE|DELETE)\b)/i;

/** Databases that have their tables and nothing in them: making one costs more than most schedules. */
const emptied: DatabaseSync[] = [];
const watched = new WeakMap<DatabaseSync, ObjectDisk>();

/** What outlives every instance of one object. */
export class ObjectDisk {
  readonly world: World;
  readonly name: string;
  database: DatabaseSync;
  alarmAt: number | null = null;
  /** Of the instance that writes here now. */
  maxRunning = 0;

  /** A new object has no tables. One whose first create died has them and nothing else, and costs a tenth. */
  constructor(world: World, name: string, { isNew }: { isNew: boolean }) {
    this.world = world;
    this.name = name;
    this.database = (isNew ? undefined : emptied.pop()) ?? new DatabaseSync(":memory:");
    if (watched.has(this.database)) watched.set(this.database, this);
  }

  /** Reads beside the object, for the checks. */
  rows<T>(query: string, ...bindings: (string | number | null)[]): T[] {
    return this.#hasTables() ? (prepared(this.database, query).all(...bindings) as T[]) : [];
  }

  wipe(): void {
    this.database = new DatabaseSync(":memory:");
  }

  /** From here on a forbidden change is told at its instant (P1, P3, P8, B7), whoever makes it. */
  watch(): void {
    if (watched.has(this.database) || !this.#hasTables()) return;
    watched.set(this.database, this);
    watchTables(this.database);
  }

  /** The schedule is over: another may have the database. */
  recycle(): void {
    if (!watched.has(this.database)) return;
    // Whatever an instance of this schedule still does has no place to do it.
    const tables = this.rows<{ name: string }>(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name <> 'schema_version'",
    );
    for (const { name } of tables) prepared(this.database, `DELETE FROM ${name}`).run();
    emptied.push(this.database);
  }

  #hasTables(): boolean {
    return (
      watched.has(this.database) ||
      this.database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'runs'").all().length > 0
    );
  }
}

const ENDED = "('success', 'error', 'timeout', 'interrupted')";

const WATCHES = [
  `CREATE TEMP TRIGGER sim_runs_end BEFORE UPDATE ON runs WHEN OLD.status IN ${ENDED} AND NEW.status <> OLD.status
   BEGIN SELECT sim_violate('P1', 'run ' || OLD.run_id || ' had ended as ' || OLD.status || ' and became ' || NEW.status); END`,
  `CREATE TEMP TRIGGER sim_outbox AFTER UPDATE ON event_outbox WHEN NEW.last_seq < OLD.last_seq
   BEGIN SELECT sim_violate('P3', 'a sequence number was taken back: ' || OLD.last_seq || ' to ' || NEW.last_seq); END`,
  `CREATE TEMP TRIGGER sim_grants AFTER INSERT ON batch_grants
   WHEN (SELECT sum(slots) FROM batch_grants) > sim_max_running()
   BEGIN SELECT sim_violate('P8', 'a batch was granted slots past max_running ' || sim_max_running()); END`,
  ...["INSERT", "UPDATE"].flatMap((write) => [
    `CREATE TEMP TRIGGER sim_live_${write} AFTER ${write} ON batch_windows
     WHEN (SELECT sum(value ->> 'want') FROM json_each(NEW.state, '$.window.offers')) > (NEW.state ->> '$.window.maxLive')
     BEGIN SELECT sim_violate('B7', 'more items are offered than max_live_items: ' || NEW.state); END`,
    `CREATE TEMP TRIGGER sim_out_${write} AFTER ${write} ON batch_windows
     WHEN (SELECT sum(value ->> '$.state.slots') FROM json_each(NEW.state, '$.window.offers') WHERE value ->> '$.state.kind' = 'out')
       > (NEW.state ->> '$.window.maxRunning')
     BEGIN SELECT sim_violate('B7', 'more slots are out than max_running_items: ' || NEW.state); END`,
  ]),
];

function watchTables(database: DatabaseSync): void {
  database.function("sim_violate", (promise: unknown, what: unknown) => {
    watched.get(database)?.world.violate(String(promise), String(what));
    return null;
  });
  database.function("sim_max_running", () => watched.get(database)?.maxRunning ?? 0);
  for (const watch of WATCHES) database.exec(watch);
}

/** One instance's handle on its object's disk. */
export class SimulatedStorage {
  readonly #disk: ObjectDisk;
  readonly #process: Process;
  #database: DatabaseSync;
  #isForked = false;
  #isGroupOpen = false;
  /** Groups that still commit; the instance dies before the next. */
  groupsLeft = Infinity;
  readonly sql: SqlStorage;

  constructor(disk: ObjectDisk, process: Process) {
    this.#disk = disk;
    this.#process = process;
    this.#database = disk.database;
    this.sql = {
      exec: (query: string, ...bindings: unknown[]) => this.#exec(query, bindings),
    } as unknown as SqlStorage;
  }

  /** From here on this instance sees what it saw, and nothing that it writes is kept. */
  fork(): void {
    const copy = new DatabaseSync(":memory:");
    copy.deserialize(this.#database.serialize());
    copy.function("sim_violate", () => null);
    this.#database = copy;
    this.#isForked = true;
  }

  transactionSync<T>(closure: () => T): T {
    this.#touch();
    if (this.#database.isTransaction) return closure();
    this.#database.exec("BEGIN");
    try {
      const value = closure();
      this.#database.exec("COMMIT");
      return value;
    } catch (error) {
      this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  async getAlarm(): Promise<number | null> {
    this.#touch();
    return this.#disk.alarmAt;
  }

  async setAlarm(at: number | Date): Promise<void> {
    this.#beforeWrite();
    if (!this.#isForked) this.#disk.alarmAt = Number(at);
  }

  async deleteAlarm(): Promise<void> {
    this.#beforeWrite();
    if (!this.#isForked) this.#disk.alarmAt = null;
  }

  async deleteAll(): Promise<void> {
    this.#beforeWrite();
    if (this.#isForked) return;
    this.#disk.wipe();
    this.#database = this.#disk.database;
  }

  async sync(): Promise<void> {
    this.#touch();
  }

  #exec(query: string, bindings: readonly unknown[]): Cursor {
    this.#touch();
    if (isWrite(query)) this.#beforeWrite();
    return new Cursor(prepared(this.#database, query).all(...(bindings.map(toSqlite) as string[])));
  }

  #touch(): void {
    if (!this.#process.isAlive) throw new ProcessGone("the object was reset");
  }

  #beforeWrite(): void {
    this.#touch();
    if (this.#isForked) this.#process.isGateBroken = true;
    if (this.#isGroupOpen) return;
    if (this.groupsLeft <= 0) {
      this.#process.isAlive = false;
      this.#disk.world.died(this.#process, "dies before a commit");
      throw new ProcessGone("the object died");
    }
    this.groupsLeft -= 1;
    this.#isGroupOpen = true;
    queueMicrotask(() => {
      this.#isGroupOpen = false;
    });
  }
}

const writes = new Map<string, boolean>();

function isWrite(query: string): boolean {
  let known = writes.get(query);
  if (known === undefined) writes.set(query, (known = WRITES.test(query)));
  return known;
}

function toSqlite(value: unknown): unknown {
  if (value === undefined) return null;
  if (typeof value === "boolean") return value ? 1 : 0;
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value;
}

/** As workerd gives rows: bytes are an `ArrayBuffer` of their own. */
function fromSqlite(row: Row): void {
  for (const column in row) {
    const value = row[column];
    if (value instanceof Uint8Array)
      row[column] = value.buffer.slice(value.byteOffset, value.byteOffset + value.length);
  }
}

type Row = Record<string, unknown>;

class Cursor {
  readonly #rows: Row[];
  readonly rowsWritten = 0;

  constructor(rows: Row[]) {
    this.#rows = rows;
    for (const row of rows) fromSqlite(row);
  }

  get rowsRead(): number {
    return this.#rows.length;
  }

  toArray(): Row[] {
    return this.#rows;
  }

  one(): Row {
    const [row] = this.#rows;
    if (row === undefined || this.#rows.length > 1) throw new Error(`expected one row, got ${this.#rows.length}`);
    return row;
  }

  [Symbol.iterator](): Iterator<Row> {
    return this.#rows[Symbol.iterator]();
  }
}
