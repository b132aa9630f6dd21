/**
 * `npm test`: every vitest project, then one closing line `N passed, N failed` read from the JSON report.
 * Arguments go to vitest (`npm test -- --project node`).
 */
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";

const REPORT = "test-report.json";
rmSync(REPORT, { force: true });
const vitest = spawnSync(
  process.execPath,
  [
    "node_modules/vitest/vitest.mjs",
    "run",
    "--reporter=default",
    "--reporter=json",
    `--outputFile.json=${REPORT}`,
    ...process.argv.slice(2),
  ],
  { stdio: "inherit" },
);
const report = JSON.parse(readFileSync(REPORT, "utf8")) as { numPassedTests: number; numFailedTests: number };
console.log(`${report.numPassedTests} passed, ${report.numFailedTests} failed`);
process.exitCode = vitest.status ?? 1;
