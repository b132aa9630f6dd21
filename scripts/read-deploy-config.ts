/** `wrangler.toml` as wrangler itself resolves it, for one environment. */
import { resolve } from "node:path";
import { unstable_readConfig } from "wrangler";
import type { DeployedConfig } from "./deploy-config.ts";

export const ROOT = resolve(import.meta.dirname, "..");

/** The top level is what `npm run dev` and the tests run. */
export const ENVIRONMENTS = ["default", "staging", "production"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

export function readDeployConfig(environment: Environment, path = resolve(ROOT, "wrangler.toml")): DeployedConfig {
  const env = environment === "default" ? "" : environment;
  return unstable_readConfig({ config: path, env }, { hideWarnings: true });
}
