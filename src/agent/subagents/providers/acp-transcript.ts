/**
 * What an agent of another process does, as the steps of a child: its messages and tool calls in our shapes under ids of
 * ours. Owns which text is the child's output. Invariants: chunks of one message are one step; a tool call ends the message
 * before it; thoughts and plans are read and not told; past the bounds text is a fault and further steps are not told.
 */
import type { SessionUpdate, ToolCallContent, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { AIMessage, ToolMessage, type BaseMessage } from "@langchain/core/messages";
import { boundText } from "../../../domain/delegation/bounded-text.ts";
import { isBlank } from "../../../domain/delegation/delegation-outcome.ts";
import { STEP_CHARS_MAX } from "../../../domain/delegation/subagent-steps.ts";
import type { TextBlock } from "../provider.ts";
import { ConnectionFault } from "../web-socket.ts";
import { ACP_OPEN_CALLS_MAX, ACP_STEPS_MAX, ACP_TEXT_CHARS_MAX, ACP_TITLE_CHARS_MAX } from "./acp-limits.ts";

export interface AcpTranscriptPorts {
  readonly newId: () => string;
  readonly tell: (message: BaseMessage) => void;
}

interface OpenCall {
  readonly id: string;
  readonly name: string;
}

type CallUpdate = Omit<ToolCallUpdate, "title"> & { readonly title?: string | null };

export class AcpTranscript {
  readonly #ports: AcpTranscriptPorts;
  /** By the agent's id of the call. */
  readonly #calls = new Map<string, OpenCall>();
  #saying = "";
  #messageId: string | null | undefined;
  #said = "";
  #chars = 0;
  #told = 0;
  #isClosed = false;

  constructor(ports: AcpTranscriptPorts) {
    this.#ports = ports;
  }

  /** Throws a `ConnectionFault` when the agent says more than is kept. */
  take(update: SessionUpdate): void {
    if (this.#isClosed) return;
    // The rest is the agent's own business: thoughts, plans, modes, and what later versions add.
    if (update.sessionUpdate === "agent_message_chunk") {
      if (update.content.type === "text") this.#say(update.content.text, update.messageId);
    } else if (update.sessionUpdate === "tool_call") {
      this.#openCall(update);
      this.#closeCall(update);
    } else if (update.sessionUpdate === "tool_call_update") {
      this.#closeCall(update);
    }
  }

  /** The last message is complete; nothing is taken any more. */
  close(): void {
    if (this.#isClosed) return;
    this.#endMessage();
    this.#isClosed = true;
  }

  output(): readonly TextBlock[] {
    const text = isBlank(this.#saying) ? this.#said : this.#saying;
    return isBlank(text) ? [] : [{ type: "text", text }];
  }

  #say(text: string, messageId: string | null | undefined): void {
    this.#chars += text.length;
    if (this.#chars > ACP_TEXT_CHARS_MAX) throw new ConnectionFault("the agent wrote more text than is kept");
    const isNext = messageId !== this.#messageId && messageId !== null && messageId !== undefined;
    if (isNext && this.#messageId !== undefined) this.#endMessage();
    this.#messageId = messageId ?? this.#messageId;
    this.#saying += text;
  }

  #openCall(call: CallUpdate): void {
    if (this.#calls.has(call.toolCallId)) return;
    if (this.#calls.size >= ACP_OPEN_CALLS_MAX) throw new ConnectionFault("the agent has too many open tool calls");
    const name = boundText(call.name ?? call.kind ?? "other", ACP_TITLE_CHARS_MAX);
    const opened = { id: this.#ports.newId(), name };
    this.#calls.set(call.toolCallId, opened);
    const title = boundText(call.title ?? "", ACP_TITLE_CHARS_MAX);
    const args = { title, ...(call.rawInput === undefined ? {} : { input: call.rawInput }) };
    this.#endMessage([{ id: opened.id, name, args, type: "tool_call" }]);
  }

  #closeCall(update: CallUpdate): void {
    const call = this.#calls.get(update.toolCallId);
    if (call === undefined || (update.status !== "completed" && update.status !== "failed")) return;
    this.#calls.delete(update.toolCallId);
    this.#tell(
      new ToolMessage({
        id: this.#ports.newId(),
        tool_call_id: call.id,
        name: call.name,
        status: update.status === "failed" ? "error" : "success",
        content: boundText(textIn(update.content ?? []), STEP_CHARS_MAX),
      }),
    );
  }

  /** A message without text and calls is no step. */
  #endMessage(calls: NonNullable<AIMessage["tool_calls"]> = []): void {
    const text = this.#saying;
    this.#saying = "";
    this.#messageId = undefined;
    if (!isBlank(text)) this.#said = text;
    if (isBlank(text) && calls.length === 0) return;
    this.#tell(new AIMessage({ id: this.#ports.newId(), content: text, tool_calls: calls }));
  }

  #tell(message: BaseMessage): void {
    this.#told += 1;
    if (this.#told <= ACP_STEPS_MAX) this.#ports.tell(message);
  }
}

function textIn(content: readonly ToolCallContent[]): string {
  const texts = content.flatMap((each) =>
    each.type === "content" && each.content.type === "text" ? each.content.text : [],
  );
  return texts.join("\n");
}
