/**
 * Workspace files over the API: the workspace's refusals as the API's, entries as the wire has them.
 */
import { workspaceRefusalMessage } from "../agent/tools/workspace-refusal-message.ts";
import type { WorkspaceRefusal } from "../agent/tools/workspace.ts";
import { err, ok } from "../domain/shared/result.ts";
import type { DurableWorkspace } from "../platform/workspace/durable-workspace.ts";
import type { ErrorCode, RpcResult } from "../protocol/errors.ts";
import type { FileListing } from "../protocol/thread-rpc.ts";

export type FileContent = { kind: "file"; bytes: Uint8Array } | ({ kind: "directory" } & FileListing);

export class ThreadFiles {
  readonly #workspace: DurableWorkspace;

  constructor(workspace: DurableWorkspace) {
    this.#workspace = workspace;
  }

  put(path: string, bytes: Uint8Array): RpcResult<{ path: string; size: number; created: boolean }> {
    const stored = this.#workspace.put(path, bytes);
    if (!stored.ok) return refused(stored.error);
    const { entry, created } = stored.value;
    return ok({ path: entry.path, size: entry.size, created });
  }

  get(path: string): RpcResult<FileContent> {
    const found = this.#workspace.get(path);
    if (!found.ok) return refused(found.error);
    if (found.value.kind === "file") return ok({ kind: "file", bytes: found.value.bytes });
    const entries = found.value.entries.map((entry) => ({
      path: entry.path,
      kind: entry.kind,
      size: entry.size,
      modified_at: new Date(entry.modifiedAt).toISOString(),
    }));
    return ok({ kind: "directory", path: found.value.path, entries });
  }

  delete(path: string): RpcResult<null> {
    const removed = this.#workspace.delete(path, { recursive: true });
    return removed.ok ? ok(null) : refused(removed.error);
  }
}

function refused(refusal: WorkspaceRefusal): RpcResult<never> {
  return err({ code: CODES[refusal.reason], message: workspaceRefusalMessage(refusal), details: { ...refusal } });
}

const CODES: Readonly<Record<WorkspaceRefusal["reason"], ErrorCode>> = {
  not_found: "not_found",
  not_a_file: "invalid_request",
  not_a_directory: "invalid_request",
  not_empty: "invalid_request",
  read_only: "forbidden",
  path_refused: "invalid_request",
  file_too_large: "too_large",
  workspace_full: "too_large",
  too_many_entries: "too_large",
  outputs_full: "too_large",
  staging_full: "overloaded",
  busy: "thread_busy",
  changed: "version_conflict",
};
