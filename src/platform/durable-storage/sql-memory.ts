/**
 * Small rows that were read, kept until their table is written or the object's next event begins. One run asks some
 * fifty times which run is the newest, where the head is and what the thread's row says; a statement costs far more than
 * the answer. Owns when an answer may be given again, never what is asked; stores opt in a read through `rowsOf`.
 *
 * - A write forgets what was read of its table, and nothing of that table is kept again before the next microtask: by
 *   then a transaction that wrote it has committed or was rolled back, as those of a Durable Object are synchronous.
 * - What has to touch storage (the look at the epoch before a side effect, P3) does not come here.
 * - Rows are shared between callers, who never change them. At most `ANSWERS_KEPT_MAX` answers of `ANSWER_CHARS_MAX` are kept.
 */
import type { SqlRow } from "./metered-sql.ts";

const ANSWERS_KEPT_MAX = 64;
/** Of all text in an answer; a larger one is read anew. */
const ANSWER_CHARS_MAX = 16_384;

const READ = /^\s*(?:SELECT|WITH)\b/i;
const WRITTEN_TABLE = /^\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|REPLACE\s+INTO|UPDATE|DELETE\s+FROM)\s+(\w+)/i;

interface Answer {
  readonly query: string;
  readonly rows: readonly SqlRow[];
}

export class SqlMemory {
  readonly #answers = new Map<string, Answer>();
  #justWritten: Set<string> | undefined;

  /** The rows of a read, from storage only when they are not known. */
  rows(query: string, bindings: readonly unknown[], read: () => readonly SqlRow[]): readonly SqlRow[] {
    const key = JSON.stringify([query, ...bindings]);
    const known = this.#answers.get(key);
    if (known !== undefined) return known.rows;
    const rows = read();
    if (this.#mayKeep(query, rows)) {
      if (this.#answers.size >= ANSWERS_KEPT_MAX) this.forget();
      this.#answers.set(key, { query, rows });
    }
    return rows;
  }

  /** Called before every statement that does not go through `rows`. */
  before(query: string): void {
    if (READ.test(query)) return;
    const table = WRITTEN_TABLE.exec(query)?.[1];
    for (const [key, answer] of this.#answers) {
      if (table === undefined || answer.query.includes(table)) this.#answers.delete(key);
    }
    this.#close(table ?? "");
  }

  /** What others may have changed: at the start of an event, and when the storage is emptied. */
  forget(): void {
    this.#answers.clear();
  }

  /** `""` is part of every query: a statement that could not be read closes every table. */
  #close(table: string): void {
    if (this.#justWritten === undefined) {
      queueMicrotask(() => {
        this.#justWritten = undefined;
      });
    }
    (this.#justWritten ??= new Set()).add(table);
  }

  #mayKeep(query: string, rows: readonly SqlRow[]): boolean {
    for (const table of this.#justWritten ?? []) if (query.includes(table)) return false;
    let chars = 0;
    for (const row of rows) {
      for (const value of Object.values(row)) {
        if (value instanceof ArrayBuffer) return false;
        if (typeof value === "string") chars += value.length;
      }
    }
    return chars <= ANSWER_CHARS_MAX;
  }
}
