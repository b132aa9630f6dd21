/**
 * Owners' assistants in D1. Invariants: every statement names the owner; a change is made to the version that was read or
 * to nothing, so two at once never lose one another's; the bounds hold in the very statement that would break them; the
 * transaction that writes the current version also puts it among the versions.
 */
import { and, desc, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/d1";
import {
  ASSISTANT_BYTES_MAX,
  ASSISTANT_VERSIONS_MAX,
  ASSISTANTS_BYTES_MAX,
  ASSISTANTS_MAX,
  type AssistantFields,
  type AssistantRefusal,
  type AssistantStore,
  type StoredAssistant,
  type StoredAssistantVersion,
} from "../../domain/assistant/assistant.ts";
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { assistants, assistantVersions } from "./schema/assistants.ts";

interface Row {
  readonly assistant_id: string;
  readonly version: number;
  readonly graph_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly metadata: string;
  readonly context: string;
  readonly config: string;
}

/** `octet_length` reads a cell's header, not the cell. At most `ASSISTANTS_MAX` rows are summed. */
const BYTES_OF_OTHERS = `(
  SELECT coalesce(sum(octet_length(metadata) + octet_length(context) + octet_length(config)), 0)
  FROM assistants WHERE owner = ?1 AND assistant_id <> ?2)`;

const CREATE = `
  INSERT INTO assistants (owner, assistant_id, version, graph_id, name, description, created_at, updated_at, metadata, context, config)
  SELECT ?1, ?2, 1, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9
  WHERE (SELECT count(*) FROM assistants WHERE owner = ?1) < ?10 AND ${BYTES_OF_OTHERS} + ?11 <= ?12
  ON CONFLICT (owner, assistant_id) DO NOTHING
  RETURNING *`;

/**
 * The metadata too, because the new one was made from it: deleted and made again, an assistant is at version 1 again.
 * Later than every version kept: the current one may be an earlier one that was chosen again.
 */
const REPLACE = `
  UPDATE assistants SET version = 1 + max(version, coalesce(
      (SELECT max(kept.version) FROM assistant_versions kept WHERE kept.owner = ?1 AND kept.assistant_id = ?2), 0)), graph_id = ?3, name = ?4, description = ?5, updated_at = max(?6, updated_at),
    metadata = ?7, context = ?8, config = ?9
  WHERE owner = ?1 AND assistant_id = ?2 AND version = ?13 AND created_at = ?14 AND metadata = ?10
    AND ${BYTES_OF_OTHERS} + ?11 <= ?12
  RETURNING *`;

/**
 * The current row among the versions. Also before a change: a Worker from before versions may have written the row, and
 * what is about to be replaced must not be lost. Writes nothing when it is there.
 */
const KEEP_CURRENT = `
  INSERT INTO assistant_versions (owner, assistant_id, version, graph_id, name, description, created_at, metadata, context, config)
  SELECT owner, assistant_id, version, graph_id, name, description, updated_at, metadata, context, config
  FROM assistants WHERE owner = ?1 AND assistant_id = ?2
  ON CONFLICT (owner, assistant_id, version) DO NOTHING`;

const DROP_OLD_VERSIONS = `
  DELETE FROM assistant_versions WHERE owner = ?1 AND assistant_id = ?2 AND version <= (
    SELECT version FROM assistant_versions WHERE owner = ?1 AND assistant_id = ?2
    ORDER BY version DESC LIMIT 1 OFFSET ?3)`;

/** Of an assistant that is gone: a Worker from before versions deleted the row alone. */
const DROP_STRAY_VERSIONS = `
  DELETE FROM assistant_versions WHERE owner = ?1 AND assistant_id = ?2
    AND NOT EXISTS (SELECT 1 FROM assistants WHERE owner = ?1 AND assistant_id = ?2)`;

/** The bound on all together holds here too: an earlier version may be larger than the current one. */
const SET_LATEST = `
  UPDATE assistants SET (version, graph_id, name, description, metadata, context, config) =
      (SELECT version, graph_id, name, description, metadata, context, config FROM assistant_versions
       WHERE owner = ?1 AND assistant_id = ?2 AND version = ?3), updated_at = max(?4, updated_at)
  WHERE owner = ?1 AND assistant_id = ?2 AND EXISTS (
    SELECT 1 FROM assistant_versions chosen WHERE chosen.owner = ?1 AND chosen.assistant_id = ?2 AND chosen.version = ?3
      AND ${BYTES_OF_OTHERS} + octet_length(chosen.metadata) + octet_length(chosen.context) + octet_length(chosen.config) <= ?5)
  RETURNING *`;

export class D1Assistants implements AssistantStore {
  readonly #db: D1Database;
  readonly #reads: ReturnType<typeof drizzle>;

  constructor(db: D1Database) {
    this.#db = db;
    this.#reads = drizzle(db);
  }

  async list(owner: string): Promise<readonly StoredAssistant[]> {
    const rows = await this.#reads
      .select()
      .from(assistants)
      .where(eq(assistants.owner, owner))
      .orderBy(desc(assistants.createdAt), desc(assistants.assistantId))
      .limit(ASSISTANTS_MAX);
    return rows.map(toStored);
  }

  async find(owner: string, assistantId: string): Promise<StoredAssistant | undefined> {
    const [row] = await this.#reads
      .select()
      .from(assistants)
      .where(and(eq(assistants.owner, owner), eq(assistants.assistantId, assistantId)));
    return row === undefined ? undefined : toStored(row);
  }

  async create(
    owner: string,
    { assistantId, ...fields }: AssistantFields & { readonly assistantId: string },
    now: number,
  ): Promise<Result<StoredAssistant, AssistantRefusal>> {
    const documents = toDocuments(fields);
    if (documents.bytes > ASSISTANT_BYTES_MAX) return err({ reason: "too_large", limit: ASSISTANT_BYTES_MAX });
    const { graphId, name, description } = fields;
    const { metadata, context, config, bytes } = documents;
    const values = [owner, assistantId, graphId, name, description, now, metadata, context, config];
    const key = { owner, assistantId };
    const created = await this.#change(CREATE, [...values, ASSISTANTS_MAX, bytes, ASSISTANTS_BYTES_MAX], {
      before: [this.#keyed(DROP_STRAY_VERSIONS, key)],
      after: [this.#keyed(KEEP_CURRENT, key)],
    });
    if (created !== undefined) return ok(created);
    const existing = await this.find(owner, assistantId);
    if (existing !== undefined) return err({ reason: "already_exists", existing });
    const count = await this.#reads.$count(assistants, eq(assistants.owner, owner));
    return count >= ASSISTANTS_MAX ? err({ reason: "too_many", limit: ASSISTANTS_MAX }) : err(ALL_TOO_LARGE);
  }

  async replace(
    owner: string,
    { read, next }: { readonly read: StoredAssistant; readonly next: AssistantFields },
    now: number,
  ): Promise<Result<StoredAssistant, AssistantRefusal>> {
    const documents = toDocuments(next);
    if (documents.bytes > ASSISTANT_BYTES_MAX) return err({ reason: "too_large", limit: ASSISTANT_BYTES_MAX });
    const { graphId, name, description } = next;
    const { metadata, context, config, bytes } = documents;
    const values = [owner, read.assistantId, graphId, name, description, now, metadata, context, config];
    const guard = [JSON.stringify(read.metadata), bytes, ASSISTANTS_BYTES_MAX, read.version, read.createdAt];
    const key = { owner, assistantId: read.assistantId };
    const replaced = await this.#change(REPLACE, [...values, ...guard], {
      before: [this.#keyed(KEEP_CURRENT, key)],
      after: [this.#keyed(KEEP_CURRENT, key), this.#keyed(DROP_OLD_VERSIONS, key, [ASSISTANT_VERSIONS_MAX])],
    });
    if (replaced !== undefined) return ok(replaced);
    const found = await this.find(owner, read.assistantId);
    if (found === undefined) return err({ reason: "not_found" });
    return isSame(found, read) ? err(ALL_TOO_LARGE) : err({ reason: "changed" });
  }

  async versions(owner: string, assistantId: string): Promise<readonly StoredAssistantVersion[]> {
    const rows = await this.#reads
      .select()
      .from(assistantVersions)
      .where(and(eq(assistantVersions.owner, owner), eq(assistantVersions.assistantId, assistantId)))
      .orderBy(desc(assistantVersions.version))
      .limit(ASSISTANT_VERSIONS_MAX);
    return rows.map(toVersion);
  }

  async setLatest(
    owner: string,
    { assistantId, version }: { readonly assistantId: string; readonly version: number },
    now: number,
  ): Promise<Result<StoredAssistant, AssistantRefusal>> {
    const key = { owner, assistantId };
    const values = [owner, assistantId, version, now, ASSISTANTS_BYTES_MAX];
    const before = [this.#keyed(KEEP_CURRENT, key)];
    const chosen = await this.#change(SET_LATEST, values, { before, after: [] });
    if (chosen !== undefined) return ok(chosen);
    if ((await this.find(owner, assistantId)) === undefined) return err({ reason: "not_found" });
    const kept = await this.versions(owner, assistantId);
    return kept.some((each) => each.version === version) ? err(ALL_TOO_LARGE) : err({ reason: "no_version" });
  }

  async delete(owner: string, assistantId: string): Promise<boolean> {
    const where = "WHERE owner = ?1 AND assistant_id = ?2";
    const key = { owner, assistantId };
    const [deleted] = await this.#db.batch([
      this.#keyed(`DELETE FROM assistants ${where}`, key),
      this.#keyed(`DELETE FROM assistant_versions ${where}`, key),
    ]);
    return (deleted?.meta.changes ?? 0) > 0;
  }

  /** In one transaction with what keeps the versions in step. */
  async #change(
    statement: string,
    values: readonly (string | number | null)[],
    around: { readonly before: readonly D1PreparedStatement[]; readonly after: readonly D1PreparedStatement[] },
  ): Promise<StoredAssistant | undefined> {
    const change = this.#db.prepare(statement).bind(...values);
    const results = await this.#db.batch<Row>([...around.before, change, ...around.after]);
    const row = results[around.before.length]?.results[0];
    if (row === undefined) return undefined;
    const { assistant_id: assistantId, graph_id: graphId, created_at: createdAt, updated_at: updatedAt } = row;
    return toStored({ ...row, assistantId, graphId, createdAt, updatedAt });
  }

  #keyed(statement: string, { owner, assistantId }: AssistantKey, more: readonly number[] = []): D1PreparedStatement {
    return this.#db.prepare(statement).bind(owner, assistantId, ...more);
  }
}

