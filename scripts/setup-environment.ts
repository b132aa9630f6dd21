/**
 * `npm run setup -- --env staging|production [--dry-run]`: makes the environment's D1 database and queues, applies the
 * migrations and sets the secrets found in the caller's environment. docs/deploy.md says when. Needs a login
 * (`wrangler login`) or `CLOUDFLARE_API_TOKEN`. `--dry-run` prints the commands and runs none.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setUpEnvironment, type Wrangler, type WranglerAnswer } from "./environment-setup.ts";
import { ENVIRONMENTS, ROOT, readDeployConfig } from "./read-deploy-config.ts";

const { values } = parseArgs({ options: { env: { type: "string" }, "dry-run": { type: "boolean", default: false } } });
const environment = ENVIRONMENTS.find((name) => name === values.env && name !== "default");
if (environment === undefined) {
  console.error("usage: npm run setup -- --env staging|production [--dry-run]");
  process.exit(2);
}

function run(args: readonly string[], input = ""): Promise<WranglerAnswer> {
  return new Promise((answered) => {
    const child = spawn(process.execPath, [join(ROOT, "node_modules/wrangler/bin/wrangler.js"), ...args], {
      cwd: ROOT,
      stdio: ["pipe", "pipe", "pipe"],
      // CI: wrangler asks nothing; a banner would stand in front of JSON.
      env: { ...process.env, CI: "true", WRANGLER_HIDE_BANNER: "true", WRANGLER_SEND_METRICS: "false" },
    });
    let output = "";
    let complaints = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (complaints += text));
    child.once("close", (code) => {
      answered({ ok: code === 0, output: code === 0 ? output : output + complaints });
    });
    child.stdin.end(input);
  });
}

async function print(args: readonly string[], input?: string): Promise<WranglerAnswer> {
  console.log(`wrangler ${args.join(" ")}${input === undefined ? "" : " < (secrets)"}`);
  return { ok: true, output: "" };
}

const isDryRun = values["dry-run"];
const wrangler: Wrangler = isDryRun ? { ask: print, change: print } : { ask: run, change: run };
try {
  const end = await setUpEnvironment({
    environment,
    config: readDeployConfig(environment),
    wrangler,
    variables: process.env,
    say: (line) => console.log(line),
    isDryRun,
  });
  process.exitCode = end === "ready" ? 0 : 1;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
