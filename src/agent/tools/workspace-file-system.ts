/**
 * A workspace session as the file system of just-bash, to be mounted at `/workspace`.
 *
 * Owns the translation: paths below the mount to workspace paths, refusals to errors that commands print. Holds no
 * state. There are no links and no stored modes or times: `chmod` and `touch` of an existing file succeed without
 * effect, every file may be run as a script, links are refused.
 */
import type { BufferEncoding, CpOptions, FileContent, FsStat, IFileSystem, RmOptions } from "just-bash/browser";
import { WORKSPACE_ROOT } from "../../domain/workspace/paths.ts";
import { unreachable } from "../../domain/shared/assert.ts";
import type { Result } from "../../domain/shared/result.ts";
import { bytesOf, textOf } from "./file-system-bytes.ts";
import { workspaceRefusalMessage } from "./workspace-refusal-message.ts";
import type { WorkspaceEntry, WorkspaceRefusal, WorkspaceSession } from "./workspace.ts";

type EncodingOption = { encoding?: BufferEncoding } | BufferEncoding;

/** rwxr-xr-x: a shell runs `./script.sh` only when a file may be executed, and modes are not stored. */
const MODE = 0o755;

export class WorkspaceFileSystem implements IFileSystem {
  readonly #session: WorkspaceSession;

  constructor(session: WorkspaceSession) {
    this.#session = session;
  }

  async readFile(path: string, options?: { encoding?: BufferEncoding | null } | BufferEncoding): Promise<string> {
    return textOf(await this.readFileBuffer(path), options);
  }

