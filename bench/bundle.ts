/**
 * Size of the script as it would be deployed, and its active startup time: the part of `wrangler check startup`'s CPU
 * profile (workerd evaluating the bundle's modules) that is not idle. Cloudflare allows 64 MiB and one second.
 * Two spreads tell where the startup goes when it grows: median and worst of several profiles.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { type BenchRow, percentile, rounded } from "./bench-row.ts";

const ROOT = resolve(import.meta.dirname, "..");
const WRANGLER = join(ROOT, "node_modules/wrangler/bin/wrangler.js");

const PROFILES = 5;
const WRANGLER_TIMEOUT_MS = 60_000;

interface CpuProfile {
  readonly nodes: readonly { readonly id: number; readonly callFrame: { readonly functionName: string } }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export async function bundleBench(): Promise<BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "deputy-bench-"));
  try {
    await wrangler(["deploy", "--dry-run", "--outdir", join(folder, "out")]);
    const bytes = scripts(join(folder, "out"));
    const active: number[] = [];
    for (let profile = 0; profile < PROFILES; profile += 1) {
      const path = join(folder, `${profile}.cpuprofile`);
      await wrangler(["check", "startup", "--outfile", path]);
      active.push(activeMs(JSON.parse(readFileSync(path, "utf8")) as CpuProfile));
    }
    const startup = "active startup (not idle in wrangler's startup profile)";
    return [
      { name: "bundle", value: Math.round(bytes.length / 1_024), unit: "KiB" },
      { name: "bundle, gzip", value: Math.round(gzipSync(bytes).length / 1_024), unit: "KiB" },
      { name: `${startup}, median of ${PROFILES}`, value: rounded(percentile(active, 0.5)), unit: "ms" },
      { name: `${startup}, worst of ${PROFILES}`, value: rounded(Math.max(...active)), unit: "ms" },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function scripts(folder: string): Buffer {
  const files = readdirSync(folder).filter((name) => !name.endsWith(".map") && name !== "README.md");
  return Buffer.concat(files.map((name) => readFileSync(join(folder, name))));
}

function activeMs({ nodes, samples, timeDeltas }: CpuProfile): number {
  const idle = new Set(nodes.filter((node) => node.callFrame.functionName === "(idle)").map((node) => node.id));
  const active = samples.map((id, index) => (idle.has(id) ? 0 : (timeDeltas[index] ?? 0)));
  return active.reduce((sum, delta) => sum + delta, 0) / 1_000;
}

function wrangler(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [WRANGLER, ...args], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: WRANGLER_TIMEOUT_MS,
    env: { ...process.env, CI: "true", WRANGLER_SEND_METRICS: "false", FORCE_COLOR: "0" },
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return new Promise((ended, failed) => {
    child.once("error", failed);
    child.once("close", (code) => {
      if (code === 0) ended();
      else failed(new Error(`wrangler ${args.join(" ")} ended with ${code}:\n${output}`));
    });
  });
}
