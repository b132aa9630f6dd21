/**
 * The steps of a script, one function a verb. A step is a part of an answer (text or a call) or a setting for the turns
 * behind it. `delegate` and `batch` are sugar for calls of `task` and `batch_task`.
 */
import { err, ok, type Result } from "../../domain/shared/result.ts";
import { parseObject } from "./request-rules.ts";

export type ScriptUsage = "counted" | "none" | { readonly input: number; readonly output: number };

export interface ScriptFailure {
  readonly kind: "status" | "cut" | "empty" | "stall" | "error" | "length";
  readonly status: number;
  /** How many attempts at this turn fail; Infinity when every one does. */
  readonly times: number;
  readonly retryAfterSeconds: number | undefined;
}

export interface ScriptError {
  readonly line: number;
  readonly message: string;
}

/** A step with its here-document. */
export interface ScriptLine {
  readonly number: number;
  readonly text: string;
  readonly body: { readonly text: string; readonly verbatim: boolean } | undefined;
}

/** Text that may hold quotes; verbatim text is taken as it stands (a script for a subagent has quotes of its own). */
export interface ScriptText {
  readonly text: string;
  readonly verbatim: boolean;
}

/** An argument value: JSON whose strings may hold quotes, or a text. */
export type ScriptArguments = Readonly<Record<string, unknown>>;

export type ScriptPart =
  | { readonly kind: "say"; readonly text: ScriptText }
  | { readonly kind: "call"; readonly tool: string; readonly args: ScriptArguments; readonly texts: ScriptTexts }
  | { readonly kind: "raw"; readonly tool: string; readonly raw: string };

/** Arguments given as texts, laid over `args`. */
export type ScriptTexts = Readonly<Record<string, ScriptText>>;

export interface ScriptSettings {
  delayMs?: number;
  usage?: ScriptUsage;
  failure?: ScriptFailure;
  quirks?: readonly string[];
}

export type ScriptStep =
  | { readonly kind: "part"; readonly part: ScriptPart }
  | { readonly kind: "set"; readonly set: ScriptSettings };

/** A token every 10 s is slower than any model; more would only hang a test. */
export const SCRIPT_DELAY_MS_MAX = 10_000;

/** `subagent_batches.max_items` at its highest. */
export const SCRIPT_BATCH_ITEMS_MAX = 5_000;

type Read = (rest: string, line: ScriptLine) => Result<ScriptStep, ScriptError>;

const VERBS: Readonly<Record<string, Read>> = {
  say: (rest, line) => part({ kind: "say", text: line.body ?? { text: rest, verbatim: false } }),
  call: readCall,
  raw: readRaw,
  delegate: readDelegate,
  batch: readBatch,
  delay: readDelay,
  usage: readUsage,
  fail: readFail,
  quirk: (rest) => set({ quirks: rest.split(/\s+/).filter((quirk) => quirk !== "") }),
};

export function readStep(line: ScriptLine): Result<ScriptStep, ScriptError> {
  const [, verb = "", rest = ""] = /^(\S*)\s*([\s\S]*)$/.exec(line.text) ?? [];
  const read = Object.hasOwn(VERBS, verb) ? VERBS[verb] : undefined;
  return read ? read(rest, line) : fault(line, `unknown step "${verb}"`, Object.keys(VERBS).join(", "));
}

function part(value: ScriptPart): Result<ScriptStep, ScriptError> {
  return ok({ kind: "part", part: value });
}

function set(value: ScriptSettings): Result<ScriptStep, ScriptError> {
  return ok({ kind: "set", set: value });
}

function fault(line: ScriptLine, problem: string, allowed: string): Result<never, ScriptError> {
  return err({ line: line.number, message: `${problem}; allowed: ${allowed}` });
}

const CALL_FORM = "call <tool> <one JSON object>, or call <tool> <argument> <<END for one text argument";

function readCall(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  const [, tool = "", json = ""] = /^(\S+)\s*([\s\S]*)$/.exec(rest) ?? [];
  if (tool === "") return fault(line, "a call without a tool", CALL_FORM);
  if (line.body) return readCallWithText(tool, json, { line, body: line.body });
  const args = parseObject(json === "" ? "{}" : json);
  if (!args) return fault(line, "arguments that are not one JSON object", CALL_FORM);
  return part({ kind: "call", tool, args, texts: {} });
}

/** `call write_file {"path": "a"} content <<END`: JSON, then the name of the argument the text becomes. */
function readCallWithText(
  tool: string,
  rest: string,
  { line, body }: { line: ScriptLine; body: ScriptText },
): Result<ScriptStep, ScriptError> {
  const [, json = "", argument = ""] = /^([\s\S]*?)\s*([A-Za-z0-9_]+)$/.exec(rest) ?? [];
  const args = parseObject(json === "" ? "{}" : json);
  if (argument === "" || !args) return fault(line, "a here-document without an argument name", CALL_FORM);
  return part({ kind: "call", tool, args, texts: { [argument]: body } });
}

