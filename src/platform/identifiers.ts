/** Ids with randomness or the clock in them, for the composition root to hand out as parameters. */
import { v5, v7 } from "uuid";
import { ASSISTANT_NAMESPACE } from "../protocol/identifiers.ts";

/** Time-ordered, so ids sort by age. */
export function newUuidV7(): string {
  return v7();
}

/** The stable id of a graph's default assistant: the same on every deployment. */
export function defaultAssistantId(graphId: string): string {
  return v5(graphId, ASSISTANT_NAMESPACE);
}
