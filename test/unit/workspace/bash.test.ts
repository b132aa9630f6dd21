import { beforeEach, expect, it } from "vitest";
import { BASH_COMMANDS_MAX, BASH_STEPS_MAX } from "../../../src/agent/tools/bash-limits.ts";
import { BASH_STDERR_CHARS_MAX, BASH_STDOUT_CHARS_MAX, bashTool } from "../../../src/agent/tools/bash.ts";
import { ScratchWorkspace } from "../../../src/agent/tools/scratch-workspace.ts";
import { runTool, toolRuntime } from "../../support/tool-runtime.ts";

let workspace: ScratchWorkspace;
beforeEach(() => {
  const bytes = new TextEncoder().encode("oslo,3\nrom,4\noslo,5\nköln,1\n");
  workspace = new ScratchWorkspace({ files: [{ path: "data/in.csv", bytes }], now: () => 1_000 });
});

const bash = (command: string) => runTool(bashTool, { command }, workspace.session);
const stored = (path: string): string | undefined => {
  const read = workspace.session.read(path);
  return read.ok ? new TextDecoder().decode(read.value) : undefined;
};

it("computes with pipelines over workspace files (R2)", async () => {
  expect(await bash("cut -d, -f1 data/in.csv | sort | uniq -c | sort -rn | head -1")).toEqual({
    status: "success",
    content: "   2 oslo\nexit code 0",
  });
  expect((await bash("awk -F, '{s += $2} END {print s}' data/in.csv")).content).toBe("13\nexit code 0");
  expect((await bash(`echo '{"a":[1,2,3]}' | jq -c '.a | map(. * 2)'`)).content).toBe("[2,4,6]\nexit code 0");
  expect((await bash("grep -c oslo < data/in.csv; tail -1 data/in.csv")).content).toBe("2\nköln,1\nexit code 0");
});

it("writes what other tools then read, and keeps directories and scripts", async () => {
  await bash(
    "mkdir -p outputs/deep && sort data/in.csv > outputs/deep/sorted.csv && echo more >> outputs/deep/sorted.csv",
  );
  expect(stored("outputs/deep/sorted.csv")).toBe("köln,1\noslo,3\noslo,5\nrom,4\nmore\n");
  workspace.session.write("run.sh", new TextEncoder().encode('#!/bin/bash\necho "ran $1"\n'));
  expect((await bash("chmod +x run.sh && ./run.sh here")).content).toBe("ran here\nexit code 0");
  expect((await bash("cp -r outputs copy && mv copy moved && rm -r outputs && find moved -type f")).content).toBe(
    "moved/deep/sorted.csv\nexit code 0",
  );
  expect(stored("outputs/deep/sorted.csv")).toBeUndefined();
});

it("keeps bytes that are no text", async () => {
  workspace.session.write("in.bin", new Uint8Array([0, 255, 254, 10, 128]));
  await bash("cat in.bin in.bin > out.bin");
  expect(workspace.session.read("out.bin")).toEqual({
    ok: true,
    value: new Uint8Array([0, 255, 254, 10, 128, 0, 255, 254, 10, 128]),
  });
});

it("keeps the byte order mark of a file that a command edits in place", async () => {
  workspace.session.write("in.csv", new Uint8Array([0xef, 0xbb, 0xbf, ...new TextEncoder().encode("a\nb\n")]));
  await bash("sed -i s/b/c/ in.csv");
  expect(workspace.session.read("in.csv")).toEqual({
    ok: true,
    value: new Uint8Array([0xef, 0xbb, 0xbf, ...new TextEncoder().encode("a\nc\n")]),
  });
});

it("answers output, errors and exit code in that order; a code other than 0 is an error", async () => {
  expect(await bash("echo out; echo err >&2; exit 3")).toEqual({ status: "error", content: "out\nerr\nexit code 3" });
  expect(await bash("true")).toEqual({ status: "success", content: "exit code 0" });
  expect((await bash("cat none")).content).toBe("cat: none: No such file or directory\nexit code 1");
  expect((await bash("if then")).content).toMatch(/syntax error.*\nexit code 2$/s);
});

it("starts every call afresh: variables, directory and /tmp are gone, files stay", async () => {
  await bash("x=1; cd data; echo kept > ../kept; echo lost > /tmp/lost; cat /tmp/lost");
  expect((await bash('echo "[$x]"; pwd; ls /tmp; cat kept')).content).toBe("[]\n/workspace\nkept\nexit code 0");
});

it("reaches nothing outside the workspace: no host files, no network", async () => {
  const { content } = await bash("cat /etc/passwd; cat ../../etc/hostname; curl http://127.0.0.1; ls -a /");
  expect(content).toMatch(/cat: \/etc\/passwd: No such file/);
  expect(content).toMatch(/curl: command not found/);
  expect(content).not.toMatch(/root:|etc\n/);
});

