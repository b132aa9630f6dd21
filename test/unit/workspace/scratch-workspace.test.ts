import { expect, it } from "vitest";
import {
  OUTPUTS_BYTES_MAX,
  SCRATCH_BYTES_MAX,
  SCRATCH_ENTRIES_MAX,
  ScratchWorkspace,
} from "../../../src/agent/tools/scratch-workspace.ts";
import { FILE_BYTES_MAX } from "../../../src/domain/workspace/paths.ts";

const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function scratch(files: Record<string, string> = {}): ScratchWorkspace {
  const snapshot = Object.entries(files).map(([path, text]) => ({ path, bytes: encode(text) }));
  return new ScratchWorkspace({ files: snapshot, now: () => 5 });
}

function refusalOf(result: { ok: boolean; error?: { reason: string } }): string | undefined {
  return result.ok ? undefined : result.error?.reason;
}

it("shows an item its snapshot, and lets it change none of it", () => {
  const { session } = scratch({ "/workspace/data/a.csv": "1\n" });
  const read = session.read("data/a.csv");
  expect(read.ok && decode(read.value)).toBe("1\n");
  expect(refusalOf(session.write("data/a.csv", encode("2")))).toBe("read_only");
  expect(refusalOf(session.append("data/a.csv", encode("2")))).toBe("read_only");
  expect(refusalOf(session.remove("data/a.csv", { recursive: false }))).toBe("read_only");
  expect(refusalOf(session.remove("data", { recursive: true }))).toBe("read_only");
  expect(session.list("data")).toMatchObject({ ok: true, value: [{ path: "/workspace/data/a.csv", size: 2 }] });
});

it("returns what was written below outputs, and nothing else", () => {
  const workspace = scratch({ "/workspace/outputs/given.txt": "given" });
  const { session } = workspace;
  session.write("outputs/b.txt", encode("b"));
  session.append("outputs/a/log", encode("1"));
  session.append("outputs/a/log", encode("2"));
  session.write("outputs/gone.txt", encode("x"));
  session.remove("outputs/gone.txt", { recursive: false });
  session.write("notes.txt", encode("working file"));
  const outputs = workspace.outputs().map(({ path, bytes }) => [path, decode(bytes)]);
  expect(outputs).toEqual([
    ["/workspace/outputs/a/log", "12"],
    ["/workspace/outputs/b.txt", "b"],
  ]);
});

it("refuses, when they are written, outputs that an item's result could not carry (P8)", () => {
  const workspace = scratch();
  const half = new Uint8Array(OUTPUTS_BYTES_MAX / 2);
  expect(workspace.session.write("outputs/1", half).ok).toBe(true);
  expect(workspace.session.write("outputs/2", half).ok).toBe(true);
  expect(workspace.session.append("outputs/2", new Uint8Array(1))).toEqual({
    ok: false,
    error: { reason: "outputs_full", bytes: OUTPUTS_BYTES_MAX + 1, limit: OUTPUTS_BYTES_MAX },
  });
  expect(workspace.session.write("elsewhere", new Uint8Array(1)).ok).toBe(true);
  expect(workspace.outputs().reduce((sum, file) => sum + file.bytes.byteLength, 0)).toBe(OUTPUTS_BYTES_MAX);
});

it("bounds bytes and entries of the scratch (P8)", () => {
  const { session } = scratch();
  expect(refusalOf(session.write("big", new Uint8Array(SCRATCH_BYTES_MAX + 1)))).toBe("workspace_full");
  expect(refusalOf(session.write("huge", new Uint8Array(FILE_BYTES_MAX + 1)))).toBe("file_too_large");
  for (let at = 0; at < SCRATCH_ENTRIES_MAX; at += 1) expect(session.write(`f${at}`, new Uint8Array()).ok).toBe(true);
  expect(refusalOf(session.write("one-more", new Uint8Array()))).toBe("too_many_entries");
  expect(refusalOf(session.write("a/b", new Uint8Array()))).toBe("too_many_entries");
});

it("shares one session between an item's calls, so a later call reads what an earlier one wrote", () => {
  const workspace = scratch();
  workspace.open("call_1").write("a.txt", encode("1"));
  workspace.commit("call_1");
  expect(workspace.open("call_2").read("a.txt").ok).toBe(true);
});

it("lets a file stand where a directory was, and the other way round", () => {
  const { session } = scratch();
  session.write("x/y", encode("1"));
  session.remove("x", { recursive: true });
  session.write("x", encode("file"));
  expect(session.stat("x")).toMatchObject({ value: { kind: "file", size: 4 } });
  session.remove("x", { recursive: false });
  session.makeDirectory("x");
  expect(session.list(".")).toMatchObject({ value: [{ path: "/workspace/x", kind: "directory" }] });
});
