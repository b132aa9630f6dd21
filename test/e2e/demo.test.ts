import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

interface Demo {
  readonly output: string;
  readonly code: number | null;
  readonly seconds: number;
}

function runDemo(interruptAt?: string): Promise<Demo> {
  const startedAt = Date.now();
  const child = spawn(process.execPath, ["scripts/demo.ts"], {
    env: { ...process.env, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", API_KEYS: "" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      if (interruptAt !== undefined && output.includes(interruptAt)) child.kill("SIGINT");
    });
  }
  return new Promise((ended) => {
    child.once("exit", (code) => {
      ended({ output, code, seconds: (Date.now() - startedAt) / 1_000 });
    });
  });
}

/** Command lines of processes that mention the demo's state folder. */
function leftBehind(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    })
    .filter((line) => line.includes("deputy-demo-"));
}

it("the demo delegates, runs its batch, and its numbers equal a direct computation, in under a minute", async () => {
  const demo = await runDemo();
  expect(demo.output).toContain("ok: the answer holds the numbers a direct computation gives (1226.0,");
  expect(demo.output).toContain("ok: 40 of 40 results equal a direct computation");
  expect(demo.output).not.toContain("NOT OK");
  expect(demo.code).toBe(0);
  expect(leftBehind()).toEqual([]);
});

it("Ctrl-C in the middle leaves nothing running", async () => {
  const demo = await runDemo("A lead agent delegates");
  expect(demo.output).not.toContain("40/40");
  expect(leftBehind()).toEqual([]);
});
