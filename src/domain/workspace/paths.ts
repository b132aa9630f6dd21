/**
 * Paths of a workspace: what a model, a shell or an HTTP client may name.
 *
 * Owns normalisation and the path bounds. Does not own files. Invariants: a normalised path is `/workspace` or lies
 * below it, has no empty, `.` or `..` segment, and normalising it again changes nothing. `..` is refused instead of
 * resolved, so that no caller has to reason about what was resolved first; escapes of the characters that could build a
 * traversal are refused too, so that a second decoding somewhere behind this point finds nothing.
 */
import { err, ok, type Result } from "../shared/result.ts";

export const WORKSPACE_ROOT = "/workspace";

/** 10 MiB (contracts, "Workspace"): a file is read and written whole, and the isolate has 128 MB. */
export const FILE_BYTES_MAX = 10 * 1_024 * 1_024;

/** What common file systems take, so that every workspace file can be downloaded under its own name. */
export const SEGMENT_BYTES_MAX = 255;
/** Bounds a key in storage and a line in a listing; four times what real trees use. */
export const PATH_BYTES_MAX = 1_024;
/** Bounds the parents one write may create. */
export const PATH_DEPTH_MAX = 32;
/** Of a refused path, what is quoted back: a refusal must not be as large as an attack. */
const QUOTED_CHARS_MAX = 200;

const CONTROL_CHARACTER = /\p{Cc}/u;
const ESCAPED_TRAVERSAL = /%(?:25)*(?:2e|2f|5c|00)/i;

export interface PathRefusal {
  readonly reason: "path_refused";
  readonly path: string;
  readonly why: string;
}

/** The absolute form under `/workspace`; relative paths resolve there. One trailing slash and `.` segments are dropped. */
export function normalizeWorkspacePath(path: string): Result<string, PathRefusal> {
  const why = textFault(path);
  if (why !== undefined) return refuse(path, why);
  const relative = path.startsWith("/") ? belowRoot(path) : path;
  if (relative === undefined) return refuse(path, `paths are relative or below ${WORKSPACE_ROOT}`);
  const segments: string[] = [];
  for (const segment of relative.replace(/\/$/, "").split("/")) {
    if (segment === "." || (segment === "" && relative === "")) continue;
    const fault = segmentFault(segment);
    if (fault !== undefined) return refuse(path, fault);
    segments.push(segment);
  }
  const normalized = [WORKSPACE_ROOT, ...segments].join("/");
  if (segments.length > PATH_DEPTH_MAX) return refuse(path, `at most ${PATH_DEPTH_MAX} levels of directories`);
  if (utf8Length(normalized) > PATH_BYTES_MAX) return refuse(path, `at most ${PATH_BYTES_MAX} bytes in a path`);
  return ok(normalized);
}

/** The directory that holds `path`; a normalised path other than the root. */
export function parentPath(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The directories between the root and `path`, outermost first; neither the root nor `path` itself. */
export function ancestorPaths(path: string): readonly string[] {
  const ancestors: string[] = [];
  for (let at = path.indexOf("/", WORKSPACE_ROOT.length + 1); at !== -1; at = path.indexOf("/", at + 1)) {
    ancestors.push(path.slice(0, at));
  }
  return ancestors;
}

export function isBelow(path: string, directory: string): boolean {
  return path.startsWith(`${directory}/`);
}

/** The part behind the root, `""` for the root itself; undefined when `path` is elsewhere. */
function belowRoot(path: string): string | undefined {
  if (path === WORKSPACE_ROOT) return "";
  return isBelow(path, WORKSPACE_ROOT) ? path.slice(WORKSPACE_ROOT.length + 1) : undefined;
}

function textFault(path: string): string | undefined {
  if (path === "") return `a path is needed; ${WORKSPACE_ROOT} is the root`;
  // Every legal path is far shorter, and what follows is linear in the length.
  if (path.length > PATH_BYTES_MAX) return `at most ${PATH_BYTES_MAX} bytes in a path`;
  // Storage would give half a surrogate pair back as other characters.
  if (!path.isWellFormed()) return "the path is not well-formed Unicode";
  if (CONTROL_CHARACTER.test(path)) return "control characters are not allowed";
  if (path.includes("\\")) return "backslashes are not allowed; separate directories with /";
  if (ESCAPED_TRAVERSAL.test(path)) return "percent-escapes of dots, slashes and NUL are not allowed";
  return undefined;
}

function segmentFault(segment: string): string | undefined {
  if (segment === "") return "empty segments (//) are not allowed";
  if (segment === "..") return `.. is not allowed; name the path from ${WORKSPACE_ROOT}`;
  if (utf8Length(segment) > SEGMENT_BYTES_MAX) return `at most ${SEGMENT_BYTES_MAX} bytes in a name`;
  return undefined;
}

function refuse(path: string, why: string): Result<never, PathRefusal> {
  return err({ reason: "path_refused", path: path.slice(0, QUOTED_CHARS_MAX).toWellFormed(), why });
}

/** Bytes of well-formed text in UTF-8; the domain has no encoder. */
function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0)!;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}