  async readFileBuffer(path: string): Promise<Uint8Array> {
    return settled(this.#session.read(below(path)), "open");
  }

  async writeFile(path: string, content: FileContent, options?: EncodingOption): Promise<void> {
    settled(this.#session.write(below(path), bytesOf(content, options)), "write");
  }

  async appendFile(path: string, content: FileContent, options?: EncodingOption): Promise<void> {
    settled(this.#session.append(below(path), bytesOf(content, options)), "write");
  }

  async exists(path: string): Promise<boolean> {
    return this.#session.stat(below(path)).ok;
  }

  async stat(path: string): Promise<FsStat> {
    return toStat(settled(this.#session.stat(below(path)), "stat"));
  }

  async lstat(path: string): Promise<FsStat> {
    return this.stat(path);
  }

  async mkdir(path: string, options?: { recursive?: boolean }): Promise<void> {
    const at = below(path);
    const existing = this.#session.stat(at);
    if (existing.ok && (existing.value.kind === "file" || options?.recursive !== true)) {
      throw systemError("EEXIST", `file already exists, mkdir '${at}'`);
    }
    const parent = at.slice(0, at.lastIndexOf("/"));
    if (options?.recursive !== true && parent !== "") settled(this.#session.stat(parent), "mkdir");
    settled(this.#session.makeDirectory(at), "mkdir");
  }

  async readdir(path: string): Promise<string[]> {
    return settled(this.#session.list(below(path)), "scandir").map(nameOf);
  }

  async readdirWithFileTypes(path: string) {
    const entries = settled(this.#session.list(below(path)), "scandir");
    return entries.map((entry) => ({
      name: nameOf(entry),
      isFile: entry.kind === "file",
      isDirectory: entry.kind === "directory",
      isSymbolicLink: false,
    }));
  }

  async rm(path: string, options?: RmOptions): Promise<void> {
    const removed = this.#session.remove(below(path), { recursive: options?.recursive === true });
    if (!removed.ok && removed.error.reason === "not_found" && options?.force === true) return;
    settled(removed, "rm");
  }

  async cp(source: string, destination: string, options?: CpOptions): Promise<void> {
    const [from, to] = [below(source), below(destination)];
    const entry = settled(this.#session.stat(from), "cp");
    if (entry.kind === "file") return this.#copyFile(from, to);
    if (options?.recursive !== true) throw systemError("EISDIR", `is a directory, cp '${from}'`);
    settled(this.#session.makeDirectory(to), "cp");
    for (const child of settled(this.#session.list(from), "cp")) {
      await this.cp(`${source}/${nameOf(child)}`, `${destination}/${nameOf(child)}`, options);
    }
  }

  async mv(source: string, destination: string): Promise<void> {
    if (below(source) === below(destination)) return;
    await this.cp(source, destination, { recursive: true });
    settled(this.#session.remove(below(source), { recursive: true }), "mv");
  }

  resolvePath(base: string, path: string): string {
    const segments: string[] = [];
    for (const segment of (path.startsWith("/") ? path : `${base}/${path}`).split("/")) {
      if (segment === "..") segments.pop();
      else if (segment !== "" && segment !== ".") segments.push(segment);
    }
    return `/${segments.join("/")}`;
  }

  /** Globs fall back to `readdir`, which reads only the directories a pattern names. */
  getAllPaths(): string[] {
    return [];
  }

  async chmod(path: string, _mode: number): Promise<void> {
    settled(this.#session.stat(below(path)), "chmod");
  }

  async utimes(path: string, _atime: Date, _mtime: Date): Promise<void> {
    settled(this.#session.stat(below(path)), "utimes");
  }

  async symlink(_target: string, linkPath: string): Promise<void> {
    throw systemError("EPERM", `operation not permitted: the workspace has no links, symlink '${below(linkPath)}'`);
  }

  async link(_existing: string, newPath: string): Promise<void> {
    throw systemError("EPERM", `operation not permitted: the workspace has no links, link '${below(newPath)}'`);
  }

  async readlink(path: string): Promise<string> {
    settled(this.#session.stat(below(path)), "readlink");
    throw systemError("EINVAL", `invalid argument, readlink '${below(path)}'`);
  }

  /** There are no links to resolve; the answer stays relative to the mount. */
  async realpath(path: string): Promise<string> {
    settled(this.#session.stat(below(path)), "realpath");
    return this.resolvePath("/", path);
  }

  #copyFile(from: string, to: string): void {
    settled(this.#session.write(to, settled(this.#session.read(from), "cp")), "cp");
  }
}

/** Paths arrive absolute within the mount: `/a` is `/workspace/a`. */
function below(path: string): string {
  return path === "/" ? WORKSPACE_ROOT : `${WORKSPACE_ROOT}${path}`;
}

function nameOf(entry: WorkspaceEntry): string {
  return entry.path.slice(entry.path.lastIndexOf("/") + 1);
}

function toStat(entry: WorkspaceEntry): FsStat {
  return {
    isFile: entry.kind === "file",
    isDirectory: entry.kind === "directory",
    isSymbolicLink: false,
    mode: MODE,
    size: entry.size,
    mtime: new Date(entry.modifiedAt),
    identity: entry.path,
  };
}

function settled<T>(result: Result<T, WorkspaceRefusal>, operation: string): T {
  if (result.ok) return result.value;
  throw refusalError(result.error, operation);
}

/** Commands tell causes apart by the code, and print the text for those they do not know. */
function refusalError(refusal: WorkspaceRefusal, operation: string): Error {
  switch (refusal.reason) {
    case "not_found":
      return systemError("ENOENT", `no such file or directory, ${operation} '${refusal.path}'`);
    case "not_a_file":
      return systemError("EISDIR", `illegal operation on a directory, ${operation} '${refusal.path}'`);
    case "not_a_directory":
      return systemError("ENOTDIR", `not a directory, ${operation} '${refusal.path}'`);
    case "not_empty":
      return systemError("ENOTEMPTY", `directory not empty, ${operation} '${refusal.path}'`);
    case "read_only":
      return systemError("EROFS", workspaceRefusalMessage(refusal));
    case "path_refused":
      return systemError("EINVAL", workspaceRefusalMessage(refusal));
    case "file_too_large":
      return systemError("EFBIG", workspaceRefusalMessage(refusal));
    case "workspace_full":
    case "too_many_entries":
    case "staging_full":
    case "outputs_full":
      return systemError("ENOSPC", workspaceRefusalMessage(refusal));
    case "busy":
    case "changed":
      return systemError("EBUSY", workspaceRefusalMessage(refusal));
  }
  return unreachable(refusal);
}

function systemError(code: string, text: string): Error {
  return Object.assign(new Error(`${code}: ${text}`), { code });
}
