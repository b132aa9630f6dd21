import { beforeEach, expect, it } from "vitest";
import { LS_ENTRIES_MAX, lsTool, READ_FILE_CHARS_MAX, readFileTool } from "../../../src/agent/tools/read-files.ts";
import { ScratchWorkspace } from "../../../src/agent/tools/scratch-workspace.ts";
import { workspaceTools } from "../../../src/agent/tools/workspace-tools.ts";
import { strReplaceTool, writeFileTool } from "../../../src/agent/tools/write-files.ts";
import { runTool } from "../../support/tool-runtime.ts";

let workspace: ScratchWorkspace;
beforeEach(() => {
  workspace = new ScratchWorkspace({ files: [], now: () => 0 });
});

const write = (path: string, content: string, append?: boolean) =>
  runTool(writeFileTool, { path, content, ...(append === undefined ? {} : { append }) }, workspace.session);
const read = (args: Record<string, unknown>) => runTool(readFileTool, args, workspace.session);
const replace = (args: Record<string, unknown>) => runTool(strReplaceTool, args, workspace.session);
const ls = (path: string) => runTool(lsTool, { path }, workspace.session);

it("offers the five tools in their order, each with its arguments and safe to run again", () => {
  const offered = workspaceTools().map((tool) => [tool.name, Object.keys(tool.parameters.shape), tool.recovery]);
  expect(offered).toEqual([
    ["bash", ["command", "description"], "safe"],
    ["ls", ["path", "description"], "safe"],
    ["read_file", ["path", "start_line", "end_line", "description"], "safe"],
    ["write_file", ["path", "content", "append", "description"], "safe"],
    ["str_replace", ["path", "old_str", "new_str", "replace_all", "description"], "safe"],
  ]);
});

it("describes every argument, so that a model need not guess", () => {
  for (const tool of workspaceTools()) {
    for (const [name, field] of Object.entries(tool.parameters.shape)) {
      expect([tool.name, name, field.description ?? ""]).toEqual([tool.name, name, expect.stringMatching(/.{10}/)]);
    }
  }
});

it("writes, replaces and appends text as given", async () => {
  expect(await write("notes/a.txt", "größe\n")).toEqual({
    status: "success",
    content: "Wrote 8 bytes into notes/a.txt",
  });
  await write("notes/a.txt", "two", true);
  expect(await read({ path: "/workspace/notes/a.txt" })).toEqual({ status: "success", content: "größe\ntwo" });
  await write("notes/a.txt", "");
  expect(await read({ path: "notes/a.txt" })).toEqual({ status: "success", content: "(empty file)" });
});

it("reads line ranges exactly as stored, and says where the file ends", async () => {
  await write("a", "1\n2\r\n3\n\n5");
  expect((await read({ path: "a", start_line: 2, end_line: 4 })).content).toBe("2\r\n3\n\n");
  expect((await read({ path: "a", start_line: 5 })).content).toBe("5");
  expect((await read({ path: "a", start_line: 4, end_line: 99 })).content).toBe("\n5");
  expect(await read({ path: "a", start_line: 6 })).toEqual({
    status: "error",
    content: "Error: a has 5 lines; start_line 6 is past the end",
  });
  expect((await read({ path: "a", start_line: 3, end_line: 2 })).status).toBe("error");
});

it("bounds what read_file answers, and names the line to go on with (P8)", async () => {
  const lines = Array.from({ length: 3_000 }, (_, at) => `${at + 1}`.padEnd(29, "."));
  await write("long", `${lines.join("\n")}\n`);
  const first = await read({ path: "long" });
  expect(first.content.length).toBeLessThanOrEqual(READ_FILE_CHARS_MAX + 100);
  const next = Number(/go on with start_line (\d+)\]$/.exec(first.content)?.[1]);
  expect(lines[next - 2]).toBe(first.content.split("\n").at(-2));
  expect((await read({ path: "long", start_line: next })).content.startsWith(lines[next - 1]!)).toBe(true);
});

it("cuts one endless line between code points", async () => {
  await write("line", `x${"😀".repeat(READ_FILE_CHARS_MAX)}`);
  const { content } = await read({ path: "line" });
  expect(content).toMatch(/\[line 1 of 1 is cut: \d+ of \d+ characters shown\]$/);
  expect(content.isWellFormed()).toBe(true);
  expect(content.length).toBeLessThan(READ_FILE_CHARS_MAX + 100);
});

it("refuses binary files in read_file and str_replace instead of showing or damaging them", async () => {
  workspace.session.write("nul", new Uint8Array([65, 0, 66]));
  workspace.session.write("latin1", new Uint8Array([0xe9]));
  for (const path of ["nul", "latin1"]) {
    expect((await read({ path })).content).toMatch(/not UTF-8 text/);
    expect((await replace({ path, old_str: "A", new_str: "B" })).content).toMatch(/not UTF-8 text/);
  }
  expect(workspace.session.read("nul")).toEqual({ ok: true, value: new Uint8Array([65, 0, 66]) });
});

it("keeps a byte order mark when a file is edited", async () => {
  workspace.session.write("bom", new Uint8Array([0xef, 0xbb, 0xbf, 97]));
  await replace({ path: "bom", old_str: "a", new_str: "b" });
  expect(workspace.session.read("bom")).toEqual({ ok: true, value: new Uint8Array([0xef, 0xbb, 0xbf, 98]) });
});

it("str_replace changes exactly one occurrence, or says how many there are", async () => {
  await write("a", "x y x");
  expect(await replace({ path: "a", old_str: "x", new_str: "z" })).toEqual({
    status: "error",
    content: "Error: old_str occurs 2 times in a; make it longer until it is unique, or set replace_all",
  });
  expect((await replace({ path: "a", old_str: "w", new_str: "z" })).content).toMatch(/occurs 0 times in a/);
  expect((await read({ path: "a" })).content).toBe("x y x");
  expect((await replace({ path: "a", old_str: "y", new_str: "$&$1" })).content).toBe("Replaced 1 occurrence in a");
  expect((await replace({ path: "a", old_str: "x", new_str: "", replace_all: true })).content).toBe(
    "Replaced 2 occurrences in a",
  );
  expect((await read({ path: "a" })).content).toBe(" $&$1 ");
});

it("refuses a replacement that would grow past a file's bound before building it (P8)", async () => {
  await write("a", "a".repeat(100_000));
  const outcome = await replace({ path: "a", old_str: "a", new_str: "b".repeat(100_000), replace_all: true });
  expect(outcome.content).toMatch(/would have 10000000000 bytes; a file has at most 10485760/);
});

it("lists directories, sizes and emptiness, and bounds the listing", async () => {
  expect((await ls(".")).content).toBe("(empty directory)");
  await write("b.txt", "12345");
  await write("a/c", "");
  expect((await ls("/workspace")).content).toBe("a/\nb.txt\t5");
  for (let at = 0; at <= LS_ENTRIES_MAX; at += 1) workspace.session.write(`many/${at}`, new Uint8Array());
  expect((await ls("many")).content.split("\n").at(-1)).toBe("[... 1 more entries]");
});

it("names what was wrong with a path, and what is allowed", async () => {
  expect(await ls("../etc")).toEqual({
    status: "error",
    content: 'Error: the path "../etc" is not allowed: .. is not allowed; name the path from /workspace',
  });
  expect((await read({ path: "/etc/passwd" })).content).toMatch(/paths are relative or below \/workspace/);
  expect((await read({ path: "none" })).content).toBe("Error: /workspace/none does not exist");
  expect((await write("a/../b", "x")).status).toBe("error");
});
