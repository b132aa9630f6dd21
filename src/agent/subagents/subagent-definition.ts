/**
 * A subagent as resolved for one run: plain JSON, so a batch row can hold its snapshot. PERSISTED: fields are only added.
 */
import type { ManagedDefinition } from "../../domain/delegation/managed-subagent.ts";

export interface SubagentDefinition extends Omit<ManagedDefinition, "maxDepth"> {
  readonly name: string;
  /** The deepest level below the lead for it and for what it delegates to; absent in snapshots of before, and no bound. */
  readonly maxDepth?: number;
  /** A managed one's texts came through the API: they never stand in System (R173). */
  readonly source: "built-in" | "config" | "managed";
}
