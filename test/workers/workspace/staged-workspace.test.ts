import { expect, it } from "vitest";
import type { WorkspaceSession } from "../../../src/agent/tools/workspace.ts";
import { FILE_BYTES_MAX } from "../../../src/domain/workspace/paths.ts";
import { STAGED_BYTES_MAX, WORKSPACE_BYTES_MAX } from "../../../src/platform/workspace/open-sessions.ts";
import { inFreshObject, wake } from "../../support/workspace-object.ts";

const encode = (text: string) => new TextEncoder().encode(text);

function textAt(session: WorkspaceSession, path: string): string | undefined {
  const read = session.read(path);
  return read.ok ? new TextDecoder().decode(read.value) : undefined;
}

function reasonOf(result: { ok: boolean; error?: { reason: string } }): string | undefined {
  return result.ok ? undefined : result.error?.reason;
}

/** What an instance that starts now finds. */
function storedText(storage: DurableObjectStorage, path: string): string | undefined {
  return textAt(wake(storage).staging.open("reader"), path);
}

it("shows a call its own writes and nobody else's, until they commit", async () => {
  await inFreshObject("isolation", ({ storage, staging }) => {
    const [first, second] = [staging.open("call_1"), staging.open("call_2")];
    first.write("a.txt", encode("one"));
    second.write("b.txt", encode("two"));
    expect(textAt(first, "a.txt")).toBe("one");
    expect(first.list(".")).toMatchObject({ value: [{ path: "/workspace/a.txt" }] });
    expect(reasonOf(second.read("a.txt"))).toBe("not_found");
    expect(reasonOf(first.read("b.txt"))).toBe("not_found");
    storage.transactionSync(() => staging.commit("call_1"));
    expect(textAt(second, "a.txt")).toBe("one");
    expect(second.walk(".")).toMatchObject({ value: [{ path: "/workspace/a.txt" }, { path: "/workspace/b.txt" }] });
  });
});

it("leaves nothing of a call that a crash met before its commit, and all of it after (P1)", async () => {
  await inFreshObject("crash", ({ storage, staging }) => {
    const session = staging.open("call_1");
    session.write("a.txt", encode("a"));
    session.write("d/b.txt", encode("b"));
    expect(storedText(storage, "a.txt")).toBeUndefined();
    expect(storage.sql.exec("SELECT 1 FROM workspace_entries").toArray()).toEqual([]);
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "a.txt")).toBe("a");
    expect(storedText(storage, "d/b.txt")).toBe("b");
  });
});

it("rolls back with the saver's transaction, and the repeated commit then applies everything once", async () => {
  await inFreshObject("rollback", async ({ storage, staging }) => {
    const session = staging.open("call_1");
    session.append("log", encode("line\n"));
    session.write("d/new.txt", encode("n"));
    const failing = () =>
      storage.transactionSync(() => {
        staging.commit("call_1");
        throw new Error("a later row failed");
      });
    expect(failing).toThrow("a later row failed");
    expect(storedText(storage, "log")).toBeUndefined();
    expect(storage.sql.exec("SELECT 1 FROM workspace_head").toArray()).toEqual([]);
    await Promise.resolve();
    storage.transactionSync(() => staging.commit("call_1"));
    await Promise.resolve();
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "log")).toBe("line\n");
    expect(storedText(storage, "d/new.txt")).toBe("n");
  });
});

it("tells a rolled back commit from a durable one when others commit right behind it", async () => {
  await inFreshObject("rollback-order", async ({ storage, staging }) => {
    for (const id of ["call_1", "call_2", "call_3"]) staging.open(id).append("log", encode(`${id}\n`));
    const failing = () =>
      storage.transactionSync(() => {
        staging.commit("call_1");
        staging.commit("call_2");
        throw new Error("rolled back");
      });
    expect(failing).toThrow("rolled back");
    storage.transactionSync(() => staging.commit("call_3"));
    await Promise.resolve();
    storage.transactionSync(() => staging.commit("call_1"));
    storage.transactionSync(() => staging.commit("call_2"));
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "log")).toBe("call_3\ncall_1\ncall_2\n");
  });
});

it("still protects the files of a call whose commit was rolled back", async () => {
  await inFreshObject("rollback-busy", async ({ storage, staging, workspace }) => {
    workspace.put("a", encode("x"));
    const editor = staging.open("call_1");
    textAt(editor, "a");
    editor.write("a", encode("X"));
    const failing = () =>
      storage.transactionSync(() => {
        staging.commit("call_1");
        throw new Error("rolled back");
      });
    expect(failing).toThrow("rolled back");
    await Promise.resolve();
    expect(reasonOf(staging.open("call_2").write("a", encode("y")))).toBe("busy");
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "a")).toBe("X");
  });
});

