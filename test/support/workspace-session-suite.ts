/**
 * What every workspace session must do, whatever lies under it: the suite of the port `WorkspaceSession`.
 * `run` hands a fresh, empty session to the case; `settled`, where an adapter has one, is what a later session sees
 * after the first one committed.
 */
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { WorkspaceSession } from "../../src/agent/tools/workspace.ts";

export interface SessionCase {
  readonly session: WorkspaceSession;
  /** A session that sees what `session` left once it is settled. */
  readonly settled: () => WorkspaceSession;
}

export type RunSessionCase = (work: (tested: SessionCase) => void) => Promise<void>;

const encode = (text: string) => new TextEncoder().encode(text);

function reasonOf(result: { ok: boolean; error?: { reason: string } }): string | undefined {
  return result.ok ? undefined : result.error?.reason;
}

export function workspaceSessionSuite(run: RunSessionCase): void {
  it("keeps a tree: parents appear, files are no directories, non-empty directories need recursion", async () => {
    await run(({ session }) => {
      session.write("a/b/c.txt", encode("c"));
      expect(session.walk(".")).toMatchObject({ value: [{ path: "/workspace/a/b/c.txt", kind: "file", size: 1 }] });
      expect(session.list("a")).toMatchObject({ value: [{ path: "/workspace/a/b", kind: "directory" }] });
      expect(reasonOf(session.write("a/b", encode("x")))).toBe("not_a_file");
      expect(reasonOf(session.write("a/b/c.txt/d", encode("x")))).toBe("not_a_directory");
      expect(reasonOf(session.append("a/b/c.txt/d", encode("x")))).toBe("not_a_directory");
      expect(reasonOf(session.makeDirectory("a/b/c.txt"))).toBe("not_a_directory");
      expect(reasonOf(session.list("a/b/c.txt"))).toBe("not_a_directory");
      expect(reasonOf(session.read("a"))).toBe("not_a_file");
      expect(reasonOf(session.remove("a", { recursive: false }))).toBe("not_empty");
      expect(session.remove("a", { recursive: true }).ok).toBe(true);
      expect(session.list(".")).toEqual({ ok: true, value: [] });
      expect(reasonOf(session.remove(".", { recursive: true }))).toBe("path_refused");
    });
  });

  it("refuses a path that leaves the root in every operation", async () => {
    await run(({ session }) => {
      const operations = [
        session.stat("../x"),
        session.list("../x"),
        session.walk("../x"),
        session.read("../x"),
        session.write("../x", encode("")),
        session.append("../x", encode("")),
        session.makeDirectory("../x"),
        session.remove("../x", { recursive: true }),
      ];
      expect(operations.map(reasonOf)).toEqual(operations.map(() => "path_refused"));
    });
  });

  it("copies what it is handed, so a buffer used again does not change a file", async () => {
    await run(({ session, settled }) => {
      const buffer = encode("first");
      session.write("a", buffer);
      session.append("a", buffer);
      buffer.fill(0);
      expect(session.read("a")).toEqual({ ok: true, value: encode("firstfirst") });
      expect(settled().read("a")).toEqual({ ok: true, value: encode("firstfirst") });
    });
  });

  it("agrees with a plain model over any sequence of operations, while open and when settled", async () => {
    const sequences = fc.sample(fc.array(operation, { minLength: 1, maxLength: 25 }), { numRuns: 60, seed: 20_260 });
    for (const operations of sequences) {
      await run(({ session, settled }) => {
        const model = new ModelTree();
        for (const [at, step] of operations.entries()) {
          const label = JSON.stringify(operations.slice(0, at + 1));
          expect([label, apply(session, step)]).toEqual([label, model.apply(step)]);
          expect([label, contents(session)]).toEqual([label, model.contents()]);
        }
        expect(contents(settled())).toEqual(model.contents());
      });
    }
  });
}

type Step = {
  readonly op: "write" | "append" | "mkdir" | "remove" | "rmdir";
  readonly path: string;
  readonly text: string;
};

const operation: fc.Arbitrary<Step> = fc.record({
  op: fc.constantFrom("write", "append", "mkdir", "remove", "rmdir"),
  // Few names, so that files and directories meet under the same path.
  path: fc.array(fc.constantFrom("a", "b", "a-"), { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/")),
  text: fc.constantFrom("", "x", "yz"),
});

function apply(session: WorkspaceSession, { op, path, text }: Step): boolean {
  switch (op) {
    case "write":
      return session.write(path, encode(text)).ok;
    case "append":
      return session.append(path, encode(text)).ok;
    case "mkdir":
      return session.makeDirectory(path).ok;
    case "remove":
      return session.remove(path, { recursive: false }).ok;
    case "rmdir":
      return session.remove(path, { recursive: true }).ok;
  }
  return false;
}

/** Everything there is, by path: a file's text, `null` for a directory. */
function contents(session: WorkspaceSession, directory = "."): Record<string, string | null> {
  const listed = session.list(directory);
  if (!listed.ok) throw new Error(listed.error.reason);
  const found: Record<string, string | null> = {};
  for (const entry of listed.value) {
    const read = session.read(entry.path);
    found[entry.path.slice("/workspace/".length)] = read.ok ? new TextDecoder().decode(read.value) : null;
    if (entry.kind === "directory") Object.assign(found, contents(session, entry.path));
  }
  return found;
}

/** The same tree the slow and obvious way. */
class ModelTree {
  readonly #entries = new Map<string, string | null>();

  contents(): Record<string, string | null> {
    return Object.fromEntries(this.#entries);
  }

  apply({ op, path, text }: Step): boolean {
    const below = [...this.#entries.keys()].filter((key) => key.startsWith(`${path}/`));
    const existing = this.#entries.get(path);
    if (op === "remove" || op === "rmdir") {
      if (existing === undefined || (op === "remove" && below.length > 0)) return false;
      for (const key of [path, ...below]) this.#entries.delete(key);
      return true;
    }
    if (op === "mkdir" ? typeof existing === "string" : existing === null) return false;
    const parents = path
      .split("/")
      .slice(0, -1)
      .map((_, at, all) => all.slice(0, at + 1).join("/"));
    if (parents.some((parent) => typeof this.#entries.get(parent) === "string")) return false;
    for (const parent of parents) this.#entries.set(parent, null);
    this.#entries.set(path, op === "mkdir" ? null : op === "append" ? `${existing ?? ""}${text}` : text);
    return true;
  }
}
