/**
 * `npm run check:deploy`: exits 1, one line a problem, when `wrangler.toml` does not name everything the code needs in
 * every environment. Reads files only; needs no account.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { findConfigProblems, isPlaceholder, parseBindings, parseExportedClasses } from "./deploy-config.ts";
import { ENVIRONMENTS, ROOT, readDeployConfig } from "./read-deploy-config.ts";

const read = (path: string) => readFileSync(resolve(ROOT, path), "utf8");
const configs = new Map(ENVIRONMENTS.map((environment) => [environment, readDeployConfig(environment)]));
const bindings = parseBindings(read("src/env.ts"));
const problems = findConfigProblems(configs, {
  bindings,
  classes: parseExportedClasses(read("src/worker.ts")),
  migrationsDirs: [...new Set(globSync("*/*.sql", { cwd: ROOT }).map((path) => dirname(path)))],
});
for (const problem of problems) console.error(problem);
for (const [environment, { d1_databases }] of configs) {
  const waits = d1_databases.some(({ database_id }) => database_id === undefined || isPlaceholder(database_id));
  if (environment !== "default" && waits) {
    console.log(`${environment}: no database id yet; run npm run setup -- --env ${environment}`);
  }
}
if (problems.length === 0) {
  console.log(`wrangler.toml names ${[...bindings.keys()].join(", ")} in ${[...configs.keys()].join(", ")}`);
}
process.exitCode = problems.length === 0 ? 0 : 1;
