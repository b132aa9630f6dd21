/**
 * The tools that change files: `write_file` and `str_replace`. What they write is staged in the call's session and
 * commits with the call's result, so each happens exactly once. Both are one synchronous step: no other call can come
 * between reading and writing.
 */
import { z } from "zod";
import { descriptionField, failure, pathField, readText, refused, success } from "./read-files.ts";
import { encodeText } from "./text-content.ts";
import type { Tool, ToolOutcome } from "./tool.ts";
import { FILE_BYTES_MAX } from "../../domain/workspace/paths.ts";
import type { WorkspaceSession } from "./workspace.ts";

const writeFileParameters = z.object({
  path: pathField,
  content: z.string().describe("The text, exactly as it shall be stored; no line end is added."),
  append: z.boolean().optional().describe("Adds to the end instead of replacing the file. Default false."),
  description: descriptionField,
});

export const writeFileTool: Tool = {
  name: "write_file",
  description:
    "Creates or replaces a text file of the workspace, or adds to its end with append. Missing directories are created. Write long files in parts with append.",
  parameters: writeFileParameters,
  recovery: "safe",
  execute: async (args, runtime) => {
    const { path, content, append = false } = writeFileParameters.parse(args);
    const bytes = encodeText(content);
    const written = append ? runtime.workspace.append(path, bytes) : runtime.workspace.write(path, bytes);
    if (!written.ok) return refused(written.error);
    return success(`${append ? "Added" : "Wrote"} ${bytes.byteLength} bytes ${append ? "to" : "into"} ${path}`);
  },
};

const strReplaceParameters = z.object({
  path: pathField,
  old_str: z.string().min(1).describe("The text to replace, exactly as it stands in the file, line ends included."),
  new_str: z.string().describe("The text to put in its place; empty removes it."),
  replace_all: z
    .boolean()
    .optional()
    .describe("Replaces every occurrence. Default false: old_str must occur exactly once."),
  description: descriptionField,
});

export const strReplaceTool: Tool = {
  name: "str_replace",
  description:
    "Replaces text in a file of the workspace. old_str must occur exactly once, unless replace_all is set; otherwise nothing is changed and the number of occurrences is reported.",
  parameters: strReplaceParameters,
  recovery: "safe",
  execute: async (args, runtime) => replaceText(strReplaceParameters.parse(args), runtime.workspace),
};

function replaceText(args: z.infer<typeof strReplaceParameters>, session: WorkspaceSession): ToolOutcome {
  const { path, old_str: from, new_str: to, replace_all: replaceAll = false } = args;
  const text = readText(session, path);
  if (!text.ok) return text.outcome;
  const count = occurrences(text.value, from);
  if (count === 0)
    return failure(`old_str occurs 0 times in ${path}; it must match exactly, spaces and line ends included`);
  if (count > 1 && !replaceAll) {
    return failure(`old_str occurs ${count} times in ${path}; make it longer until it is unique, or set replace_all`);
  }
  // Checked before the text is built: a short old_str and a long new_str can ask for gigabytes.
  const chars = text.value.length + count * (to.length - from.length);
  if (chars > FILE_BYTES_MAX) return refused({ reason: "file_too_large", path, bytes: chars, limit: FILE_BYTES_MAX });
  const written = session.write(path, encodeText(text.value.replaceAll(from, () => to)));
  if (!written.ok) return refused(written.error);
  return success(`Replaced ${count} ${count === 1 ? "occurrence" : "occurrences"} in ${path}`);
}

function occurrences(text: string, part: string): number {
  let count = 0;
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) count += 1;
  return count;
}
