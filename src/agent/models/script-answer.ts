/**
 * What the scripted model says next: a pure function of the conversation. The latest visible human message holds the
 * script; the assistant messages behind it count the turns already taken; the tool messages behind it are what can be
 * quoted. `scripted` and the loopback test server both answer through here, so they behave alike.
 * It has no intelligence: every character comes from the prompt, a tool's output, or a notice named below.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { ok, type Result } from "../../domain/shared/result.ts";
import { parseScript, type ScriptTurn } from "./script-grammar.ts";
import { expandJson, expandQuotes, type QuoteSources } from "./script-quotes.ts";
import type { ScriptFailure, ScriptPart, ScriptText, ScriptUsage } from "./script-steps.ts";

export interface ConversationMessage {
  readonly role: "system" | "human" | "assistant" | "tool" | "unknown";
  readonly text: string;
  readonly id?: string | undefined;
  /** Injected by the framework: never taken for the prompt. */
  readonly hidden?: boolean;
}

export interface ScriptedAnswer {
  readonly text: string;
  readonly calls: readonly { readonly name: string; readonly rawArguments: string }[];
  readonly delayMs: number;
  readonly usage: ScriptUsage;
  readonly failure: ScriptFailure | undefined;
  readonly quirks: readonly string[];
  /** The same for every attempt at this turn; what `fail ... <times>` counts by. */
  readonly turnKey: string;
}

export const SCRIPTED_NOTICE =
  "This is the scripted model. It has no intelligence: it runs the script in a prompt and otherwise quotes it.";

/** A prompt may be 100,000 characters; its first part is enough to see what was quoted. */
export const PROMPT_QUOTE_CHARS_MAX = 2_000;

export function answerFromScript(conversation: readonly ConversationMessage[]): ScriptedAnswer {
  const start = conversation.findLastIndex((message) => message.role === "human" && !message.hidden);
  const prompt = conversation[start];
  const since = conversation.slice(start + 1);
  const taken = since.filter((message) => message.role === "assistant").length;
  const results = since.filter((message) => message.role === "tool").map((message) => message.text);
  const sources = { prompt: prompt?.text ?? "", results };
  const turnKey = `${prompt?.id ?? sources.prompt}#${taken}`;
  const script = parseScript(sources.prompt);
  if (!script) return plainAnswer(quotePrompt(sources.prompt), turnKey);
  if (!script.ok) return plainAnswer(errorText(script.error.line, script.error.message), turnKey);
  const turn = script.value[taken];
  if (!turn) return plainAnswer(results.at(-1) || quotePrompt(sources.prompt), turnKey);
  return answerTurn(turn, sources, turnKey);
}

function answerTurn(turn: ScriptTurn, sources: QuoteSources, turnKey: string): ScriptedAnswer {
  const texts: string[] = [];
  const calls: { name: string; rawArguments: string }[] = [];
  for (const part of turn.parts) {
    const said = renderPart(part, sources);
    if (!said.ok) return plainAnswer(errorText(turn.line, said.error), turnKey);
    if (typeof said.value === "string") texts.push(said.value);
    else calls.push(said.value);
  }
  const { delayMs, usage, failure, quirks } = turn;
  return { text: texts.join("\n"), calls, delayMs, usage, failure, quirks, turnKey };
}

type Rendered = string | { readonly name: string; readonly rawArguments: string };

function renderPart(part: ScriptPart, sources: QuoteSources): Result<Rendered, string> {
  if (part.kind === "say") return renderText(part.text, sources);
  if (part.kind === "raw") return ok({ name: part.tool, rawArguments: part.raw });
  const args = expandJson(part.args, sources);
  if (!args.ok) return args;
  const merged: Record<string, unknown> = { ...(args.value as Record<string, unknown>) };
  for (const [name, text] of Object.entries(part.texts)) {
    const rendered = renderText(text, sources);
    if (!rendered.ok) return rendered;
    merged[name] = rendered.value;
  }
  return ok({ name: part.tool, rawArguments: JSON.stringify(merged) });
}

function renderText(text: ScriptText, sources: QuoteSources): Result<string, string> {
  return text.verbatim ? ok(text.text) : expandQuotes(text.text, sources);
}

function quotePrompt(prompt: string): string {
  const lines = UTF16_UNITS.first(prompt, PROMPT_QUOTE_CHARS_MAX).split(/\r?\n/);
  return `${SCRIPTED_NOTICE}\n\n${lines.map((line) => `> ${line}`).join("\n")}`;
}

function errorText(line: number, problem: string): string {
  return `script error: line ${line}: ${problem}`;
}

function plainAnswer(text: string, turnKey: string): ScriptedAnswer {
  return { text, calls: [], delayMs: 0, usage: "counted", failure: undefined, quirks: [], turnKey };
}

/** Text as a model streams it: words with the white space behind them. */
export function toTokens(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

export function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}

/** What a failing turn still delivers before it breaks: the first half, at least one token. */
export function firstHalf<T>(tokens: readonly T[]): readonly T[] {
  return tokens.slice(0, Math.ceil(tokens.length / 2));
}
