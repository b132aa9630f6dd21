import { fileURLToPath } from "node:url";
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineProject } from "vitest/config";

/**
 * Every further test file is sent all modules at once, and workerd refuses a message past 32 MiB. Source maps of
 * packages are most of it.
 */
const withoutPackageSourceMaps = {
  name: "without-package-source-maps",
  enforce: "post" as const,
  transform(code: string, id: string) {
    return id.includes("/node_modules/") ? { code, map: { mappings: "" } } : undefined;
  },
};

const DEPUTY_CONFIG = fileURLToPath(new URL("deputy.config.ts", import.meta.url).href);
const TEST_CONFIG = fileURLToPath(new URL("test/support/graphs/deputy.config.ts", import.meta.url).href);

/** The Worker under test serves graphs of the tests' own beside what the repository's configuration has. */
const withTestGraphs = {
  name: "with-test-graphs",
  enforce: "pre" as const,
  async resolveId(this: { resolve: Resolve }, source: string, importer: string | undefined) {
    if (!source.endsWith("deputy.config.ts") || importer === TEST_CONFIG) return undefined;
    const resolved = await this.resolve(source, importer, { skipSelf: true });
    return resolved?.id === DEPUTY_CONFIG ? TEST_CONFIG : resolved;
  },
};

type Resolve = (source: string, importer?: string, options?: { skipSelf: boolean }) => Promise<{ id: string } | null>;

export default defineProject({
  plugins: [
    withoutPackageSourceMaps,
    withTestGraphs,
    cloudflareTest(async () => ({
      wrangler: { configPath: "./wrangler.toml" },
      miniflare: {
        bindings: {
          // Failpoints for the kill matrix; nobody holds them elsewhere.
          TEST_ROUTES: "1",
          TEST_MIGRATIONS: await readD1Migrations("migrations"),
          API_KEYS: JSON.stringify({
            "key-alice": { owner: "alice", role: "user" },
            "key-bob": { owner: "bob", role: "user" },
            // Whoever needs an owner to take everything from.
            "key-erased": { owner: "erased", role: "user" },
            "key-admin": { owner: "root", role: "admin" },
          }),
        },
      },
    })),
  ],
  test: {
    name: "workers",
    include: ["test/workers/**/*.test.ts", "test/contract/**/*.workers.test.ts"],
    globalSetup: ["./test/support/acp-agent-setup.ts"],
    setupFiles: ["./test/support/apply-migrations.ts"],
    // The public checkpointer suites register their cases through the global `describe` and `it`.
    globals: true,
    // One workerd for all files: starting one each costs more than every test in it. Names of objects are fresh per test.
    isolate: false,
    fileParallelism: false,
    testTimeout: 20_000,
  },
});
