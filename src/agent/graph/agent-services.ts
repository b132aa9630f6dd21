/**
 * What an agent graph needs from its surroundings. The thread object and the batch consumer each give their own.
 */
import type { LocalFailpoint } from "../../domain/shared/failpoint.ts";
import type { ToolStarts } from "../tools/tool-starts.ts";
import type { WorkspaceStaging } from "../tools/workspace.ts";

export interface AgentServices {
  readonly workspace: WorkspaceStaging;
  /** 1 on a call's first execution, more when recovery runs it again. Called once per execution, before the tool runs. */
  toolAttempt(toolCallId: string): number;
  /** Which calls were started, across crashes. Absent: nothing outlives this process, so none was started before it. */
  readonly toolStarts?: ToolStarts;
  newId(): string;
  /** Milliseconds since the epoch. */
  now(): number;
  /** Where something is told that is no fault and that an operator should know. Absent: the console. */
  readonly report?: (what: string, details: Readonly<Record<string, unknown>>) => void;
  /** Right before a model is asked or a tool acts: throws once another instance took this one's place. */
  readonly assertCurrent?: () => void;
  /** Absent outside of tests. */
  readonly failpoint?: LocalFailpoint | undefined;
}
