import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startModelServer } from "../../support/model-server.ts";

/** A folder of a caller's: Deputy is linked, as npm links a folder, so `deputy/agent` goes through the package's exports. */
async function runProgram(source: string, { ownLangChain }: { readonly ownLangChain: boolean }): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "deputy-embedding-"));
  const modules = join(folder, "node_modules");
  try {
    mkdirSync(join(modules, "@langchain"), { recursive: true });
    symlinkSync(resolve("."), join(modules, "deputy"));
    for (const name of readdirSync("node_modules").filter((each) => !["@langchain", "deputy"].includes(each)))
      symlinkSync(resolve("node_modules", name), join(modules, name));
    for (const name of readdirSync("node_modules/@langchain")) {
      const [from, to] = [resolve("node_modules/@langchain", name), join(modules, "@langchain", name)];
      if (ownLangChain) cpSync(from, to, { recursive: true });
      else symlinkSync(from, to);
    }
    writeFileSync(join(folder, "program.mjs"), source);
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, "program.mjs")], { timeout: 60_000 });
    return stdout.trim().split("\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("a program of the caller's, in plain Node", () => {
  it("R34 R61 R193 the documented example runs in Node as it stands", async () => {
    const page = readFileSync("docs/embedding.md", "utf8");
    const [, example = ""] = /```ts\n([\s\S]*?)```/.exec(page) ?? [];
    expect(example).toContain('from "deputy/agent"');
    const lines = await runProgram(example, { ownLangChain: false });
    expect(lines.filter((line) => line.startsWith("task_started")).toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      "task_started Price of oil",
      "task_started Price of tea",
    ]);
    expect(lines.filter((line) => line.startsWith("task_completed"))).toHaveLength(2);
    expect(lines.slice(-2)).toEqual(["4 and 9", "true"]);
  }, 90_000);

  it("models and tools of another copy of LangChain than Deputy's work: no argument of a call is lost", async () => {
    const server = await startModelServer();
    try {
      const lines = await runProgram(
        `import { ChatOpenAI } from "@langchain/openai";
import { tool } from "@langchain/core/tools";
import { z } from "zod";
import { createDeputyAgent, SubagentRuntime } from "deputy/agent";
const double = tool(async ({ of }) => String(2 * of), { name: "double", description: "", schema: z.object({ of: z.number() }) });
const model = new ChatOpenAI({ model: "m", apiKey: "k", maxRetries: 0, configuration: { baseURL: ${JSON.stringify(server.url)} } });
const agent = createDeputyAgent({ model, tools: [double], subagentRuntime: new SubagentRuntime() });
const content = "@ delegate general-purpose :: Double :: <<'JOB'\\n@ call double {\\"of\\": 21}\\n@ say it is {{result:1}}\\nJOB\\n@ say {{result:1:word after is }}";
const { messages } = await agent.invoke({ messages: [{ role: "user", content }] });
console.log(messages.at(-1).content);`,
        { ownLangChain: true },
      );
      expect(lines.at(-1)).toBe("42");
      expect(server.violations).toEqual([]);
    } finally {
      await server.close();
    }
  }, 90_000);
});
