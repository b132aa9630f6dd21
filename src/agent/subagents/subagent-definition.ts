/**
 * A subagent as resolved for one run: plain JSON, so a batch row can hold its snapshot. PERSISTED: fields are only added.
 */
export interface SubagentDefinition {
  readonly name: string;
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
  /** The deepest level below the lead for it and for what it delegates to; absent in snapshots of before, and no bound. */
  readonly maxDepth?: number;
  /** A managed one's texts came through the API: they never stand in System (R173). */
  readonly source: "built-in" | "config" | "managed";
}
