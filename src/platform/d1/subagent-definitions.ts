/**
 * Managed subagent definitions in D1. Deployment-wide: every method is `system…`, and who may call it is decided at the
 * edge by role. Invariants: an update changes the version it names or nothing; the bounds of the store hold in the very
 * statement that would break them, so that two writers at once cannot pass them together.
 */
import { asc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import {
  MANAGED_SUBAGENTS_BYTES_MAX,
  MANAGED_SUBAGENTS_MAX,
  type ManagedChange,
  type ManagedDefinition,
  type ManagedRefusal,
  type ManagedSubagent,
  type ManagedSubagentStore,
  type StoredSubagent,
} from "../../domain/delegation/managed-subagent.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { subagentDefinitions } from "./schema/subagents.ts";

/** Version of the `definition` document. PERSISTED. */
const DEFINITION_VERSION = 1;

interface Row {
  readonly name: string;
  readonly version: number;
  readonly enabled: number;
  readonly definition: string;
  readonly created_at: number;
  readonly updated_at: number;
  readonly updated_by: string;
}

/** At most `MANAGED_SUBAGENTS_MAX` rows are summed. */
const BYTES_OF_OTHERS =
  "(SELECT coalesce(sum(octet_length(definition)), 0) FROM subagent_definitions WHERE name <> ?1)";

const CREATE = `
  INSERT INTO subagent_definitions (name, version, enabled, definition, created_at, updated_at, updated_by)
  SELECT ?1, 1, ?2, ?3, ?4, ?4, ?5
  WHERE (SELECT count(*) FROM subagent_definitions) < ?6 AND ${BYTES_OF_OTHERS} + octet_length(?3) <= ?7
  ON CONFLICT (name) DO NOTHING
  RETURNING *`;

const UPDATE = `
  UPDATE subagent_definitions SET version = version + 1, definition = ?3, updated_at = ?4, updated_by = ?5
  WHERE name = ?1 AND version = ?2 AND ${BYTES_OF_OTHERS} + octet_length(?3) <= ?6
  RETURNING *`;

const SET_ENABLED = `
  UPDATE subagent_definitions SET version = version + 1, enabled = ?2, updated_at = ?3, updated_by = ?4
  WHERE name = ?1 AND enabled <> ?2
  RETURNING *`;

export class D1SubagentDefinitions implements ManagedSubagentStore {
  readonly #db: D1Database;
  readonly #reads: ReturnType<typeof drizzle>;

  constructor(db: D1Database) {
    this.#db = db;
    this.#reads = drizzle(db);
  }

  async systemList(): Promise<readonly StoredSubagent[]> {
    const rows = await this.#reads
      .select()
      .from(subagentDefinitions)
      .orderBy(asc(subagentDefinitions.name))
      .limit(MANAGED_SUBAGENTS_MAX);
    return rows.map(toStored);
  }

  async systemListEnabled(): Promise<readonly ManagedSubagent[]> {
    const { name, version, definition } = subagentDefinitions;
    const rows = await this.#reads
      .select({ name, version, definition })
      .from(subagentDefinitions)
      .where(eq(subagentDefinitions.enabled, 1))
      .orderBy(asc(subagentDefinitions.name))
      .limit(MANAGED_SUBAGENTS_MAX);
    return rows.map((row) => ({ ...row, definition: toDefinition(row.definition) }));
  }

  async systemFind(name: string): Promise<StoredSubagent | undefined> {
    const [row] = await this.#reads.select().from(subagentDefinitions).where(eq(subagentDefinitions.name, name));
    return row === undefined ? undefined : toStored(row);
  }

  async systemCreate(
    { name, enabled, definition }: { name: string; enabled: boolean; definition: ManagedDefinition },
    { by, now }: ManagedChange,
  ): Promise<Result<StoredSubagent, ManagedRefusal>> {
    const bounds = [MANAGED_SUBAGENTS_MAX, MANAGED_SUBAGENTS_BYTES_MAX];
    const created = await this.#change(CREATE, name, enabled ? 1 : 0, toDocument(definition), now, by, ...bounds);
    if (created !== undefined) return ok(created);
    const all = await this.systemList();
    if (all.some((each) => each.name === name)) return err({ reason: "already_exists" });
    return all.length >= MANAGED_SUBAGENTS_MAX
      ? err({ reason: "too_many", limit: MANAGED_SUBAGENTS_MAX })
      : err(TOO_LARGE);
  }

  async systemUpdate(
    { name, version, definition }: ManagedSubagent,
    { by, now }: ManagedChange,
  ): Promise<Result<StoredSubagent, ManagedRefusal>> {
    const document = toDocument(definition);
    const updated = await this.#change(UPDATE, name, version, document, now, by, MANAGED_SUBAGENTS_BYTES_MAX);
    if (updated !== undefined) return ok(updated);
    const found = await this.systemFind(name);
    if (found === undefined) return err({ reason: "not_found" });
    return found.version === version ? err(TOO_LARGE) : err({ reason: "version_conflict", version: found.version });
  }

  async systemSetEnabled(
    name: string,
    enabled: boolean,
    { by, now }: ManagedChange,
  ): Promise<Result<StoredSubagent, ManagedRefusal>> {
    const stored = (await this.#change(SET_ENABLED, name, enabled ? 1 : 0, now, by)) ?? (await this.systemFind(name));
    return stored === undefined ? err({ reason: "not_found" }) : ok(stored);
  }

  async systemDelete(name: string): Promise<boolean> {
    const { meta } = await this.#db.prepare("DELETE FROM subagent_definitions WHERE name = ?1").bind(name).run();
    return meta.changes > 0;
  }

  async #change(statement: string, ...values: (string | number)[]): Promise<StoredSubagent | undefined> {
    const { results } = await this.#db
      .prepare(statement)
      .bind(...values)
      .all<Row>();
    const [row] = results;
    if (row === undefined) return undefined;
    return toStored({ ...row, createdAt: row.created_at, updatedAt: row.updated_at, updatedBy: row.updated_by });
  }
}

const TOO_LARGE: ManagedRefusal = { reason: "too_large", limit: MANAGED_SUBAGENTS_BYTES_MAX };

function toDocument(definition: ManagedDefinition): string {
  return JSON.stringify({ v: DEFINITION_VERSION, ...definition });
}

function toDefinition(document: string): ManagedDefinition {
  const { v: _version, ...definition } = JSON.parse(document) as ManagedDefinition & { v: number };
  return definition;
}

function toStored(row: typeof subagentDefinitions.$inferSelect): StoredSubagent {
  const { name, version, enabled, definition, createdAt, updatedAt, updatedBy } = row;
  const flags = { enabled: enabled === 1, createdAt, updatedAt, updatedBy };
  return { name, version, definition: toDefinition(definition), ...flags };
}
