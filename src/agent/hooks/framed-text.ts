/**
 * Text of the API that says who an agent is to be, in its requests (R172, R173): escaped, in a human message with a
 * boundary of its own, behind System. In requests only, never in the state: a later compaction cannot lose it, and after a
 * crash it is the same, because it comes from the run's snapshot.
 */
import { HumanMessage, SystemMessage, type BaseMessage } from "@langchain/core/messages";
import { escapeMarkup } from "../../domain/trust/escape-markup.ts";
import { behindSystem } from "./behind-system.ts";
import type { AgentHook } from "./hook.ts";

export interface FramedText {
  readonly hookName: string;
  /** The boundary's tag. */
  readonly tag: string;
  readonly text: string;
  /** Framework text that says what the message is, where the agent's own prompt does not. */
  readonly contract?: string;
}

export function framedText({ hookName, tag, text, contract }: FramedText): AgentHook {
  const message = new HumanMessage({
    content: `<${tag}>\n${escapeMarkup(text)}\n</${tag}>`,
    additional_kwargs: { hide_from_ui: true },
  });
  const added: BaseMessage[] = contract === undefined ? [message] : [new SystemMessage(contract), message];
  return {
    name: hookName,
    wrapModelCall: (request, next) => next({ ...request, messages: behindSystem(request.messages, added) }),
  };
}
