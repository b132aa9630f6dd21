/** The bench files that run in workerd. Not a project of the root config: `npm test` does not run them. */
import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest(async () => ({
      main: "./bench/worker.ts",
      wrangler: { configPath: "./wrangler.toml" },
      miniflare: {
        bindings: {
          TEST_MIGRATIONS: await readD1Migrations("migrations"),
          API_KEYS: JSON.stringify({ "key-alice": { owner: "alice", role: "user" } }),
        },
      },
    })),
  ],
  test: {
    name: "bench",
    include: ["bench/**/*.bench.ts"],
    setupFiles: ["./test/support/apply-migrations.ts"],
    // One workerd at a time: the bench files print times too.
    fileParallelism: false,
    testTimeout: 120_000,
  },
});
