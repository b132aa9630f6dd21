/**
 * The mechanism of the object's schema: numbered, forward-only steps, applied once each and recorded in the table
 * `schema_version` (SQLite's `PRAGMA user_version` is not available in a Durable Object).
 *
 * Owns: applying steps, telling what is applied. Does not own the steps (`object-schema.ts` lists them).
 * Invariants: a call applies all missing steps in one transaction or none; an applied step never changes place or name;
 * storage that is ahead of the code (a roll-back meets a newer schema) is left alone.
 */
import { invariant } from "../../domain/shared/assert.ts";

/** One rung. `id` is permanent once released; later changes to a table are a new step, never an edit. */
export interface SchemaStep {
  readonly id: string;
  readonly statements: readonly string[];
}

/** True once any step was applied. Reads only: an object asked about an unknown thread stays empty. */
export function hasSchemaLadder(storage: DurableObjectStorage): boolean {
  const found = storage.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'");
  return found.toArray().length > 0;
}

/** The ids of the applied steps, in order. Reads only. */
export function appliedSteps(storage: DurableObjectStorage): readonly string[] {
  if (!hasSchemaLadder(storage)) return [];
  const rows = storage.sql.exec<{ step_id: string }>("SELECT step_id FROM schema_version ORDER BY step");
  return rows.toArray().map((row) => row.step_id);
}

/**
 * Applies the steps that storage lacks, all in one transaction. May be called inside the caller's own transaction.
 * Throws `InvariantError` when an applied step is not the one the code has at that place.
 */
export function climbSchemaLadder(storage: DurableObjectStorage, steps: readonly SchemaStep[]): void {
  const applied = appliedSteps(storage);
  for (const [place, id] of applied.entries()) {
    const step = steps[place];
    invariant(
      step === undefined || step.id === id,
      `schema step ${place + 1} is ${id} in storage, ${step?.id} in code`,
    );
  }
  if (applied.length >= steps.length) return;
  storage.transactionSync(() => {
    if (applied.length === 0) {
      storage.sql.exec("CREATE TABLE schema_version (step INTEGER PRIMARY KEY, step_id TEXT NOT NULL)");
    }
    for (let place = applied.length; place < steps.length; place += 1) applyStep(storage, place + 1, steps[place]!);
  });
}

function applyStep(storage: DurableObjectStorage, step: number, { id, statements }: SchemaStep): void {
  for (const statement of statements) storage.sql.exec(statement);
  storage.sql.exec("INSERT INTO schema_version (step, step_id) VALUES (?, ?)", step, id);
}
