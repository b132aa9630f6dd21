/**
 * The `bash` tool: a simulated shell over the call's workspace session.
 *
 * Owns one shell per call and the form of its output. Does not own files (the session) or bounds (`bash-limits.ts`).
 * Invariants: nothing of a call but its files outlives it; no network; a script ends within its bounds or its wall
 * clock, or when the call is cancelled; the answer is bounded.
 */
import { Bash, InMemoryFs, MountableFs, type BashExecResult } from "just-bash/browser";
import { z } from "zod";
import { cutText, UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import { WORKSPACE_ROOT } from "../../domain/workspace/paths.ts";
import { BASH_LIMITS, BASH_TMP_BYTES_MAX, BASH_WALL_MS_MAX, StepBudget } from "./bash-limits.ts";
import { descriptionField } from "./read-files.ts";
import type { Tool, ToolOutcome, ToolRuntime } from "./tool.ts";
import { WorkspaceFileSystem } from "./workspace-file-system.ts";
import type { WorkspaceSession } from "./workspace.ts";

/** About 5,000 tokens: a model that needs more pages through a file instead. */
export const BASH_STDOUT_CHARS_MAX = 16_000;
/** Errors repeat themselves: the first and last lines tell. */
export const BASH_STDERR_CHARS_MAX = 4_000;

const parameters = z.object({
  command: z.string().min(1).describe("The script to run. Several lines, pipes, loops and heredocs are fine."),
  description: descriptionField,
});

export const bashTool: Tool = {
  name: "bash",
  description: [
    `Runs a bash script in ${WORKSPACE_ROOT}, the files of this thread. Each call starts a fresh shell: files stay,`,
    "variables and the directory do not, and /tmp is emptied. A simulated shell with the usual text tools (grep, sed, awk, sort, uniq,",
    "cut, jq, find, diff, ...), some options missing: no network, no python, no other programs, no background processes, no links.",
    `A call is stopped after ${BASH_WALL_MS_MAX / 1_000} s or when it computes too much.`,
    "The answer is the standard output, then the standard error, then the exit code; a code other than 0 is an error.",
  ].join(" "),
  parameters,
  recovery: "safe",
  execute: async (args, runtime) => runScript(parameters.parse(args).command, runtime),
};

async function runScript(command: string, runtime: ToolRuntime): Promise<ToolOutcome> {
  if (runtime.signal.aborted) return stopped("the call was cancelled");
  const budget = new StepBudget();
  try {
    const result = await newShell(runtime.workspace, budget).exec(command, { signal: runtime.signal });
    if (runtime.signal.aborted) return stopped("the call was cancelled");
    return toOutcome(result, budget);
  } catch (error) {
    // A refused redirect ends the whole script: the shell passes the file system's error on instead of setting $?.
    return stopped(error instanceof Error ? error.message : String(error));
  }
}

function newShell(session: WorkspaceSession, budget: StepBudget): Bash {
  const base = new InMemoryFs({}, { maxTotalBytes: BASH_TMP_BYTES_MAX });
  base.mkdirSync("/tmp");
  const fs = new MountableFs({
    base,
    mounts: [{ mountPoint: WORKSPACE_ROOT, filesystem: new WorkspaceFileSystem(session) }],
  });
  return new Bash({
    fs,
    cwd: WORKSPACE_ROOT,
    env: { HOME: WORKSPACE_ROOT, TMPDIR: "/tmp" },
    executionLimits: BASH_LIMITS,
    coverage: budget,
    // It patches `Function`, timers and `process` of the whole isolate, where other runs and graphs are at work.
    defenseInDepth: false,
  });
}

function toOutcome(result: BashExecResult, budget: StepBudget): ToolOutcome {
  const exitCode = budget.exhausted && result.exitCode === 0 ? 1 : result.exitCode;
  const parts = [
    boundOutput(trimEnd(result.stdout), BASH_STDOUT_CHARS_MAX),
    boundOutput(trimEnd(forReader(result.stderr)), BASH_STDERR_CHARS_MAX),
    `exit code ${exitCode}`,
  ];
  return { status: exitCode === 0 ? "success" : "error", content: parts.filter((part) => part !== "").join("\n") };
}

function stopped(why: string): ToolOutcome {
  return {
    status: "error",
    content: `bash: stopped: ${forReader(boundOutput(why, BASH_STDERR_CHARS_MAX))}\nexit code 1`,
  };
}

/** Beginning and end of what the shell wrote; the line that tells what is missing comes on top of the bound. */
function boundOutput(text: string, charsMax: number): string {
  return cutText(text, charsMax, {
    ruler: UTF16_UNITS,
    keeps: "both_ends",
    mark: (omitted) => `\n[... ${omitted} of ${text.length} characters left out ...]\n`,
    markChars: 0,
  });
}

/** The shell names its configuration fields and its packages, which a model cannot change. */
function forReader(text: string): string {
  return text
    .replaceAll(/, increase executionLimits\.\w+/g, "; this is a limit of the shell")
    .replaceAll(/command not available in browser environments\.[^\n]*/g, "command not found");
}

function trimEnd(text: string): string {
  return text.endsWith("\n") ? text.slice(0, -1) : text;
}
