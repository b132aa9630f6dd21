/**
 * An admission controller outside a thread object. Owns grants that live as long as the process.
 */
import type { DeputyConfig } from "../../config.ts";
import type { BatchGrant } from "../../domain/admission/admission-state.ts";
import { toAdmissionConfig } from "./admission-config.ts";
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
  const config = toAdmissionConfig(parts.runtime, parts.leaseSeconds);
  return new AdmissionController({ config, grants: memoryGrants(), now, newId, timers, onBatchTurn });
}

function memoryGrants(): GrantStore {
  const rows = new Map<string, BatchGrant>();
  return {
    save: (grant) => void rows.set(grant.grantId, grant),
    delete: (grantId) => void rows.delete(grantId),
    load: () => [...rows.values()],
  };
}
