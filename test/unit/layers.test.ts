import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { describe, expect, it } from "vitest";

/** House style, Layers: what each folder may import. Packages by name or by prefix ending in "*". */
const LAYERS: Readonly<Record<string, { readonly layers: readonly string[]; readonly packages: readonly string[] }>> = {
  domain: { layers: ["domain"], packages: [] },
  protocol: { layers: ["protocol", "domain"], packages: ["zod"] },
  agent: {
    layers: ["agent", "domain", "protocol", "config.ts"],
    packages: [
      "zod",
      "@langchain/*",
      "@cfworker/json-schema",
      "just-bash*",
      "eventsource-parser*",
      "@agentclientprotocol/sdk",
      "node:*",
    ],
  },
  platform: {
    layers: ["platform", "domain", "protocol", "agent", "config.ts"],
    packages: [
      "cloudflare:*",
      "drizzle-orm*",
      "@langchain/langgraph-checkpoint",
      "@langchain/core*",
      "uuid",
      "ipaddr.js",
      "node:*",
    ],
  },
  gateway: {
    layers: ["gateway", "domain", "protocol", "platform"],
    packages: ["zod", "hono*", "hono-openapi*", "node:*"],
  },
  "durable-objects": {
    layers: ["durable-objects", "domain", "protocol", "agent", "platform", "config.ts", "env.ts"],
    packages: ["cloudflare:*", "@langchain/*", "node:*"],
  },
  "queue-consumers": {
    layers: ["queue-consumers", "domain", "protocol", "agent", "platform", "config.ts", "env.ts"],
    packages: ["@langchain/*", "node:*"],
  },
  "config.ts": { layers: [], packages: ["zod"] },
  "env.ts": { layers: ["config.ts", "protocol"], packages: ["zod"] },
};

interface Import {
  readonly from: string;
  readonly specifier: string;
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|(?:^|\n)\s*import\s+"([^"]+)"|import\(\s*"([^"]+)"/g;

function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORT)].map((match) => ({ from: file, specifier: match[1] ?? match[2] ?? match[3] ?? "" }));
}

function layerOf(file: string): string {
  return relative("src", file).split("/")[0] ?? "";
}

function violation({ from, specifier }: Import): string | undefined {
  const rule = LAYERS[layerOf(from)];
  if (rule === undefined)
    return layerOf(from) === "worker.ts" || layerOf(from) === "async-context.ts" ? undefined : `${from}: no layer`;
  if (specifier.startsWith(".")) {
    const target = layerOf(normalize(join(dirname(from), specifier)));
    return rule.layers.includes(target) ? undefined : `${from} imports ${target}`;
  }
  const allowed = rule.packages.some((name) =>
    name.endsWith("*") ? specifier.startsWith(name.slice(0, -1)) : name === specifier,
  );
  return allowed ? undefined : `${from} imports package ${specifier}`;
}

const files = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => join("src", name));
const imports = files.flatMap((file) => importsOf(file, readFileSync(file, "utf8")));

describe("layers", () => {
  it("saw the source", () => {
    expect(files.length).toBeGreaterThan(100);
    expect(imports.length).toBeGreaterThan(500);
  });

  it("every import follows an arrow of the architecture", () => {
    expect(imports.map(violation).filter((found) => found !== undefined)).toEqual([]);
  });

  it("would catch each kind of wrong arrow", () => {
    const wrong: Import[] = [
      { from: "src/domain/run/recovery.ts", specifier: "zod" },
      { from: "src/domain/run/recovery.ts", specifier: "../../protocol/runs.ts" },
      { from: "src/agent/tools/task.ts", specifier: "cloudflare:workers" },
      { from: "src/gateway/app.ts", specifier: "../durable-objects/thread-object.ts" },
      { from: "src/queue-consumers/batch-items.ts", specifier: "hono" },
    ];
    expect(wrong.map(violation).filter((found) => found === undefined)).toEqual([]);
  });
});
