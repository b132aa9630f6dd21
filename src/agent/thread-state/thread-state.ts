/**
 * The shape of ThreadState: what one thread remembers between steps, in LangGraph channels.
 * Owns names and types; reducers and channels live beside it. Channel names are public (readers look for them).
 */
import type { BaseMessage } from "@langchain/core/messages";
import type { SubagentStatus, SubagentStopReason } from "../../domain/delegation/status-contract.ts";

export interface ThreadData {
  workspace_path?: string;
  uploads_path?: string;
  outputs_path?: string;
}

export interface SandboxState {
  sandbox_id?: string | null;
}

export interface ViewedImage {
  mime_type: string;
  size: number;
  actual_path: string;
}

export interface Todo {
  content: string;
  status: "pending" | "in_progress" | "completed";
}

export interface Goal {
  objective: string;
  status: "active";
  created_at: string;
  updated_at: string;
  continuation_count: number;
  max_continuations: number;
  no_progress_count: number;
  max_no_progress_continuations: number;
  last_evaluation?: Record<string, unknown>;
}

export interface PromotedTools {
  catalog_hash: string;
  names: string[];
}

/** One `task` call. `id` is the tool-call id, which is the `task_id` everywhere else. */
export interface DelegationEntry {
  id: string;
  run_id?: string;
  /** At most 200 characters. */
  description: string;
  subagent_type: string;
  status: "in_progress" | SubagentStatus;
  /** At most 2,000 characters. */
  result_brief?: string;
  result_sha256?: string;
  result_ref?: string;
  stop_reason?: SubagentStopReason;
  /** UTC ISO with Z. */
  created_at?: string;
}

export interface SkillContextEntry {
  name: string;
  path: string;
  description: string;
  loaded_at: number;
}

/** Deputy's own bookkeeping of the current run; LastValue, rewritten by every model step. */
export interface RunProgress {
  run_id: string | null;
  /** Model turns committed in this run. */
  turns: number;
}

export interface ThreadState {
  messages: BaseMessage[];
  sandbox?: SandboxState | null;
  thread_data?: ThreadData | null;
  title?: string | null;
  artifacts?: string[];
  todos?: Todo[] | null;
  goal?: Goal | null;
  uploaded_files?: Record<string, unknown>[] | null;
  viewed_images?: Record<string, ViewedImage>;
  promoted?: PromotedTools | null;
  delegations?: DelegationEntry[];
  skill_context?: SkillContextEntry[];
  summary_text?: string | null;
  background_tasks?: Record<string, unknown> | null;
  run_progress?: RunProgress;
}

export type ThreadStateUpdate = {
  [Channel in keyof ThreadState]?: Channel extends "messages" ? BaseMessage[] : ThreadState[Channel] | null;
};
