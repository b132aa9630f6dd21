import { defineProject } from "vitest/config";

export default defineProject({
  test: {
    name: "e2e",
    include: ["test/e2e/**/*.test.ts"],
    environment: "node",
    // Each file starts its own `wrangler dev`; two at a time would share two cores with two workerds.
    fileParallelism: false,
    testTimeout: 120_000,
    // Hooks start servers: two processes of wrangler's, each with a patience of its own (scripts/dev-server.ts).
    hookTimeout: 240_000,
  },
});
