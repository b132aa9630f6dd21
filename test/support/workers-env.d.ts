import type { D1Migration } from "@cloudflare/vitest-plugin";
import type { Env } from "../../src/env.ts";

declare global {
  namespace Cloudflare {
    interface Env extends WorkerEnv {
      TEST_MIGRATIONS: D1Migration[];
    }
  }
}

type WorkerEnv = Env;
