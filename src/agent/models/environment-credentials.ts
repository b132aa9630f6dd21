/**
 * Where a process without bindings finds its providers' credentials: the environment, by the names the Worker's bindings
 * have. Empty where there is no process.
 */
import type { ModelCredentials } from "./catalog.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export function environmentCredentials(
  environment: Environment = (globalThis.process as NodeJS.Process | undefined)?.env ?? {},
): ModelCredentials {
  return {
    openaiApiKey: environment["OPENAI_API_KEY"],
    openaiBaseUrl: environment["OPENAI_BASE_URL"],
    openaiModel: environment["OPENAI_MODEL"],
    anthropicApiKey: environment["ANTHROPIC_API_KEY"],
    anthropicBaseUrl: environment["ANTHROPIC_BASE_URL"],
    anthropicModel: environment["ANTHROPIC_MODEL"],
  };
}
