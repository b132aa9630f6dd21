import { cloudflareTest, readD1Migrations } from "@cloudflare/vitest-plugin";
import { defineProject } from "vitest/config";

export default defineProject({
  plugins: [
    cloudflareTest(async () => ({
      wrangler: { configPath: "./wrangler.toml" },
      miniflare: {
        bindings: {
          TEST_MIGRATIONS: await readD1Migrations("migrations"),
          API_KEYS: JSON.stringify({
            "key-alice": { owner: "alice", role: "user" },
            "key-bob": { owner: "bob", role: "user" },
            "key-admin": { owner: "root", role: "admin" },
          }),
        },
      },
    })),
  ],
  test: {
    name: "workers",
    include: ["test/workers/**/*.test.ts", "test/contract/**/*.workers.test.ts"],
    setupFiles: ["./test/support/apply-migrations.ts"],
    // The public checkpointer suites register their cases through the global `describe` and `it`.
    globals: true,
    testTimeout: 20_000,
  },
});
