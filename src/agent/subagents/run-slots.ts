/**
 * The slots of one run: what it asked to run at once, in front of its thread's admission (R38).
 * The lead's answers are cut at the same number, but a child that may delegate starts children of its own; here they wait
 * like any other. Owns that order only: a place in the run first, then a slot of the thread, so the two cannot wait for
 * each other. A waiting parent lends both (admission.ts).
 */
import type { DeputyConfig } from "../../config.ts";
import type { AcquireRequest, AdmissionController, AdmissionRefusal, Slot } from "./admission-controller.ts";
import { memoryAdmission } from "./memory-admission.ts";
import type { Result } from "../../domain/shared/result.ts";
import { ok } from "../../domain/shared/result.ts";
import type { Timers } from "./timers.ts";

export type SlotSource = Pick<AdmissionController, "acquire">;

export interface RunSlotsParts {
  /** The thread's. */
  readonly admission: AdmissionController;
  /** Of the run, resolved. */
  readonly maxConcurrent: number;
  readonly deputy: Pick<DeputyConfig, "subagent_runtime" | "subagent_batches">;
  readonly newId: () => string;
  readonly now: () => number;
  readonly timers: Timers;
}

export function runSlots(parts: RunSlotsParts): SlotSource {
  const { admission, maxConcurrent, deputy, newId, now, timers } = parts;
  if (maxConcurrent >= admission.snapshot().max_running) return admission;
  const places = memoryAdmission({
    runtime: { ...deputy.subagent_runtime, max_running: maxConcurrent },
    leaseSeconds: deputy.subagent_batches.lease_seconds,
    newId,
    now,
    timers,
  });
  return {
    async acquire(request: AcquireRequest): Promise<Result<Slot, AdmissionRefusal>> {
      const place = await places.acquire(request);
      if (!place.ok) return place;
      const slot = await admission.acquire(request);
      if (!slot.ok) {
        place.value.release();
        return slot;
      }
      return ok({
        release: () => {
          slot.value.release();
          place.value.release();
        },
      });
    },
  };
}
