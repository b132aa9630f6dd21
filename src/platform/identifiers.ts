/** Ids with randomness or the clock in them, for the composition root to hand out as parameters. */
import { v5, v7, validate, version } from "uuid";
import { ASSISTANT_NAMESPACE } from "../protocol/identifiers.ts";

/** Time-ordered, so ids sort by age. A clock that was set back does not make an id older than `notBefore` (milliseconds). */
export function newUuidV7(notBefore = 0): string {
  // Without options the package counts on within a millisecond; given a time it would not.
  return notBefore > Date.now() ? v7({ msecs: notBefore }) : v7();
}

/** Below every id made at that time (milliseconds) or later, above those made before. */
export function uuidV7Floor(time: number): string {
  const hex = time.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
}

/** When an id was made, in milliseconds; `undefined` for one without a time in it. */
export function timeOfUuidV7(id: string): number | undefined {
  return validate(id) && version(id) === 7 ? Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16) : undefined;
}

/** The thread of a stateless run that carries an `Idempotency-Key`: the same for the same owner and key. */
export function keyedThreadId(owner: string, key: string): string {
  return v5(JSON.stringify([owner, key]), ASSISTANT_NAMESPACE);
}

/** The stable id of a graph's default assistant: the same on every deployment. */
export function defaultAssistantId(graphId: string): string {
  return v5(graphId, ASSISTANT_NAMESPACE);
}
