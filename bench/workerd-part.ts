/**
 * Runs a bench file in workerd and collects the rows its tests reported. Owns the vitest process; a test that fails is an
 * error of the bench, never a row that is missing.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { BenchRow } from "./bench-row.ts";
import type { ReportedMeta } from "./report.ts";

const ROOT = resolve(import.meta.dirname, "..");

interface JsonReport {
  readonly success: boolean;
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly {
      readonly title: string;
      readonly status: string;
      readonly failureMessages: readonly string[] | null;
      readonly meta: ReportedMeta;
    }[];
  }[];
}

/** `file` is a path from the root of the repository. */
export async function runInWorkerd(file: string): Promise<BenchRow[]> {
  const folder = mkdtempSync(join(tmpdir(), "deputy-bench-"));
  try {
    const reportPath = join(folder, "report.json");
    const output = await runVitest(file, reportPath);
    return rowsOf(file, readReport(reportPath, output));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function runVitest(file: string, reportPath: string): Promise<string> {
  const vitest = spawn(
    process.execPath,
    [
      join(ROOT, "node_modules/vitest/vitest.mjs"),
      "run",
      file,
      `--root=${ROOT}`,
      "--config=bench/vitest.config.ts",
      "--reporter=json",
      `--outputFile.json=${reportPath}`,
    ],
    { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"] },
  );
  const end = (): void => void vitest.kill("SIGKILL");
  process.on("exit", end);
  let output = "";
  for (const stream of [vitest.stdout, vitest.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return new Promise((ended, failed) => {
    vitest.once("error", failed);
    vitest.once("close", () => {
      process.off("exit", end);
      ended(output);
    });
  });
}

function readReport(path: string, output: string): JsonReport {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as JsonReport;
  } catch (error) {
    throw new Error(`vitest wrote no report:\n${output}`, { cause: error });
  }
}

function rowsOf(file: string, report: JsonReport): BenchRow[] {
  const tests = report.testResults.flatMap((result) => result.assertionResults);
  const failures = tests.filter((test) => test.status !== "passed");
  if (!report.success || failures.length > 0 || tests.length === 0) {
    const told = failures.flatMap((test) => [`${test.title}: ${test.status}`, ...(test.failureMessages ?? [])]);
    throw new Error([`${file} failed`, ...report.testResults.map((result) => result.message), ...told].join("\n"));
  }
  return tests.flatMap((test) => {
    if (test.meta.rows === undefined) throw new Error(`${file}: '${test.title}' reported no rows`);
    return test.meta.rows;
  });
}
