/**
 * How often a tool call was started. A call that was open when the object died is attempt 2 when recovery starts it
 * again (architecture section 5, Re-run tool calls). Memory only: recovery names the open calls from committed state.
 */
export class ToolAttempts {
  readonly #starts = new Map<string, number>();

  /** Recovery found these calls open: each was started, or may have been, before the crash. */
  reopen(toolCallIds: readonly string[]): void {
    for (const id of toolCallIds) this.#starts.set(id, 1);
  }

  next(toolCallId: string): number {
    const starts = (this.#starts.get(toolCallId) ?? 0) + 1;
    this.#starts.set(toolCallId, starts);
    return starts;
  }

  clear(): void {
    this.#starts.clear();
  }
}