interface AssistantKey {
  readonly owner: string;
  readonly assistantId: string;
}

const ALL_TOO_LARGE: AssistantRefusal = { reason: "too_large", limit: ASSISTANTS_BYTES_MAX };

function isSame(found: StoredAssistant, read: StoredAssistant): boolean {
  return (
    found.version === read.version &&
    found.createdAt === read.createdAt &&
    JSON.stringify(found.metadata) === JSON.stringify(read.metadata)
  );
}

function toDocuments({ metadata, context, config }: Pick<AssistantFields, "metadata" | "context" | "config">) {
  const documents = [metadata, context, config].map((each) => JSON.stringify(each));
  const [metadataText = "", contextText = "", configText = ""] = documents;
  const bytes = documents.reduce((sum, each) => sum + new TextEncoder().encode(each).length, 0);
  return { metadata: metadataText, context: contextText, config: configText, bytes };
}

function toStored(row: Omit<typeof assistants.$inferSelect, "owner">): StoredAssistant {
  const { assistantId, version, createdAt, updatedAt } = row;
  return { assistantId, version, createdAt, updatedAt, ...toFields(row) };
}

function toVersion(row: typeof assistantVersions.$inferSelect): StoredAssistantVersion {
  const { assistantId, version, createdAt } = row;
  return { assistantId, version, createdAt, ...toFields(row) };
}

function toFields(row: Omit<typeof assistants.$inferSelect, "owner" | "updatedAt">): AssistantFields {
  const { graphId, name, description } = row;
  return {
    graphId,
    name,
    description,
    config: JSON.parse(row.config) as Record<string, unknown>,
    context: JSON.parse(row.context) as Record<string, unknown>,
    metadata: JSON.parse(row.metadata) as Record<string, unknown>,
  };
}