it("commits once: a commit repeated in the same transaction or later adds nothing", async () => {
  await inFreshObject("idempotent", async ({ storage, staging }) => {
    staging.open("call_1").append("log", encode("x"));
    storage.transactionSync(() => {
      staging.commit("call_1");
      staging.commit("call_1");
    });
    await Promise.resolve();
    staging.commit("call_1");
    staging.commit("call_unknown");
    expect(storedText(storage, "log")).toBe("x");
  });
});

it("starts over when recovery runs a call again, and forgets a discarded one (P2)", async () => {
  await inFreshObject("again", ({ storage, staging }) => {
    staging.open("call_1").append("log", encode("first attempt\n"));
    staging.open("call_1").append("log", encode("second attempt\n"));
    staging.open("call_2").write("gone", encode("x"));
    staging.discard("call_2");
    staging.commit("call_2");
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "log")).toBe("second attempt\n");
    expect(storedText(storage, "gone")).toBeUndefined();
  });
});

it("takes no write after a call settled: it would belong to no result", async () => {
  await inFreshObject("late", ({ storage, staging }) => {
    const [late, dropped] = [staging.open("call_1"), staging.open("call_2")];
    late.write("a", encode("in time"));
    storage.transactionSync(() => staging.commit("call_1"));
    staging.discard("call_2");
    expect(reasonOf(late.write("a", encode("late")))).toBe("read_only");
    expect(reasonOf(dropped.append("a", encode("late")))).toBe("read_only");
    expect(storedText(storage, "a")).toBe("in time");
  });
});

it("lets the last commit win between two calls that overwrite a file without having read it", async () => {
  await inFreshObject("last-wins", ({ storage, staging }) => {
    const [first, second] = [staging.open("call_1"), staging.open("call_2")];
    expect(first.write("a", encode("1")).ok).toBe(true);
    expect(second.write("a", encode("2")).ok).toBe(true);
    storage.transactionSync(() => staging.commit("call_2"));
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "a")).toBe("1");
  });
});

it("keeps the appends of parallel calls, whichever commits first", async () => {
  await inFreshObject("appends", ({ storage, staging, workspace }) => {
    workspace.put("log", encode("start\n"));
    const [first, second] = [staging.open("call_1"), staging.open("call_2")];
    first.append("log", encode("one\n"));
    second.append("log", encode("two\n"));
    expect(textAt(first, "log")).toBe("start\none\n");
    storage.transactionSync(() => staging.commit("call_2"));
    expect(textAt(first, "log")).toBe("start\ntwo\none\n");
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "log")).toBe("start\ntwo\none\n");
  });
});

it("loses no change to a read-modify-write: the second of two parallel edits is refused as busy", async () => {
  await inFreshObject("busy", ({ storage, staging, workspace }) => {
    workspace.put("a", encode("x y"));
    const [first, second, third] = [staging.open("call_1"), staging.open("call_2"), staging.open("call_3")];
    textAt(first, "a");
    textAt(second, "a");
    expect(first.write("a", encode("X y")).ok).toBe(true);
    expect(second.write("a", encode("x Y"))).toEqual({ ok: false, error: { reason: "busy", path: "/workspace/a" } });
    expect(reasonOf(third.append("a", encode("z")))).toBe("busy");
    expect(reasonOf(third.write("a", encode("z")))).toBe("busy");
    expect(reasonOf(third.remove("a", { recursive: false }))).toBe("busy");
    expect(reasonOf(workspace.put("a", encode("upload")))).toBe("busy");
    storage.transactionSync(() => staging.commit("call_1"));
    expect(storedText(storage, "a")).toBe("X y");
  });
});

it("refuses an edit of bytes that another call replaced after they were read, until they are read again", async () => {
  await inFreshObject("changed", async ({ storage, staging, workspace }) => {
    workspace.put("a", encode("x y"));
    const [first, second] = [staging.open("call_1"), staging.open("call_2")];
    textAt(second, "a");
    textAt(first, "a");
    first.write("a", encode("X y"));
    storage.transactionSync(() => staging.commit("call_1"));
    await Promise.resolve();
    expect(second.write("a", encode("x Y"))).toEqual({ ok: false, error: { reason: "changed", path: "/workspace/a" } });
    expect(textAt(second, "a")).toBe("X y");
    expect(second.write("a", encode("X Y")).ok).toBe(true);
    storage.transactionSync(() => staging.commit("call_2"));
    expect(storedText(storage, "a")).toBe("X Y");
  });
});

