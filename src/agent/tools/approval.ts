/** Which calls of a tool a person decides about before they run, and how: the configuration's `tools.approval`. */
export const APPROVAL_DECISIONS = ["approve", "edit", "reject"] as const;
export type ApprovalDecision = (typeof APPROVAL_DECISIONS)[number];

export interface ToolApproval {
  /** What a person may decide. */
  readonly decisions: readonly ApprovalDecision[];
  /** Shown with the question. */
  readonly description?: string | undefined;
}
