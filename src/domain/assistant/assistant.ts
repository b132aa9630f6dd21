/**
 * Assistants that owners keep: a graph with defaults for its runs. Their shape, the port of the store, and its refusals.
 * Owns the bounds of the store. Does not own assistants of the deployment (a graph's default one, the operator's agents):
 * nobody stores those, and their ids come first where an id is read.
 */
import type { Result } from "../shared/result.ts";

type Json = Readonly<Record<string, unknown>>;

/** What an owner writes. PERSISTED in rows. */
export interface AssistantFields {
  readonly graphId: string;
  readonly name: string;
  readonly description: string | null;
  /** Defaults of a run's `config` and `context`. */
  readonly config: Json;
  readonly context: Json;
  readonly metadata: Json;
}

export interface StoredAssistant extends AssistantFields {
  readonly assistantId: string;
  /** 1, and a later one for each change; an earlier one again when the owner chose it. */
  readonly version: number;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** One version as it was; `createdAt` is the version's own time. */
export interface StoredAssistantVersion extends AssistantFields {
  readonly assistantId: string;
  readonly version: number;
  readonly createdAt: number;
}

/** Of one assistant; a further change lets the oldest go. All versions are read at once: 20 of the largest are 6 MB. */
export const ASSISTANT_VERSIONS_MAX = 20;

/** A search reads them all, and a create counts them. */
export const ASSISTANTS_MAX = 1_000;

/** One assistant's config, context and metadata together, as JSON: a run's row holds them beside its input. */
export const ASSISTANT_BYTES_MAX = 300_000;

/** All of an owner's together: a search holds them at once, and a Worker has 128 MB. */
export const ASSISTANTS_BYTES_MAX = 8_000_000;

export type AssistantRefusal =
  | { readonly reason: "not_found" }
  /** The assistant is there, that version of it is not, or no more. */
  | { readonly reason: "no_version" }
  | { readonly reason: "already_exists"; readonly existing: StoredAssistant }
  /** It changed since it was read. */
  | { readonly reason: "changed" }
  | { readonly reason: "too_many"; readonly limit: number }
  | { readonly reason: "too_large"; readonly limit: number };

/** Every method takes the owner: another owner's assistant of the same id is a different one (P7). */
export interface AssistantStore {
  /** Newest first. */
  list(owner: string): Promise<readonly StoredAssistant[]>;
  find(owner: string, assistantId: string): Promise<StoredAssistant | undefined>;
  create(
    owner: string,
    assistant: AssistantFields & { readonly assistantId: string },
    now: number,
  ): Promise<Result<StoredAssistant, AssistantRefusal>>;
  /** Writes `next` over what was read, as a version later than every other; refused as `changed` when it is no longer that. */
  replace(
    owner: string,
    change: { readonly read: StoredAssistant; readonly next: AssistantFields },
    now: number,
  ): Promise<Result<StoredAssistant, AssistantRefusal>>;
  /** Newest first; empty for an assistant that is not there. */
  versions(owner: string, assistantId: string): Promise<readonly StoredAssistantVersion[]>;
  /** Makes a kept version the current one again; no version is added. */
  setLatest(
    owner: string,
    choice: { readonly assistantId: string; readonly version: number },
    now: number,
  ): Promise<Result<StoredAssistant, AssistantRefusal>>;
  /** With its versions. False when there was none. */
  delete(owner: string, assistantId: string): Promise<boolean>;
}
