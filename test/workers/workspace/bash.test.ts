import { expect, it } from "vitest";
import { BASH_COMMANDS_MAX, BASH_STEPS_MAX } from "../../../src/agent/tools/bash-limits.ts";
import { bashTool } from "../../../src/agent/tools/bash.ts";
import { strReplaceTool, writeFileTool } from "../../../src/agent/tools/write-files.ts";
import { runTool } from "../../support/tool-runtime.ts";
import { inFreshObject, wake } from "../../support/workspace-object.ts";

const encode = (text: string) => new TextEncoder().encode(text);

it("computes in workerd over the thread's files, and commits what it wrote with the call (R2)", async () => {
  await inFreshObject("bash-pipeline", async ({ storage, staging, workspace }) => {
    workspace.put("data/in.csv", encode("oslo,3\nrom,4\noslo,5\nköln,1\n"));
    const session = staging.open("call_1");
    const command = [
      "cut -d, -f1 data/in.csv | sort | uniq -c | sort -rn | head -1",
      "awk -F, '{s += $2} END {print s}' data/in.csv | tee sum.txt",
      "jq -R 'split(\",\")[0]' data/in.csv | tail -1",
    ].join("\n");
    expect(await runTool(bashTool, { command }, session)).toEqual({
      status: "success",
      content: '   2 oslo\n13\n"köln"\nexit code 0',
    });
    expect(wake(storage).workspace.get("sum.txt")).toMatchObject({ error: { reason: "not_found" } });
    storage.transactionSync(() => staging.commit("call_1"));
    expect(wake(storage).workspace.get("sum.txt")).toMatchObject({ value: { bytes: encode("13\n") } });
  });
});

it("ends busy loops in workerd, where no clock runs while code computes (P8)", async () => {
  await inFreshObject("bash-busy", async ({ staging }) => {
    const loop = await runTool(bashTool, { command: "while true; do :; done" }, staging.open("call_1"));
    expect(loop.content).toContain(`too many commands executed (>${BASH_COMMANDS_MAX})`);
    const nested = "awk 'BEGIN { for (i = 0; i < 99999; i++) for (j = 0; j < 99999; j++) k++ }'";
    const awk = await runTool(bashTool, { command: nested }, staging.open("call_2"));
    expect(awk.content).toContain(`more than ${BASH_STEPS_MAX} steps`);
  });
});

it("ends doubling strings in workerd long before the isolate's memory does (P8)", async () => {
  await inFreshObject("bash-memory", async ({ staging }) => {
    const session = staging.open("call_1");
    for (const command of ["x=a; while true; do x=$x$x; done", `awk 'BEGIN { s = "a"; while (1) s = s s }'`]) {
      expect(await runTool(bashTool, { command }, session)).toMatchObject({
        status: "error",
        content: expect.stringMatching(/limit exceeded \(4194304 bytes\)/),
      });
    }
  });
});

it("keeps the appends of shells that run at the same time", async () => {
  await inFreshObject("bash-parallel", async ({ storage, staging }) => {
    const calls = ["call_1", "call_2", "call_3"];
    const scripts = calls.map((id) =>
      runTool(bashTool, { command: `for i in 1 2 3; do echo ${id} $i >> log; done` }, staging.open(id)),
    );
    for (const outcome of await Promise.all(scripts)) expect(outcome.status).toBe("success");
    storage.transactionSync(() => calls.forEach((id) => staging.commit(id)));
    const got = wake(storage).workspace.get("log");
    const text = got.ok && got.value.kind === "file" ? new TextDecoder().decode(got.value.bytes) : "";
    expect(text).toBe(calls.flatMap((id) => [1, 2, 3].map((i) => `${id} ${i}\n`)).join(""));
  });
});

it("refuses the second of two parallel str_replace calls on one file, and says to try again", async () => {
  await inFreshObject("parallel-edit", async ({ storage, staging, workspace }) => {
    workspace.put("a.md", encode("one two"));
    const first = { path: "a.md", old_str: "one", new_str: "1" };
    const second = { path: "a.md", old_str: "two", new_str: "2" };
    expect((await runTool(strReplaceTool, first, staging.open("call_1"))).status).toBe("success");
    const refused = await runTool(strReplaceTool, second, staging.open("call_2"));
    expect(refused).toEqual({
      status: "error",
      content: "Error: /workspace/a.md is being changed by another call that runs at the same time; try again",
    });
    storage.transactionSync(() => staging.commit("call_1"));
    storage.transactionSync(() => staging.commit("call_2"));
    await Promise.resolve();
    expect((await runTool(strReplaceTool, second, staging.open("call_3"))).status).toBe("success");
    storage.transactionSync(() => staging.commit("call_3"));
    expect(wake(storage).workspace.get("a.md")).toMatchObject({ value: { bytes: encode("1 2") } });
  });
});

it("a tool call that runs again after a crash happens exactly once (P2)", async () => {
  await inFreshObject("exactly-once", async ({ storage, staging }) => {
    const args = { path: "log", content: "line\n", append: true };
    await runTool(writeFileTool, args, staging.open("call_1"));
    // The crash: this instance's memory is gone, the result never committed, so recovery runs the call again.
    const again = wake(storage);
    await runTool(writeFileTool, args, again.staging.open("call_1"));
    storage.transactionSync(() => again.staging.commit("call_1"));
    expect(wake(storage).workspace.get("log")).toMatchObject({ value: { bytes: encode("line\n") } });
  });
});
