/**
 * Builds a request every provider accepts from whatever is stored, so that nothing stored can poison a thread: dangling
 * calls after a crash or a cancel, orphaned or misplaced results, empty texts, foreign system messages, a kept tail that
 * starts with an assistant message. Changes the request only, never the state.
 * Invariants: the result passes `assertModelRequest`; a request that already does is passed on as it is.
 */
import { type BaseMessage, HumanMessage } from "@langchain/core/messages";
import { findModelRequestViolation } from "../models/assert-model-request.ts";
import { cleanMessage } from "./clean-message.ts";
import type { AgentHook } from "./hook.ts";
import { pairResults } from "./pair-results.ts";
import { coalesceSystem, isFrameworkSystem } from "./system-coalescer.ts";

/** Stands where the first message must be a human one and none is left (R108). */
export const EARLIER_MESSAGES_NOTE = "The earlier messages of this conversation are not part of this request.";

export function requestRepair(): AgentHook {
  return {
    name: "request_repair",
    wrapModelCall: (request, next) => next({ ...request, messages: repairMessages(request.messages) }),
  };
}

export function repairMessages(messages: readonly BaseMessage[]): readonly BaseMessage[] {
  const coalesced = coalesceSystem(messages);
  if (findModelRequestViolation(coalesced) === undefined) return coalesced;
  const cleaned = coalesced.map(cleanMessage).filter((message) => message !== undefined);
  const system = cleaned.filter(isFrameworkSystem);
  const rest = pairResults(cleaned.filter((message) => !isFrameworkSystem(message)));
  return rest[0]?.getType() === "human" ? [...system, ...rest] : [...system, earlierMessagesNote(), ...rest];
}

function earlierMessagesNote(): BaseMessage {
  return new HumanMessage({ content: EARLIER_MESSAGES_NOTE, additional_kwargs: { hide_from_ui: true } });
}
