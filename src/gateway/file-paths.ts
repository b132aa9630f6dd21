/**
 * Workspace paths from URLs. Invariants: a path that comes out is absolute and names the workspace's root or something
 * below it; a path is judged after decoding, so `..%2f` is seen for what it is.
 */
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { FILE_PATH_CHARS_MAX } from "./bounds.ts";
import { refuse } from "./errors.ts";

export const WORKSPACE_ROOT = "/workspace";

/** `encoded` is what follows `/files` in the URL; nothing there means the root. */
export function parseFilePath(encoded: string): Result<string, ApiRefusal> {
  const decoded = decode(encoded.replace(/^\//, ""));
  if (decoded === null) return bad("is not valid percent-encoded UTF-8");
  if (decoded.length > FILE_PATH_CHARS_MAX) return bad(`is longer than ${FILE_PATH_CHARS_MAX} characters`);
  if (hasControlOrBackslash(decoded)) return bad("must not hold control characters or backslashes");
  const inside = withinRoot(decoded);
  if (inside === null) return bad(`must be relative or under ${WORKSPACE_ROOT}`);
  const segments = inside.split("/").filter((segment) => segment !== "");
  if (segments.some((segment) => segment === "." || segment === "..")) return bad("must not hold . or .. segments");
  return ok([WORKSPACE_ROOT, ...segments].join("/"));
}

function withinRoot(path: string): string | null {
  if (!path.startsWith("/")) return path;
  if (path === WORKSPACE_ROOT || path.startsWith(`${WORKSPACE_ROOT}/`)) return path.slice(WORKSPACE_ROOT.length);
  return null;
}

function hasControlOrBackslash(path: string): boolean {
  return Array.from(path).some((char) => char < " " || char === "\u007f" || char === "\\");
}

function decode(encoded: string): string | null {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
}

function bad(why: string): Result<never, ApiRefusal> {
  return refuse("invalid_request", `path: ${why}`, { issues: [{ path: "path", message: why }] });
}
