/**
 * Where the grants a thread gave to queue consumers survive its object (architecture section 6). Synchronous: a grant is
 * stored before anything acts on it. Implemented by `platform/durable-storage/grant-store.ts`.
 */
import type { BatchGrant } from "../../domain/admission/admission-state.ts";

export interface GrantStore {
  /** Inserts, or replaces the grant of the same id. */
  save(grant: BatchGrant): void;
  /** Unknown ids change nothing. */
  delete(grantId: string): void;
  /** Every stored grant, the expired ones too. */
  load(): readonly BatchGrant[];
}
