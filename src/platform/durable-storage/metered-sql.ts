/**
 * Rows billed, by purpose. `SqlExecutor` is the part of `SqlStorage` that the object's stores use; `MeteredSql` counts
 * through it, so that benches and tests print where each row goes.
 *
 * Owns counting only: statements pass unchanged, and an answer that is remembered is none. `rowsRead` of a cursor grows while it is iterated, so recent cursors
 * are read again at `totals()`; older ones are taken as finished.
 */

import type { SqlMemory } from "./sql-memory.ts";

export type SqlRow = Record<string, SqlStorageValue>;

/** Structurally part of `SqlStorage`: production code is given either that or a metered label. */
export interface SqlExecutor {
  exec<T extends SqlRow>(query: string, ...bindings: unknown[]): SqlStorageCursor<T>;
  /** All rows of a small read, which may be known from an earlier one (`sql-memory.ts`). */
  rows?(query: string, ...bindings: unknown[]): readonly SqlRow[];
}

/** The same for an executor that remembers nothing. Callers never change what they get. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as `exec`: the query's author knows its rows
export function rowsOf<T extends SqlRow>(sql: SqlExecutor, query: string, ...bindings: unknown[]): readonly T[] {
  const rows = sql.rows?.(query, ...bindings) ?? sql.exec(query, ...bindings).toArray();
  return rows as readonly T[];
}

export interface SqlTotals {
  readonly statements: number;
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

/** Cursors kept open for late reads; no caller here holds more than a few at once. */
const CURSORS_KEPT_MAX = 64;

class LabelMeter {
  #statements = 0;
  #rowsRead = 0;
  #rowsWritten = 0;
  #recent: SqlStorageCursor<SqlRow>[] = [];

  bill(rowsWritten: number): void {
    this.#rowsWritten += rowsWritten;
  }

  count(cursor: SqlStorageCursor<SqlRow>): void {
    this.#statements += 1;
    this.#recent.push(cursor);
    if (this.#recent.length <= CURSORS_KEPT_MAX) return;
    const finished = this.#recent.shift()!;
    this.#rowsRead += finished.rowsRead;
    this.#rowsWritten += finished.rowsWritten;
  }

  totals(): SqlTotals {
    let rowsRead = this.#rowsRead;
    let rowsWritten = this.#rowsWritten;
    for (const cursor of this.#recent) {
      rowsRead += cursor.rowsRead;
      rowsWritten += cursor.rowsWritten;
    }
    return { statements: this.#statements, rowsRead, rowsWritten };
  }
}

export class MeteredSql {
  readonly #sql: SqlExecutor;
  readonly #memory: SqlMemory | undefined;
  readonly #meters = new Map<string, LabelMeter>();

  /** With a memory every statement on the storage must come through here, or it keeps what is no longer so. */
  constructor(sql: SqlExecutor, memory?: SqlMemory) {
    this.#sql = sql;
    this.#memory = memory;
  }

  /** An executor whose rows count under `label`. Two calls with one label share the count. */
  labelled(label: string): SqlExecutor {
    const memory = this.#memory;
    const exec = <T extends SqlRow>(query: string, ...bindings: unknown[]) => {
      memory?.before(query);
      const cursor = this.#sql.exec<T>(query, ...bindings);
      this.#meterOf(label).count(cursor);
      return cursor;
    };
    if (memory === undefined) return { exec };
    const rows = (query: string, ...bindings: unknown[]) =>
      memory.rows(query, bindings, () => exec(query, ...bindings).toArray());
    return { exec, rows };
  }

  /** Rows billed without a cursor to count them: `setAlarm` is one. */
  bill(label: string, rowsWritten: number): void {
    this.#meterOf(label).bill(rowsWritten);
  }

  /** Counts since the start or the last `reset`, by label. */
  byLabel(): Record<string, SqlTotals> {
    return Object.fromEntries([...this.#meters].map(([label, meter]) => [label, meter.totals()]));
  }

  /** The sum over all labels. */
  totals(): SqlTotals {
    const sum = { statements: 0, rowsRead: 0, rowsWritten: 0 };
    for (const totals of Object.values(this.byLabel())) {
      sum.statements += totals.statements;
      sum.rowsRead += totals.rowsRead;
      sum.rowsWritten += totals.rowsWritten;
    }
    return sum;
  }

  reset(): void {
    this.#meters.clear();
  }

  #meterOf(label: string): LabelMeter {
    const known = this.#meters.get(label);
    if (known !== undefined) return known;
    const meter = new LabelMeter();
    this.#meters.set(label, meter);
    return meter;
  }
}
