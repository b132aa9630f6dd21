/** The section `subagent_runtime` of the configuration, as the rules of admission want it. Owns that translation only. */
import type { DeputyConfig } from "../../config.ts";
import type { AdmissionConfig } from "../../domain/admission/admission-state.ts";

/** A grant to a batch worker lasts as long as its lease. */
export function toAdmissionConfig(runtime: DeputyConfig["subagent_runtime"], leaseSeconds: number): AdmissionConfig {
  return {
    maxRunning: runtime.max_running,
    maxQueued: runtime.max_queued,
    policy: runtime.admission_policy,
    queueTimeoutMs: runtime.queue_timeout_seconds * 1_000,
    classWeights: runtime.class_weights,
    grantTtlMs: leaseSeconds * 1_000,
  };
}
