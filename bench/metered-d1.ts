/**
 * What D1 bills for statements, read from each result's `meta`. Owns counting only: statements pass unchanged.
 * `raw` and `exec` answer without `meta`, so they are refused rather than missed.
 */
export interface D1Totals {
  readonly statements: number;
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

const ZERO: D1Totals = { statements: 0, rowsRead: 0, rowsWritten: 0 };

/** Totals by kind of statement, as in `insert run_events`. Several metered databases may count into one. */
export class D1Counts {
  readonly #byKind = new Map<string, D1Totals>();

  count(sql: string, meta: D1Meta): void {
    const kind = kindOf(sql);
    const { statements, rowsRead, rowsWritten } = this.#byKind.get(kind) ?? ZERO;
    this.#byKind.set(kind, {
      statements: statements + 1,
      rowsRead: rowsRead + meta.rows_read,
      rowsWritten: rowsWritten + meta.rows_written,
    });
  }

  byKind(): Record<string, D1Totals> {
    return Object.fromEntries(this.#byKind);
  }

  totals(): D1Totals {
    return [...this.#byKind.values()].reduce(
      (sum, kind) => ({
        statements: sum.statements + kind.statements,
        rowsRead: sum.rowsRead + kind.rowsRead,
        rowsWritten: sum.rowsWritten + kind.rowsWritten,
      }),
      ZERO,
    );
  }

  reset(): void {
    this.#byKind.clear();
  }
}

interface Prepared {
  readonly sql: string;
  readonly inner: D1PreparedStatement;
}

const PREPARED = new WeakMap<D1PreparedStatement, Prepared>();

export class MeteredD1 {
  readonly database: D1Database;
  readonly #counts: D1Counts;

  constructor(db: D1Database, counts: D1Counts = new D1Counts()) {
    this.#counts = counts;
    this.database = {
      prepare: (sql: string) => this.#metered({ sql, inner: db.prepare(sql) }),
      batch: async (statements: D1PreparedStatement[]) => {
        const prepared = statements.map(preparedOf);
        const results = await db.batch(prepared.map(({ inner }) => inner));
        results.forEach((result, index) => this.#counts.count(prepared[index]?.sql ?? "", result.meta));
        return results;
      },
    } as unknown as D1Database;
  }

  totals(): D1Totals {
    return this.#counts.totals();
  }

  #metered(prepared: Prepared): D1PreparedStatement {
    const { sql, inner } = prepared;
    const counted = async (answer: Promise<D1Result>): Promise<D1Result> => {
      const result = await answer;
      this.#counts.count(sql, result.meta);
      return result;
    };
    const statement = {
      bind: (...values: unknown[]) => this.#metered({ sql, inner: inner.bind(...values) }),
      all: () => counted(inner.all()),
      run: () => counted(inner.run()),
      first: async () => (await counted(inner.all())).results[0] ?? null,
    } as unknown as D1PreparedStatement;
    PREPARED.set(statement, prepared);
    return statement;
  }
}

function preparedOf(statement: D1PreparedStatement): Prepared {
  const prepared = PREPARED.get(statement);
  if (prepared === undefined) throw new Error("a statement of another database reached the meter");
  return prepared;
}

/** The verb and the table it changes or reads: enough to say where a row went. */
function kindOf(sql: string): string {
  const text = sql.trim();
  const found =
    /^(insert)\s+(?:or\s+\w+\s+)?into\s+"?(\w+)/i.exec(text) ??
    /^(update)\s+"?(\w+)/i.exec(text) ??
    /^(delete)\s+from\s+"?(\w+)/i.exec(text) ??
    /^(?:with|select)[^]*?\b(insert\s+into|update|delete\s+from|from)\s+"?(\w+)/i.exec(text);
  if (found === null) return "other";
  const [, verb = "", table = ""] = found;
  const word = verb.toLowerCase().split(/\s/)[0] ?? "";
  return `${word === "from" ? "select" : word} ${table}`;
}