it("calls a command that it lacks not found, without advice that only a developer could follow", async () => {
  expect((await bash("python3 -c 1; nosuch")).content).toBe(
    "bash: python3: command not found\nbash: nosuch: command not found\nexit code 127",
  );
});

it("says why a write was refused, also behind a redirect", async () => {
  expect(await bash("echo x > data/in.csv; echo not reached")).toEqual({
    status: "error",
    content: "bash: stopped: EROFS: /workspace/data/in.csv is read-only here; write to another path\nexit code 1",
  });
  expect((await bash("ln -s data/in.csv link")).content).toMatch(/exit code 1/);
  expect((await bash("touch 'a%2e%2e'")).content).toMatch(/percent-escapes/);
});

it("ends a busy loop at its command bound in bounded time (P8)", async () => {
  const { status, content } = await bash("while true; do :; done");
  expect(status).toBe("error");
  expect(content).toBe(
    `bash: too many commands executed (>${BASH_COMMANDS_MAX}); this is a limit of the shell\nexit code 126`,
  );
});

it.each([
  ["nested awk loops", "awk 'BEGIN { for (i = 0; i < 99999; i++) for (j = 0; j < 99999; j++) k++ }'"],
  ["an awk loop for every line", "seq 90000 | awk '{ for (i = 0; i < 9999; i++) k++ } END { print k }'"],
])("ends %s, which no bound on a single loop would (P8)", async (_what, command) => {
  const { status, content } = await bash(command);
  expect(status).toBe("error");
  expect(content).toContain(`more than ${BASH_STEPS_MAX} steps`);
});

it("does not let a script go on after its steps are spent", async () => {
  const spend = "awk 'BEGIN { for (;;) for (i = 0; i < 9999; i++) k++ }' || true";
  const { status, content } = await bash(`${spend}; echo went on; echo x > proof`);
  expect(status).toBe("error");
  expect(content).not.toContain("went on");
  expect(stored("proof")).toBeUndefined();
});

it.each([
  ["a doubling string", "x=a; while true; do x=$x$x; done", /string length limit/],
  ["a doubling string in awk", `awk 'BEGIN { s = "a"; while (1) s = s s }'`, /size limit/],
  ["a huge format width", "printf '%999999999d' 1", /limit exceeded/],
  ["endless recursion", "f() { f; }; f", /recursion depth/],
  ["a fork bomb", ":(){ :|:& };:", /depth/],
  ["an endless sed branch", "echo a | sed ':a;s/^/x/;ba'", /maximum iterations/],
  ["an endless jq generator", "jq -n '[repeat(1)] | length'", /too many iterations/],
])("ends %s with an error (P8)", async (_what, command, error) => {
  const { status, content } = await bash(command);
  expect(status).toBe("error");
  expect(content).toMatch(error);
  expect(content).not.toContain("executionLimits");
});

it("keeps a thousand appends of one script", async () => {
  const { status } = await bash("for i in $(seq 1 1000); do echo line $i >> log; done");
  expect(status).toBe("success");
  expect(stored("log")?.split("\n").length).toBe(1_001);
});

it("bounds the answer, keeps both ends, names the gap and cuts between code points (P8)", async () => {
  const { content } = await bash(
    "seq 1 20000; for i in $(seq 1 300); do printf 😀😀😀😀😀😀😀😀😀😀 >&2; done; printf END >&2",
  );
  expect(content.length).toBeLessThan(BASH_STDOUT_CHARS_MAX + BASH_STDERR_CHARS_MAX + 300);
  expect(content).toMatch(/^1\n2\n3\n/);
  expect(content).toMatch(/\n20000\n😀/);
  expect(content).toMatch(/\[\.\.\. \d+ of 108893 characters left out \.\.\.\]/);
  expect(content).toMatch(/\[\.\.\. \d+ of 6003 characters left out \.\.\.\]/);
  expect(content).toMatch(/END\nexit code 0$/);
  expect(content.isWellFormed()).toBe(true);
});

it("ends a waiting script when the call is cancelled", async () => {
  const cancel = new AbortController();
  const running = bashTool.execute(
    { command: "sleep 15; echo late > late" },
    toolRuntime(workspace.session, cancel.signal),
  );
  cancel.abort();
  expect(await running).toEqual({ status: "error", content: "bash: stopped: the call was cancelled\nexit code 1" });
  expect(stored("late")).toBeUndefined();
  const never = await bashTool.execute({ command: "echo x > never" }, toolRuntime(workspace.session, cancel.signal));
  expect(never.status).toBe("error");
  expect(stored("never")).toBeUndefined();
});

it("leaves the isolate's globals alone while it runs: other runs share them", async () => {
  const before = [globalThis.Function, globalThis.setTimeout];
  const running = bash("sleep 0.01; echo done");
  await Promise.resolve();
  expect([globalThis.Function, globalThis.setTimeout]).toEqual(before);
  expect((await running).status).toBe("success");
});