function readRaw(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  const [, tool = "", raw = ""] = /^(\S+) ?([\s\S]*)$/.exec(rest) ?? [];
  if (tool === "") return fault(line, "raw without a tool", "raw <tool> <argument text as the model would send it>");
  return part({ kind: "raw", tool, raw });
}

function readDelegate(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  const fields = splitFields(rest, line, 3);
  if (!fields) return fault(line, "an incomplete delegate", "delegate <subagent_type> :: <description> :: <prompt>");
  const [type, description, prompt] = fields;
  return part({
    kind: "call",
    tool: "task",
    args: { subagent_type: type?.text },
    texts: { ...(description && { description }), ...(prompt && { prompt }) },
  });
}

const BATCH_FORM = "batch <subagent_type> :: <title> :: <1..40 | a,b,c> :: <prompt with {{item}}>";

function readBatch(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  const fields = splitFields(rest, line, 4);
  const keys = readKeys(fields?.[2]?.text ?? "");
  const prompt = fields?.[3]?.text;
  if (!keys || prompt === undefined) return fault(line, "an incomplete batch", BATCH_FORM);
  const items = keys.map((key) => ({
    key,
    prompt: protect(prompt.replaceAll("{{item}}", key), fields?.[3]?.verbatim),
  }));
  const args = { subagent_type: fields?.[0]?.text, title: fields?.[1]?.text, items };
  return part({ kind: "call", tool: "batch_task", args, texts: {} });
}

/** JSON strings are always read for quotes; a verbatim text has its own quotes escaped to pass through. */
function protect(text: string, verbatim: boolean | undefined): string {
  return verbatim ? text.replaceAll("{{", "\\{{") : text;
}

function readKeys(text: string): string[] | undefined {
  const range = /^(\d{1,6})\.\.(\d{1,6})$/.exec(text);
  if (!range) {
    const keys = text.split(",").map((key) => key.trim());
    return keys.every((key) => key !== "") && keys.length <= SCRIPT_BATCH_ITEMS_MAX ? keys : undefined;
  }
  const [from, to] = [Number(range[1]), Number(range[2])];
  if (to < from || to - from >= SCRIPT_BATCH_ITEMS_MAX) return undefined;
  return Array.from({ length: to - from + 1 }, (_, index) => String(from + index));
}

/** `a :: b :: c`; the last field runs to the end of the line or is the here-document. */
function splitFields(rest: string, line: ScriptLine, count: number): ScriptText[] | undefined {
  const pieces = rest.split("::").map((field) => field.trim());
  const fields = [...pieces.slice(0, count - 1), pieces.slice(count - 1).join(" :: ")].map(plain);
  if (line.body) fields.splice(count - 1, 1, line.body);
  return fields.length === count && fields.every((field) => field.text !== "") ? fields : undefined;
}

function plain(text: string): ScriptText {
  return { text, verbatim: false };
}

function readDelay(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  const ms = /^\d{1,6}$/.test(rest) ? Number(rest) : Number.NaN;
  return ms <= SCRIPT_DELAY_MS_MAX
    ? set({ delayMs: ms })
    : fault(line, `delay "${rest}"`, `milliseconds a token, 0 to ${SCRIPT_DELAY_MS_MAX}`);
}

function readUsage(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  if (rest === "none" || rest === "counted") return set({ usage: rest });
  const numbers = /^(\d{1,9})\s+(\d{1,9})$/.exec(rest);
  return numbers
    ? set({ usage: { input: Number(numbers[1]), output: Number(numbers[2]) } })
    : fault(line, `usage "${rest}"`, "usage <input> <output>, usage none, usage counted");
}

const FAIL_FORM = "fail <status 400-599 | cut | empty | stall | error | length> [times] [retry-after <seconds>]";
const FAIL_SYNTAX = /^([45]\d\d|cut|empty|stall|error|length)(?:\s+(\d{1,4}))?(?:\s+retry-after\s+(\d{1,6}))?$/;

function readFail(rest: string, line: ScriptLine): Result<ScriptStep, ScriptError> {
  const [, what, times, seconds] = FAIL_SYNTAX.exec(rest) ?? [];
  if (what === undefined) return fault(line, `fail "${rest}"`, FAIL_FORM);
  const status = Number(what);
  return set({
    failure: {
      kind: Number.isNaN(status) ? (what as ScriptFailure["kind"]) : "status",
      status: Number.isNaN(status) ? 0 : status,
      times: times === undefined ? Number.POSITIVE_INFINITY : Number(times),
      retryAfterSeconds: seconds === undefined ? undefined : Number(seconds),
    },
  });
}
