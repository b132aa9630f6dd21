/**
 * The grammar of `scripted` (docs/scripted-model.md): finds a script in a prompt and parses it into model turns.
 * Owns syntax only: what a turn says for a given conversation is `script-answer.ts`. A script is a fenced block marked
 * `script`, or every line that starts with "@ ". One step a line, one model turn a step, `&` joins steps into one turn.
 * Errors are values naming the line and what is allowed, since the model shows them as its answer.
 */
import { err, ok, type Result } from "../../domain/shared/result.ts";
import {
  readStep,
  type ScriptError,
  type ScriptFailure,
  type ScriptLine,
  type ScriptPart,
  type ScriptUsage,
} from "./script-steps.ts";

/** A run has at most 1,000 turns (`runtime.lead_max_turns`), so longer scripts cannot be reached. */
export const SCRIPT_TURNS_MAX = 1_000;

export interface ScriptTurn {
  readonly line: number;
  readonly parts: readonly ScriptPart[];
  readonly delayMs: number;
  readonly usage: ScriptUsage;
  readonly failure: ScriptFailure | undefined;
  /** Odd wire behaviour of the test model server; `scripted` has no wire and ignores them. */
  readonly quirks: readonly string[];
}

const FENCE_OPEN = /^\s*```script\s*$/;
const FENCE_CLOSE = /^\s*```\s*$/;
const AT_STEP = /^\s*@ +/;
const HERE_DOCUMENT = /<<('?)([A-Z][A-Z0-9_]*)\1$/;

/** `undefined` when the prompt holds no script. */
export function parseScript(prompt: string): Result<readonly ScriptTurn[], ScriptError> | undefined {
  const lines = readLines(prompt.split(/\r?\n/));
  if (!lines) return undefined;
  return lines.ok ? parseTurns(lines.value) : lines;
}

function readLines(source: readonly string[]): Result<readonly ScriptLine[], ScriptError> | undefined {
  const open = source.findIndex((line) => FENCE_OPEN.test(line));
  const fenced = open !== -1;
  if (!fenced && !source.some((line) => AT_STEP.test(line))) return undefined;
  const lines: ScriptLine[] = [];
  for (let at = open + 1; at < source.length; at += 1) {
    const raw = source[at] ?? "";
    if (fenced && FENCE_CLOSE.test(raw)) return ok(lines);
    if (!fenced && !AT_STEP.test(raw)) continue;
    const text = raw.replace(AT_STEP, "").trim();
    const marker = HERE_DOCUMENT.exec(text);
    const end = marker ? source.findIndex((line, index) => index > at && line.trim() === marker[2]) : at;
    if (end === -1) return err({ line: at + 1, message: `no line "${marker?.[2]}" ends the here-document` });
    lines.push(toLine({ number: at + 1, text, marker, body: source.slice(at + 1, end).join("\n") }));
    at = end;
  }
  return fenced ? err({ line: open + 1, message: "no line ``` ends the script" }) : ok(lines);
}

function toLine(read: { number: number; text: string; marker: RegExpExecArray | null; body: string }): ScriptLine {
  if (!read.marker) return { number: read.number, text: read.text, body: undefined };
  const text = read.text.slice(0, read.marker.index).trimEnd();
  return { number: read.number, text, body: { text: read.body, verbatim: read.marker[1] === "'" } };
}

interface Reading {
  readonly turns: ScriptTurn[];
  delayMs: number;
  usage: ScriptUsage;
  failure: ScriptFailure | undefined;
  quirks: readonly string[];
  /** The last step was one of an `&` group that the next `&` joins. */
  joins: boolean;
}

function parseTurns(lines: readonly ScriptLine[]): Result<readonly ScriptTurn[], ScriptError> {
  const reading: Reading = { turns: [], delayMs: 0, usage: "counted", failure: undefined, quirks: [], joins: false };
  for (const line of lines) {
    if (line.text === "" || line.text.startsWith("#")) continue;
    const joined = line.text.startsWith("&");
    const step = readStep({ ...line, text: joined ? line.text.slice(1).trim() : line.text });
    if (!step.ok) return step;
    if (step.value.kind === "part") addPart(reading, { line: line.number, part: step.value.part, joined });
    else Object.assign(reading, step.value.set, { joins: false });
    if (reading.turns.length > SCRIPT_TURNS_MAX) {
      return err({ line: line.number, message: `a script has at most ${SCRIPT_TURNS_MAX} turns` });
    }
  }
  const last = lines.at(-1)?.number ?? 1;
  if (reading.failure) reading.turns.push(newTurn(reading, last, []));
  return reading.turns.length > 0 ? ok(reading.turns) : err({ line: last, message: "the script has no step" });
}

function addPart(reading: Reading, added: { line: number; part: ScriptPart; joined: boolean }): void {
  const open = added.joined && reading.joins ? reading.turns.pop() : undefined;
  reading.turns.push(
    open ? { ...open, parts: [...open.parts, added.part] } : newTurn(reading, added.line, [added.part]),
  );
  reading.failure = undefined;
  reading.quirks = [];
  reading.joins = added.joined;
}

function newTurn(reading: Reading, line: number, parts: readonly ScriptPart[]): ScriptTurn {
  const { delayMs, usage, failure, quirks } = reading;
  return { line, parts, delayMs, usage, failure, quirks };
}
