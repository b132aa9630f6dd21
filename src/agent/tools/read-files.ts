/**
 * The tools that look at files: `ls` and `read_file`. Both only read the call's workspace session; answers are bounded
 * and say how to see the rest.
 */
import { z } from "zod";
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import type { Tool, ToolOutcome } from "./tool.ts";
import { decodeText } from "./text-content.ts";
import { workspaceRefusalMessage } from "./workspace-refusal-message.ts";
import type { WorkspaceEntry, WorkspaceRefusal, WorkspaceSession } from "./workspace.ts";

/** Lines of one listing: more tells a model nothing, `find` and `ls | grep` in bash narrow it. */
export const LS_ENTRIES_MAX = 500;
/** About 10,000 tokens of one file at a time; the rest is read by line range. */
export const READ_FILE_CHARS_MAX = 40_000;

export const descriptionField = z.string().optional().describe("Why, in a few words; shown to people who watch.");
export const pathField = z.string().describe("Absolute below /workspace, or relative to it. `..` is not allowed.");

const lsParameters = z.object({ path: pathField, description: descriptionField });

export const lsTool: Tool = {
  name: "ls",
  description:
    "Lists a directory of the workspace: one line per entry, directories end with a slash, files show their size in bytes.",
  parameters: lsParameters,
  recovery: "safe",
  execute: async (args, runtime) => {
    const listed = runtime.workspace.list(lsParameters.parse(args).path);
    return listed.ok ? success(listing(listed.value)) : refused(listed.error);
  },
};

const readFileParameters = z.object({
  path: pathField,
  start_line: z.int().min(1).optional().describe("First line to show, counted from 1. Default 1."),
  end_line: z.int().min(1).optional().describe("Last line to show, included. Default: the last line."),
  description: descriptionField,
});

export const readFileTool: Tool = {
  name: "read_file",
  description: `Shows a text file of the workspace, or the lines start_line to end_line of it, exactly as stored. At most ${READ_FILE_CHARS_MAX} characters at a time; longer files are read by line ranges. Binary files are refused.`,
  parameters: readFileParameters,
  recovery: "safe",
  execute: async (args, runtime) => {
    const { path, start_line: first = 1, end_line: last } = readFileParameters.parse(args);
    if (last !== undefined && last < first) return failure(`end_line ${last} is before start_line ${first}`);
    const text = readText(runtime.workspace, path);
    return text.ok ? excerpt(text.value, { path, first, last }) : text.outcome;
  },
};

/** A file's text, or the outcome that says why there is none. */
export function readText(
  session: WorkspaceSession,
  path: string,
): { readonly ok: true; readonly value: string } | { readonly ok: false; readonly outcome: ToolOutcome } {
  const read = session.read(path);
  if (!read.ok) return { ok: false, outcome: refused(read.error) };
  const value = decodeText(read.value);
  if (value !== undefined) return { ok: true, value };
  const size = read.value.byteLength;
  const outcome = failure(`${path} is not UTF-8 text (${size} bytes); use bash, for example od -c or wc -c`);
  return { ok: false, outcome };
}

export function success(content: string): ToolOutcome {
  return { status: "success", content };
}

export function failure(why: string): ToolOutcome {
  return { status: "error", content: `Error: ${why}` };
}

export function refused(refusal: WorkspaceRefusal): ToolOutcome {
  return failure(workspaceRefusalMessage(refusal));
}

function listing(entries: readonly WorkspaceEntry[]): string {
  if (entries.length === 0) return "(empty directory)";
  const lines = entries.slice(0, LS_ENTRIES_MAX).map(({ path, kind, size }) => {
    const name = path.slice(path.lastIndexOf("/") + 1);
    return kind === "directory" ? `${name}/` : `${name}\t${size}`;
  });
  if (entries.length > LS_ENTRIES_MAX) lines.push(`[... ${entries.length - LS_ENTRIES_MAX} more entries]`);
  return lines.join("\n");
}

interface Range {
  readonly path: string;
  readonly first: number;
  readonly last: number | undefined;
}

function excerpt(text: string, { path, first, last }: Range): ToolOutcome {
  if (text === "") return success("(empty file)");
  const lines = linesOf(text);
  if (first > lines.length) return failure(`${path} has ${lines.length} lines; start_line ${first} is past the end`);
  const selected = lines.slice(first - 1, last);
  const whole = selected.join("");
  if (whole.length <= READ_FILE_CHARS_MAX) return success(whole);
  return success(cutExcerpt(selected, { first, total: lines.length }));
}

/** Whole lines up to the bound; a single longer line is cut inside. */
function cutExcerpt(selected: readonly string[], { first, total }: { first: number; total: number }): string {
  let chars = 0;
  let count = 0;
  for (const line of selected) {
    if (chars + line.length > READ_FILE_CHARS_MAX) break;
    chars += line.length;
    count += 1;
  }
  if (count === 0) {
    const shown = UTF16_UNITS.first(selected[0]!, READ_FILE_CHARS_MAX);
    return `${shown}\n[line ${first} of ${total} is cut: ${shown.length} of ${selected[0]!.length} characters shown]`;
  }
  const next = first + count;
  return `${selected.slice(0, count).join("")}[lines ${first} to ${next - 1} of ${total} shown; go on with start_line ${next}]`;
}

/** Lines with their ends; a final line end starts no further line. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}
