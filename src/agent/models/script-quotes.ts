/**
 * Quotes: how a script's text takes in the prompt and the tool output of its turn. Owns the quote forms and nothing
 * else. There is no regular expression among them: a pattern from a prompt could run for minutes on the object's thread.
 * A backslash before the braces (`\{{`) keeps them as text, so a script can carry another script.
 */
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { isPlainObject } from "./request-rules.ts";

/** What can be quoted: the prompt, and the results of this turn in order. */
export interface QuoteSources {
  readonly prompt: string;
  readonly results: readonly string[];
}

/** A quote of a large file repeated would grow without end; models stop far earlier. */
export const QUOTED_CHARS_MAX = 1_000_000;

const QUOTE = /(\\?)\{\{([^{}]*)\}\}/g;

export const QUOTE_FORMS =
  "{{prompt}}, {{result:N}}, {{result:last}}, each with :line K, :after TEXT, :word after TEXT or :json /pointer";

/** The text with every quote replaced, or what is wrong with the first bad one. */
export function expandQuotes(text: string, sources: QuoteSources): Result<string, string> {
  let problem: string | undefined;
  const expanded = text.replace(QUOTE, (whole, escape: string, quote: string) => {
    if (escape) return whole.slice(1);
    const found = resolveQuote(quote.trim(), sources);
    if (!found.ok) problem ??= `{{${quote}}}: ${found.error}`;
    return found.ok ? found.value : "";
  });
  if (problem === undefined && expanded.length > QUOTED_CHARS_MAX) problem = `more than ${QUOTED_CHARS_MAX} characters`;
  return problem === undefined ? ok(expanded) : err(problem);
}

/** Expands every string inside a JSON value. */
export function expandJson(value: unknown, sources: QuoteSources): Result<unknown, string> {
  if (typeof value === "string") return expandQuotes(value, sources);
  if (typeof value !== "object" || value === null) return ok(value);
  const entries: [string, unknown][] = [];
  for (const [key, item] of Object.entries(value)) {
    const expanded = expandJson(item, sources);
    if (!expanded.ok) return expanded;
    entries.push([key, expanded.value]);
  }
  return ok(Array.isArray(value) ? entries.map(([, item]) => item) : Object.fromEntries(entries));
}

function resolveQuote(quote: string, sources: QuoteSources): Result<string, string> {
  const [, name = "", number, pick = ""] = /^(prompt|result:(\d{1,4}|last))(?::([\s\S]+))?$/.exec(quote) ?? [];
  if (name === "") return err(`unknown quote; allowed: ${QUOTE_FORMS}`);
  const source = name === "prompt" ? sources.prompt : resultAt(number ?? "", sources.results);
  if (source === undefined) return err(`there are ${sources.results.length} results so far`);
  return pick === "" ? ok(source) : pickFrom(source, pick);
}

function resultAt(number: string, results: readonly string[]): string | undefined {
  return number === "last" ? results.at(-1) : results[Number(number) - 1];
}

function pickFrom(source: string, pick: string): Result<string, string> {
  const [, word, form, operand = ""] = /^(word )?(line|after|json) ?([\s\S]*)$/.exec(pick) ?? [];
  if (form === "line" && !word) return pickLine(source, operand);
  if (form === "json" && !word) return pickJson(source, operand);
  if (form === "after" && operand !== "") return pickAfter(source, operand, word !== undefined);
  return err(`unknown quote; allowed: ${QUOTE_FORMS}`);
}

function pickLine(source: string, operand: string): Result<string, string> {
  const line = source.split(/\r?\n/)[Number(operand) - 1];
  return line === undefined ? err(`there is no line ${operand}`) : ok(line);
}

/** To the end of the line, trimmed, or only the word: up to white space, a quote mark, comma or semicolon. */
function pickAfter(source: string, text: string, word: boolean): Result<string, string> {
  const at = source.indexOf(text);
  if (at === -1) return err(`the text ${JSON.stringify(text)} is not there`);
  const rest = source.slice(at + text.length);
  const [found = ""] = (word ? /^\s*([^\s"'`,;]*)/ : /^([^\r\n]*)/).exec(rest)?.slice(1) ?? [];
  return ok(found.trim());
}

/** A JSON pointer (RFC 6901) into a result that is JSON; a string is quoted bare, anything else as JSON. */
function pickJson(source: string, pointer: string): Result<string, string> {
  let value: unknown;
  try {
    value = JSON.parse(source);
  } catch {
    return err("the text is not JSON");
  }
  for (const token of pointer.split("/").slice(1)) {
    const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
    const holder = Array.isArray(value) || isPlainObject(value) ? value : {};
    if (!Object.hasOwn(holder, key)) return err(`nothing at ${pointer}`);
    value = (holder as Record<string, unknown>)[key];
  }
  return ok(typeof value === "string" ? value : JSON.stringify(value));
}
