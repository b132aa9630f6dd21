import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

it("R34 R61 R193 the documented example runs in Node as it stands", async () => {
  const page = readFileSync("docs/embedding.md", "utf8");
  const [, example = ""] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];
  const entry = pathToFileURL(resolve("src/agent/embedding.ts")).href;
  const folder = mkdtempSync(join(tmpdir(), "deputy-embedding-"));
  try {
    symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
    writeFileSync(join(folder, "example.mjs"), example.replace('"deputy/agent"', JSON.stringify(entry)));
    expect(example).toContain('from "deputy/agent"');
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, "example.mjs")], { timeout: 60_000 });
    const lines = stdout.trim().split("\n");
    expect(lines.filter((line) => line.startsWith("task_started")).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      "task_started Price of oil",
      "task_started Price of tea",
    ]);
    expect(lines.filter((line) => line.startsWith("task_completed"))).toHaveLength(2);
    expect(lines.slice(-2)).toEqual(["4 and 9", "true"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 90_000);
