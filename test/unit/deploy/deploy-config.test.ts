import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  findConfigProblems,
  parseBindings,
  parseExportedClasses,
  type DeployedConfig,
} from "../../../scripts/deploy-config.ts";
import { ENVIRONMENTS, readDeployConfig } from "../../../scripts/read-deploy-config.ts";

const EXPECTED = {
  bindings: parseBindings(readFileSync("src/env.ts", "utf8")),
  classes: parseExportedClasses(readFileSync("src/worker.ts", "utf8")),
  migrationsDirs: ["migrations"],
};

function shipped(): Map<string, DeployedConfig> {
  return new Map(ENVIRONMENTS.map((environment) => [environment, structuredClone(readDeployConfig(environment))]));
}

/** The problems after one environment's configuration was changed. */
function problemsAfter(change: (config: DeployedConfig) => Partial<DeployedConfig>, environment = "staging") {
  const configs = shipped();
  const config = configs.get(environment)!;
  configs.set(environment, { ...config, ...change(config) });
  return findConfigProblems(configs, EXPECTED).join("\n");
}

describe("the deploy configuration", () => {
  it("that ships names everything the code needs, in every environment", () => {
    expect([...EXPECTED.bindings.keys()].sort()).toEqual(["BATCH_WAKES", "DB", "THREADS"]);
    expect(EXPECTED.classes).toContain("ThreadObject");
    expect(findConfigProblems(shipped(), EXPECTED)).toEqual([]);
  });

  it.each([
    [
      "an object binding",
      () => ({ durable_objects: { bindings: [] } }),
      "no DurableObjectNamespace is bound as THREADS",
    ],
    ["a database", () => ({ d1_databases: [] }), "no D1Database is bound as DB"],
    ["a queue", () => ({ queues: { producers: [], consumers: [] } }), "no Queue is bound as BATCH_WAKES"],
    ["a migration tag", () => ({ migrations: [] }), "no migration tag creates ThreadObject"],
    ["the cron", () => ({ triggers: { crons: [] } }), "no cron trigger"],
    ["Workers AI", () => ({ ai: undefined }), "Workers AI is not bound as AI"],
    ["Workers AI by its name", () => ({ ai: { binding: "BRAIN" } }), "Workers AI is not bound as AI"],
  ] as const)("without %s is refused, and the environment is named", (_what, change, problem) => {
    expect(problemsAfter(change)).toContain(`staging: ${problem}`);
    expect(problemsAfter(change, "production")).toContain(`production: ${problem}`);
  });

  it.each(["default", "staging", "production"])("that sets TEST_ROUTES in %s is refused", (environment) => {
    const problems = problemsAfter(() => ({ vars: { TEST_ROUTES: "1" } }), environment);
    expect(problems).toContain(`${environment}: TEST_ROUTES is set`);
  });

  it("that binds Workers AI where `wrangler dev` runs is refused", () => {
    const problems = problemsAfter(() => ({ ai: { binding: "AI" } }), "default");
    expect(problems).toContain("default: Workers AI is bound, which stops `wrangler dev` without an account");
  });

  it("whose object class the worker does not export is refused", () => {
    const bindings = [{ name: "THREADS", class_name: "Nobody" }];
    expect(problemsAfter(() => ({ durable_objects: { bindings } }))).toContain("exports no class Nobody");
  });

  it("whose database names no migrations is refused", () => {
    const without = ({ d1_databases }: DeployedConfig) => ({
      d1_databases: d1_databases.map((database) => ({ ...database, migrations_dir: undefined })),
    });
    expect(problemsAfter(without)).toContain("database DB: migrations_dir (none) holds no migrations");
  });

  it("whose wakes or dead letters nobody consumes is refused", () => {
    const keep =
      (pattern: RegExp) =>
      ({ queues }: DeployedConfig) => ({
        queues: { ...queues, consumers: (queues.consumers ?? []).filter(({ queue }) => pattern.test(queue)) },
      });
    expect(problemsAfter(keep(/dead-letters$/))).toContain("queue deputy-staging-batch-wakes has no consumer");
    expect(problemsAfter(keep(/wakes$/))).toContain("queue deputy-staging-batch-dead-letters has no consumer");
  });

  it("whose dead-letter queue the worker would take for the other one is refused", () => {
    const renamed = ({ queues }: DeployedConfig) => {
      const rename = (name: string) => name.replace("dead-letters", "dead");
      const consumers = (queues.consumers ?? []).map(({ queue, dead_letter_queue, ...rest }) => ({
        ...rest,
        queue: rename(queue),
        dead_letter_queue: dead_letter_queue && rename(dead_letter_queue),
      }));
      return { queues: { ...queues, consumers } };
    };
    expect(problemsAfter(renamed)).toContain("deputy-staging-batch-dead must end in dead-letters");
  });

  it("with DEV_OWNER is refused: it would let everybody in", () => {
    expect(problemsAfter(() => ({ vars: { DEV_OWNER: "local" } }))).toContain("staging: DEV_OWNER is set");
  });

  it("in which two environments share a database or a queue is refused", () => {
    const production = readDeployConfig("production");
    const problems = problemsAfter(() => ({ d1_databases: production.d1_databases, queues: production.queues }));
    expect(problems).toContain("staging, production: database deputy-production is shared");
    expect(problems).toContain("staging, production: queue deputy-production-batch-wakes is shared");
  });

  it("in which one environment consumes in another way is refused: staging has to show what production does", () => {
    const slower = ({ queues }: DeployedConfig) => ({
      queues: { ...queues, consumers: (queues.consumers ?? []).map((each) => ({ ...each, max_batch_timeout: 5 })) },
    });
    expect(problemsAfter(slower)).toContain("staging: consumers, migrations or crons differ from default");
  });

  it("cannot be checked against an Env that was not read: that is a problem, not a pass", () => {
    const bindings = parseBindings("export type Env = {}");
    expect(findConfigProblems(shipped(), { ...EXPECTED, bindings }).join()).toContain("no binding was found");
  });
});
