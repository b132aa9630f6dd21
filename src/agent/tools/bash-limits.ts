/**
 * What one `bash` call may use. Owns the numbers and the step budget; the shell enforces the rest.
 *
 * The bounds count work, not time: a Worker's clock stands still while code computes, so a deadline alone would never
 * fire on a busy loop. Measured costs are in docs/decisions/workspace.md.
 */
import type { BashOptions } from "just-bash/browser";

type ExecutionLimits = NonNullable<BashOptions["executionLimits"]>;

const MEBIBYTE = 1_024 * 1_024;

/** A command costs about 10 µs (`:`) to 100 µs (a redirect): a busy loop ends within a second. */
export const BASH_COMMANDS_MAX = 10_000;
/** `seq 100000` is an iteration, not a command; loops of commands end at the bound above. */
export const BASH_ITERATIONS_MAX = 100_000;
/** Lines of one input, elements of one array: a file of the largest size with short lines. */
export const BASH_LINES_MAX = 250_000;
/** A substitution or branch loop of sed rebuilds its line each time. */
export const BASH_SED_ITERATIONS_MAX = 10_000;
/** Statements and expressions of awk, jq and sed together, about 0.3 µs each: nested loops multiply past any per-loop bound. */
export const BASH_STEPS_MAX = 2_000_000;
/** Recursion deeper than this is a mistake, and each level holds a JavaScript stack of its own. */
export const BASH_CALL_DEPTH_MAX = 50;
/** One string: a doubling loop must stay far below the isolate's 128 MB. Also the largest file a command can read whole. */
export const BASH_STRING_BYTES_MAX = 4 * MEBIBYTE;
/** Everything all commands of the call print or redirect, together. */
export const BASH_OUTPUT_BYTES_MAX = 16 * MEBIBYTE;
/** `/tmp` lives in memory and ends with the call. */
export const BASH_TMP_BYTES_MAX = 4 * MEBIBYTE;
/** The script itself; longer programs belong into a file. */
export const BASH_SOURCE_BYTES_MAX = 256 * 1_024;
/** Wall clock, for `sleep` and the like: well below the keep-alive of a run. */
export const BASH_WALL_MS_MAX = 20_000;

export const BASH_LIMITS: ExecutionLimits = {
  maxSourceBytes: BASH_SOURCE_BYTES_MAX,
  maxCommandCount: BASH_COMMANDS_MAX,
  maxLoopIterations: BASH_ITERATIONS_MAX,
  maxAwkIterations: BASH_ITERATIONS_MAX,
  maxSedIterations: BASH_SED_ITERATIONS_MAX,
  maxJqIterations: BASH_ITERATIONS_MAX,
  maxQueryElements: BASH_ITERATIONS_MAX,
  maxArrayElements: BASH_LINES_MAX,
  maxBraceExpansionResults: 10_000,
  maxGlobOperations: BASH_ITERATIONS_MAX,
  maxTraversalEntries: BASH_ITERATIONS_MAX,
  maxCallDepth: BASH_CALL_DEPTH_MAX,
  maxExecDepth: 16,
  maxSubstitutionDepth: 16,
  maxSourceDepth: 16,
  maxFileDescriptors: 64,
  maxStringLength: BASH_STRING_BYTES_MAX,
  maxHeredocSize: BASH_STRING_BYTES_MAX,
  maxLiveBytes: 8 * BASH_STRING_BYTES_MAX,
  maxInputBytes: 16 * BASH_STRING_BYTES_MAX,
  maxOutputSize: BASH_OUTPUT_BYTES_MAX,
  maxFileSystemBytes: BASH_TMP_BYTES_MAX,
  maxExecutionTimeMs: BASH_WALL_MS_MAX,
};

export class StepsExhaustedError extends Error {
  override readonly name = "StepsExhaustedError";
}

/**
 * Counts what the shell's instrumentation hook reports: one hit per statement and expression of bash, awk, jq and sed.
 * The shell itself bounds each loop alone, so two nested ones would run for hours. Once spent it stays spent: a command
 * that swallows the error cannot go on.
 */
export class StepBudget {
  #left = BASH_STEPS_MAX;

  get exhausted(): boolean {
    return this.#left <= 0;
  }

  hit(_feature: string): void {
    this.#left -= 1;
    if (this.#left <= 0) throw new StepsExhaustedError(`more than ${BASH_STEPS_MAX} steps of computation`);
  }
}
