/**
 * A refusal in words, for a model or a person: what was wrong and what is allowed.
 */
import { unreachable } from "../../domain/shared/assert.ts";
import type { WorkspaceRefusal } from "./workspace.ts";

export function workspaceRefusalMessage(refusal: WorkspaceRefusal): string {
  switch (refusal.reason) {
    case "not_found":
      return `${refusal.path} does not exist`;
    case "not_a_file":
      return `${refusal.path} is a directory; a file is needed`;
    case "not_a_directory":
      return `${refusal.path} is a file; a directory is needed`;
    case "not_empty":
      return `${refusal.path} is a directory that is not empty; remove it recursively`;
    case "read_only":
      return `${refusal.path} is read-only here; write to another path`;
    case "path_refused":
      return `the path ${JSON.stringify(refusal.path)} is not allowed: ${refusal.why}`;
    case "file_too_large":
      return `${refusal.path} would have ${refusal.bytes} bytes; a file has at most ${refusal.limit}`;
    case "workspace_full":
      return `the workspace would hold ${refusal.bytes} bytes; it holds at most ${refusal.limit}. Remove files first`;
    case "too_many_entries":
      return `the workspace holds at most ${refusal.limit} files and directories. Remove some first`;
    case "outputs_full":
      return `outputs/ would hold ${refusal.bytes} bytes; at most ${refusal.limit} are returned with the result`;
    case "staging_full":
      return `calls under way would hold ${refusal.bytes} unsaved bytes, at most ${refusal.limit}; write less in one call`;
    case "busy":
      return `${refusal.path} is being changed by another call that runs at the same time; try again`;
    case "changed":
      return `${refusal.path} was changed by another call after this one read it; read it again, then write`;
  }
  return unreachable(refusal);
}
