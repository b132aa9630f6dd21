/**
 * Subagents that administrators keep in the deployment's store: their shape, the port of the store, and its refusals.
 * Definitions belong to the deployment, not to an owner (R5), so the methods are named `system…`.
 * Owns the bounds of the store. Does not own precedence: a name taken by a built-in or by configuration is decided where
 * it is read, never stored.
 */
import type { Result } from "../shared/result.ts";
import type { AcpEndpoint } from "./acp-endpoint.ts";

/** The administrator's part of a subagent. PERSISTED in definition rows and in run rows: fields are only added. */
export interface ManagedDefinition {
  readonly description: string;
  readonly systemPrompt: string;
  /** Exact tool names; null inherits all of the parent's. */
  readonly tools: readonly string[] | null;
  readonly disallowedTools: readonly string[];
  /** A name in the model catalogue, or "inherit". */
  readonly model: string;
  /** Model turns. */
  readonly maxTurns: number;
  readonly timeoutSeconds: number;
  /** The provider of the seam that runs it. */
  readonly provider: string;
  readonly maxDepth: number;
  /** Where the agent of provider `acp` is; it has its own prompt, tools, model and bounds, so those above say nothing. */
  readonly acp?: AcpEndpoint;
}

/** What a run keeps of one, as it was when the run was accepted. PERSISTED. */
export interface ManagedSubagent {
  readonly name: string;
  /** 1, and one more for each change, switching on and off included. */
  readonly version: number;
  readonly definition: ManagedDefinition;
}

export interface StoredSubagent extends ManagedSubagent {
  readonly enabled: boolean;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The owner of the key that changed it last. */
  readonly updatedBy: string;
}

/** A lead can choose among so many at best; every run reads the enabled ones. */
export const MANAGED_SUBAGENTS_MAX = 200;

/** All definitions together, as stored: a run's row holds them beside its command, and the row must stay under 2 MB. */
export const MANAGED_SUBAGENTS_BYTES_MAX = 300_000;

export type ManagedRefusal =
  | { readonly reason: "not_found" }
  | { readonly reason: "already_exists" }
  | { readonly reason: "version_conflict"; readonly version: number }
  | { readonly reason: "too_many"; readonly limit: number }
  | { readonly reason: "too_large"; readonly limit: number };

/** Who changes something, and when. */
export interface ManagedChange {
  readonly by: string;
  readonly now: number;
}

/** Each method is one statement that changes a definition, or none. */
export interface ManagedSubagentStore {
  /** By name. */
  systemList(): Promise<readonly StoredSubagent[]>;
  /** The enabled ones by name: what a run is accepted with. */
  systemListEnabled(): Promise<readonly ManagedSubagent[]>;
  systemFind(name: string): Promise<StoredSubagent | undefined>;
  systemCreate(
    subagent: { name: string; enabled: boolean; definition: ManagedDefinition },
    change: ManagedChange,
  ): Promise<Result<StoredSubagent, ManagedRefusal>>;
  /** Replaces the definition of the version the caller read. */
  systemUpdate(subagent: ManagedSubagent, change: ManagedChange): Promise<Result<StoredSubagent, ManagedRefusal>>;
  /** Idempotent: where nothing changes the version stays. */
  systemSetEnabled(
    name: string,
    enabled: boolean,
    change: ManagedChange,
  ): Promise<Result<StoredSubagent, ManagedRefusal>>;
  /** False when there was none. */
  systemDelete(name: string): Promise<boolean>;
}
