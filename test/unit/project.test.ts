import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

/** The file of each package that could not be what it is without it. */
const USED_BY: Readonly<Record<string, string>> = {
  "@cloudflare/workers-types": "tsconfig.json",
  "@langchain/langgraph": "src/agent/graph/agent-graph.ts",
  "drizzle-orm": "src/platform/d1/schema/batches.ts",
  hono: "src/gateway/app.ts",
  miniflare: "test/support/restart-harness.ts",
  vitest: "vitest.node.config.ts",
  wrangler: "package.json",
  zod: "src/config.ts",
};

const LAYERS = ["agent", "domain", "durable-objects", "gateway", "platform", "protocol", "queue-consumers"];

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;

function usesPackage(name: string, file: string): boolean {
  // `package.json` names what it declares, so there a command has to start with it.
  if (file === "package.json") return Object.values(manifest.scripts).some((script) => script.startsWith(`${name} `));
  return new RegExp(`"${name}(/[^"]*)?"`).test(readFileSync(file, "utf8"));
}

describe("the project", () => {
  it("R207 the top level and the layers of src are the design's", () => {
    const folders = ["bench", "docs", "migrations", "src", "test"];
    const files = ["deputy.config.ts", "wrangler.toml", "src/worker.ts", "src/env.ts", "src/config.ts"];
    expect([...folders, ...files].filter((path) => !existsSync(path))).toEqual([]);
    const layers = readdirSync("src", { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(layers.map((entry) => entry.name).sort()).toEqual(LAYERS);
  });

  it("R208 R209 each named package is declared and something uses it", () => {
    const declared = { ...manifest.dependencies, ...manifest.devDependencies };
    expect(Object.keys(USED_BY).filter((name) => declared[name] === undefined)).toEqual([]);
    expect(Object.entries(USED_BY).filter(([name, file]) => !usesPackage(name, file))).toEqual([]);
    expect(usesPackage("hono", "src/config.ts")).toBe(false);
  });
});
