/** The models of a process without bindings: those it has credentials for in its environment, and `scripted`. */
import type { DeputyConfig } from "../../config.ts";
import { createModelCatalog } from "./catalog.ts";
import { environmentCredentials } from "./environment-credentials.ts";
import type { ModelCatalog } from "./model.ts";

export function environmentModels({ models, runtime }: DeputyConfig, newId: () => string): ModelCatalog {
  return createModelCatalog({
    models,
    credentials: environmentCredentials(),
    modelIdleMs: runtime.model_idle_seconds * 1_000,
    newId,
    random: Math.random,
    now: Date.now,
  });
}
