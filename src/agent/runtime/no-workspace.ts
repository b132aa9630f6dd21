/**
 * The workspace of an agent that has none: nothing is there, and nothing can be written. So a tool that wants to put
 * something aside is told, and says so, instead of naming a file that nobody can read.
 */
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { WORKSPACE_ROOT } from "../../domain/workspace/paths.ts";
import type { WorkspaceRefusal, WorkspaceSession, WorkspaceStaging } from "../tools/workspace.ts";

const WHY = "this agent has no workspace";

function absent(path: string): Result<never, WorkspaceRefusal> {
  return err({ reason: "not_found", path });
}

function refused(path: string): Result<never, WorkspaceRefusal> {
  return err({ reason: "path_refused", path, why: WHY });
}

const SESSION: WorkspaceSession = {
  stat: absent,
  list: (path) => (path === WORKSPACE_ROOT ? ok([]) : absent(path)),
  walk: (path) => (path === WORKSPACE_ROOT ? ok([]) : absent(path)),
  read: absent,
  write: refused,
  append: refused,
  makeDirectory: refused,
  remove: refused,
};

export const NO_WORKSPACE: WorkspaceStaging = { open: () => SESSION, commit: () => {}, discard: () => {} };
