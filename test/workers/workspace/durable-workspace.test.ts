import { expect, it } from "vitest";
import { FILE_BYTES_MAX } from "../../../src/domain/workspace/paths.ts";
import {
  SNAPSHOT_BYTES_MAX,
  SNAPSHOT_FILES_MAX,
  type DurableWorkspace,
} from "../../../src/platform/workspace/durable-workspace.ts";
import { WORKSPACE_BYTES_MAX, WORKSPACE_ENTRIES_MAX } from "../../../src/platform/workspace/open-sessions.ts";
import { CHUNK_BYTES_MAX } from "../../../src/platform/workspace/workspace-rows.ts";
import { inFreshObject, wake } from "../../support/workspace-object.ts";

const encode = (text: string) => new TextEncoder().encode(text);

function textAt(workspace: DurableWorkspace, path: string): string | undefined {
  const got = workspace.get(path);
  return got.ok && got.value.kind === "file" ? new TextDecoder().decode(got.value.bytes) : undefined;
}

function reasonOf(result: { ok: boolean; error?: { reason: string } }): string | undefined {
  return result.ok ? undefined : result.error?.reason;
}

/** Bytes that differ from place to place, so that a misplaced chunk shows. */
function pattern(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += 1) bytes[at] = (at * 31 + (at >> 13)) & 0xff;
  return bytes;
}

it("keeps files over a restart: a new instance over the same storage reads what was put (P1)", async () => {
  await inFreshObject("restart", ({ storage, workspace }) => {
    expect(workspace.put("data/a.csv", encode("1,2\n"))).toEqual({
      ok: true,
      value: { entry: { path: "/workspace/data/a.csv", kind: "file", size: 4, modifiedAt: 1_000 }, created: true },
    });
    workspace.put("empty", new Uint8Array());
    const again = wake(storage, () => 2_000).workspace;
    expect(textAt(again, "data/a.csv")).toBe("1,2\n");
    expect(textAt(again, "empty")).toBe("");
    expect(again.put("data/a.csv", encode("3"))).toMatchObject({ value: { created: false } });
    expect(textAt(wake(storage).workspace, "data/a.csv")).toBe("3");
  });
});

it("answers a directory with its direct children, ordered", async () => {
  await inFreshObject("listing", ({ workspace }) => {
    for (const path of ["b/x", "a.txt", "b/c/deep", "b-side", "b.txt"]) workspace.put(path, encode(path));
    const root = workspace.list(".");
    expect(root.ok && root.value.map((entry) => entry.path)).toEqual(
      ["a.txt", "b", "b-side", "b.txt"].map((name) => `/workspace/${name}`),
    );
    expect(workspace.get("b")).toMatchObject({
      value: {
        kind: "directory",
        entries: [{ path: "/workspace/b/c", kind: "directory" }, { path: "/workspace/b/x" }],
      },
    });
    expect(reasonOf(workspace.list("a.txt"))).toBe("not_a_directory");
    expect(reasonOf(workspace.get("none"))).toBe("not_found");
    expect(reasonOf(workspace.put("../x", encode("")))).toBe("path_refused");
  });
});

it("deletes files and whole directories without touching names that only start alike", async () => {
  await inFreshObject("delete", ({ workspace }) => {
    for (const path of ["d/1", "d/e/2", "d-other/3", "d0/4", "d.txt"]) workspace.put(path, encode(path));
    expect(reasonOf(workspace.delete("d", { recursive: false }))).toBe("not_empty");
    expect(workspace.delete("d", { recursive: true }).ok).toBe(true);
    expect(reasonOf(workspace.get("d/e/2"))).toBe("not_found");
    expect(textAt(workspace, "d-other/3")).toBe("d-other/3");
    expect(textAt(workspace, "d0/4")).toBe("d0/4");
    expect(workspace.delete("d.txt", { recursive: false }).ok).toBe(true);
    expect(reasonOf(workspace.delete("d.txt", { recursive: false }))).toBe("not_found");
    const root = workspace.list(".");
    expect(root.ok && root.value.map((entry) => entry.path)).toEqual(["/workspace/d-other", "/workspace/d0"]);
  });
});

it("splits a file past one row: 10 MiB comes back byte for byte and no row holds more than its bound", async () => {
  await inFreshObject("chunks", ({ storage, workspace }) => {
    const bytes = pattern(FILE_BYTES_MAX);
    expect(workspace.put("big.bin", bytes).ok).toBe(true);
    const got = wake(storage).workspace.get("big.bin");
    expect(got.ok && got.value.kind === "file" && Buffer.from(got.value.bytes).equals(Buffer.from(bytes))).toBe(true);
    const largest = storage.sql.exec<{ size: number }>(
      "SELECT max(size) AS size FROM (SELECT length(body) AS size FROM workspace_chunks UNION SELECT length(body) FROM workspace_entries)",
    );
    expect(largest.one().size).toBe(CHUNK_BYTES_MAX);
    expect(workspace.put("big.bin", pattern(10)).ok).toBe(true);
    expect(storage.sql.exec("SELECT 1 FROM workspace_chunks").toArray()).toEqual([]);
    expect(workspace.get("big.bin")).toMatchObject({ value: { bytes: pattern(10) } });
  });
});

it("removes all rows of a large file that is deleted", async () => {
  await inFreshObject("delete-chunks", ({ storage, workspace }) => {
    workspace.put("big", pattern(CHUNK_BYTES_MAX * 2 + 1));
    workspace.delete("big", { recursive: false });
    expect(storage.sql.exec("SELECT 1 FROM workspace_chunks").toArray()).toEqual([]);
    expect(storage.sql.exec("SELECT version, bytes, entries FROM workspace_head").one()).toMatchObject({
      bytes: 0,
      entries: 0,
    });
  });
});

