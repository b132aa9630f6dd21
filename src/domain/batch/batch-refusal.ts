/** Why a batch command was refused. Shapes only; `message` is fit for a client or a model. */
import type { BatchViolation } from "./validate-batch.ts";

/** The submission key was used before with another body. */
export interface SubmissionConflict {
  readonly reason: "idempotency_conflict";
  readonly message: string;
}

export type BatchRefusal =
  | BatchViolation
  | SubmissionConflict
  | { readonly reason: "unknown_subagent_type"; readonly message: string }
  /** A named file is missing, is no file, or the files are too large together. */
  | { readonly reason: "file_refused"; readonly field: "files"; readonly message: string }
  | { readonly reason: "batches_disabled"; readonly message: string };
