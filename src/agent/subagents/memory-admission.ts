/**
 * An admission controller outside a thread object: the section `subagent_runtime` of the configuration, and grants that
 * live as long as the process. Owns the translation of that section's keys.
 */
import type { DeputyConfig } from "../../config.ts";
import type { AdmissionConfig, BatchGrant } from "../../domain/admission/admission-state.ts";
import { AdmissionController } from "./admission-controller.ts";
import type { GrantStore } from "./grant-store.ts";
import { systemTimers, type Timers } from "./timers.ts";

export interface MemoryAdmissionParts {
  readonly runtime: DeputyConfig["subagent_runtime"];
  /** How long a grant to a batch worker lasts: its lease. */
  readonly leaseSeconds: number;
  readonly newId: () => string;
  readonly now?: () => number;
  readonly timers?: Timers;
  readonly onBatchTurn?: (grant: BatchGrant) => void;
}

export function memoryAdmission(parts: MemoryAdmissionParts): AdmissionController {
  const { newId, now = Date.now, timers = systemTimers, onBatchTurn = () => {} } = parts;
  return new AdmissionController({ config: toConfig(parts), grants: memoryGrants(), now, newId, timers, onBatchTurn });
}

function toConfig({ runtime, leaseSeconds }: MemoryAdmissionParts): AdmissionConfig {
  return {
    maxRunning: runtime.max_running,
    maxQueued: runtime.max_queued,
    policy: runtime.admission_policy,
    queueTimeoutMs: runtime.queue_timeout_seconds * 1_000,
    classWeights: runtime.class_weights,
    grantTtlMs: leaseSeconds * 1_000,
  };
}

function memoryGrants(): GrantStore {
  const rows = new Map<string, BatchGrant>();
  return {
    save: (grant) => void rows.set(grant.grantId, grant),
    delete: (grantId) => void rows.delete(grantId),
    load: () => [...rows.values()],
  };
}