it("bills what changed: two rows for a small file, none for the same bytes, one chunk of a large one", async () => {
  await inFreshObject("rows", ({ meter, workspace }) => {
    const rowsOf = (work: () => unknown): number => {
      meter.reset();
      work();
      return meter.totals().rowsWritten;
    };
    const large = pattern(CHUNK_BYTES_MAX * 3);
    expect(rowsOf(() => workspace.put("a.txt", encode("one")))).toBe(2);
    expect(rowsOf(() => workspace.put("a.txt", encode("one")))).toBe(0);
    expect(rowsOf(() => workspace.put("a.txt", encode("two")))).toBe(2);
    expect(rowsOf(() => workspace.put("d/e/b.txt", encode("b")))).toBe(4);
    expect(rowsOf(() => workspace.put("large", large))).toBe(4);
    const changed = large.slice();
    changed[CHUNK_BYTES_MAX + 5]! ^= 1;
    expect(rowsOf(() => workspace.put("large", changed))).toBe(3);
    expect(rowsOf(() => workspace.delete("a.txt", { recursive: false }))).toBe(2);
    expect(rowsOf(() => [workspace.get("large"), workspace.list("."), workspace.get("none")])).toBe(0);
  });
});

it("refuses a file past 10 MiB and a workspace past 100 MiB, and stores nothing of it (P8)", async () => {
  await inFreshObject("limits", ({ storage, workspace }) => {
    expect(workspace.put("huge", new Uint8Array(FILE_BYTES_MAX + 1))).toEqual({
      ok: false,
      error: { reason: "file_too_large", path: "/workspace/huge", bytes: FILE_BYTES_MAX + 1, limit: FILE_BYTES_MAX },
    });
    const full = new Uint8Array(FILE_BYTES_MAX);
    for (let at = 0; at < 10; at += 1) expect(workspace.put(`f${at}`, full).ok).toBe(true);
    expect(workspace.put("d/one-more", new Uint8Array(1))).toEqual({
      ok: false,
      error: { reason: "workspace_full", bytes: WORKSPACE_BYTES_MAX + 1, limit: WORKSPACE_BYTES_MAX },
    });
    expect(reasonOf(workspace.get("d"))).toBe("not_found");
    // Replacing does not grow, so it is no reason to refuse.
    expect(workspace.put("f0", full.fill(1)).ok).toBe(true);
    expect(workspace.put("f0", new Uint8Array(1)).ok).toBe(true);
    expect(wake(storage).workspace.put("d/one-more", new Uint8Array(1)).ok).toBe(true);
  });
});

it("bounds the number of entries, created parents included (P8)", async () => {
  await inFreshObject("entries", ({ storage, workspace }) => {
    storage.sql.exec("INSERT INTO workspace_head VALUES (1, 1, 0, ?)", WORKSPACE_ENTRIES_MAX - 2);
    expect(reasonOf(workspace.put("a/b/c", encode("x")))).toBe("too_many_entries");
    expect(workspace.put("a/c", encode("x")).ok).toBe(true);
    expect(reasonOf(workspace.put("d", encode("x")))).toBe("too_many_entries");
    expect(workspace.put("a/c", encode("y")).ok).toBe(true);
  });
});

it("keeps the head's sums equal to the sums over entries", async () => {
  await inFreshObject("sums", ({ storage, workspace }) => {
    workspace.put("a/b/c", pattern(10));
    workspace.put("a/b/c", pattern(3));
    workspace.put("large", pattern(CHUNK_BYTES_MAX + 7));
    workspace.put("gone", pattern(5));
    workspace.delete("gone", { recursive: false });
    workspace.delete("a", { recursive: true });
    workspace.put("a", pattern(2));
    const counted = storage.sql.exec("SELECT sum(size) AS bytes, count(*) AS entries FROM workspace_entries").one();
    expect(storage.sql.exec("SELECT bytes, entries FROM workspace_head").one()).toEqual(counted);
  });
});

it("snapshots named files for a batch, within its bounds", async () => {
  await inFreshObject("snapshot", ({ workspace }) => {
    workspace.put("data/a", encode("a"));
    workspace.put("b", encode("b"));
    expect(workspace.snapshotFiles(["data/a", "/workspace/b", "b"])).toEqual({
      ok: true,
      value: [
        { path: "/workspace/data/a", bytes: encode("a") },
        { path: "/workspace/b", bytes: encode("b") },
      ],
    });
    expect(workspace.snapshotFiles(["b", "none"])).toEqual({
      ok: false,
      error: { reason: "not_found", path: "/workspace/none" },
    });
    expect(reasonOf(workspace.snapshotFiles(["data"]))).toBe("not_a_file");
    expect(workspace.snapshotFiles(Array.from({ length: SNAPSHOT_FILES_MAX + 1 }, () => "b"))).toEqual({
      ok: false,
      error: { reason: "too_many_files", count: SNAPSHOT_FILES_MAX + 1, limit: SNAPSHOT_FILES_MAX },
    });
    workspace.put("half", pattern(SNAPSHOT_BYTES_MAX / 2));
    workspace.put("other", pattern(SNAPSHOT_BYTES_MAX / 2));
    expect(workspace.snapshotFiles(["half", "other"]).ok).toBe(true);
    expect(workspace.snapshotFiles(["half", "other", "b"])).toEqual({
      ok: false,
      error: { reason: "snapshot_too_large", bytes: SNAPSHOT_BYTES_MAX + 1, limit: SNAPSHOT_BYTES_MAX },
    });
  });
});
