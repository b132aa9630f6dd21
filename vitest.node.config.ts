import { defineProject } from "vitest/config";

export default defineProject({
  test: {
    name: "node",
    include: ["test/{unit,contract,simulation}/**/*.test.ts"],
    exclude: ["test/**/*.workers.test.ts"],
    environment: "node",
    testTimeout: 20_000,
  },
});