it("keeps a file that another call put into a directory while this one removed it", async () => {
  await inFreshObject("removed-directory", ({ storage, staging, workspace }) => {
    workspace.put("d/old", encode("old"));
    const [remover, writer] = [staging.open("call_1"), staging.open("call_2")];
    expect(remover.remove("d", { recursive: true }).ok).toBe(true);
    expect(writer.write("d/new", encode("new")).ok).toBe(true);
    storage.transactionSync(() => staging.commit("call_1"));
    expect(reasonOf(wake(storage).workspace.get("d"))).toBe("not_found");
    storage.transactionSync(() => staging.commit("call_2"));
    expect(storedText(storage, "d/new")).toBe("new");
    expect(storedText(storage, "d/old")).toBeUndefined();
    const counted = storage.sql.exec("SELECT sum(size) AS bytes, count(*) AS entries FROM workspace_entries").one();
    expect(storage.sql.exec("SELECT bytes, entries FROM workspace_head").one()).toEqual(counted);
  });
});

it("refuses a file where another call is building a directory, and the other way round", async () => {
  await inFreshObject("shapes", ({ staging, workspace }) => {
    workspace.put("tree/leaf", encode("x"));
    const [first, second] = [staging.open("call_1"), staging.open("call_2")];
    first.write("new/file", encode("1"));
    expect(reasonOf(second.write("new", encode("2")))).toBe("busy");
    second.write("name", encode("2"));
    expect(reasonOf(first.write("name/below", encode("1")))).toBe("busy");
    first.write("tree/other", encode("1"));
    expect(second.remove("tree", { recursive: true }).ok).toBe(true);
    expect(reasonOf(second.write("tree", encode("2")))).toBe("busy");
  });
});

it("bounds staged bytes over all calls under way, and frees them when a call settles (P8)", async () => {
  await inFreshObject("staged-bound", ({ staging }) => {
    const third = new Uint8Array(STAGED_BYTES_MAX / 3);
    for (const id of ["call_1", "call_2", "call_3"]) expect(staging.open(id).write(id, third).ok).toBe(true);
    const fourth = staging.open("call_4");
    expect(fourth.write("d", new Uint8Array(1))).toEqual({
      ok: false,
      error: { reason: "staging_full", bytes: STAGED_BYTES_MAX + 1, limit: STAGED_BYTES_MAX },
    });
    staging.discard("call_1");
    expect(fourth.write("d", new Uint8Array(1)).ok).toBe(true);
  });
});

it("never exceeds a limit by commits that were each admitted alone (P8)", async () => {
  await inFreshObject("limits-together", ({ storage, staging, workspace }) => {
    const full = new Uint8Array(FILE_BYTES_MAX);
    for (let at = 0; at < 9; at += 1) workspace.put(`f${at}`, full);
    const [first, second] = [staging.open("call_1"), staging.open("call_2")];
    expect(first.write("a", full.subarray(1)).ok).toBe(true);
    expect(reasonOf(second.write("b", new Uint8Array(2)))).toBe("workspace_full");
    expect(second.append("b", new Uint8Array(1)).ok).toBe(true);
    expect(reasonOf(workspace.put("c", new Uint8Array(1)))).toBe("workspace_full");
    expect(reasonOf(second.append("a", new Uint8Array(2)))).toBe("file_too_large");
    storage.transactionSync(() => staging.commit("call_1"));
    storage.transactionSync(() => staging.commit("call_2"));
    expect(storage.sql.exec("SELECT bytes FROM workspace_head").one()).toEqual({ bytes: WORKSPACE_BYTES_MAX });
  });
});

it("bills a call that wrote one small file two rows, and one that only read none", async () => {
  await inFreshObject("staged-rows", ({ storage, staging, meter }) => {
    staging.open("call_1").write("a", encode("a"));
    meter.reset();
    storage.transactionSync(() => staging.commit("call_1"));
    expect(meter.totals().rowsWritten).toBe(2);
    textAt(staging.open("call_2"), "a");
    meter.reset();
    storage.transactionSync(() => staging.commit("call_2"));
    expect(meter.totals().rowsWritten).toBe(0);
  });
});
