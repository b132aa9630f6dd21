/**
 * `npm test`: every vitest project, then one closing line `N passed, N failed` read from the JSON report.
 * Arguments go to vitest (`npm test -- --project node`). LangGraph's own server, which the end-to-end tests load the lead
 * agent in, has a lock file of its own: it is installed when it is missing.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";

const PEERS = "bench/peers";

const options = process.argv.slice(2);
const runsEndToEnd = !options.some((each) => each.startsWith("--project")) || options.join(" ").includes("e2e");
if (runsEndToEnd && !existsSync(`${PEERS}/node_modules`)) {
  const installed = spawnSync("npm", ["ci", "--prefix", PEERS, "--ignore-scripts", "--no-audit", "--no-fund"], {
    stdio: "inherit",
  });
  if (installed.status !== 0) throw new Error(`npm ci --prefix ${PEERS} failed`);
}

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
    ...options,
  ],
  { stdio: "inherit" },
);
const report = JSON.parse(readFileSync(REPORT, "utf8")) as { numPassedTests: number; numFailedTests: number };
console.log(`${report.numPassedTests} passed, ${report.numFailedTests} failed`);
process.exitCode = vitest.status ?? 1;
