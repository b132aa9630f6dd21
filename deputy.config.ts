import { defineConfig } from "./src/config.ts";

/** Everything is optional: defaults and ranges are in src/config.ts and docs/limits.md. */
export default defineConfig({
  models: [
    { name: "openai", provider: "openai", vision: true },
    { name: "anthropic", provider: "anthropic", vision: true },
  ],
});
