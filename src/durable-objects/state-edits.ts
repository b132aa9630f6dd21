/**
 * Edits of the thread's state by clients, one after the other. An edit reads the head and writes its child with awaits
 * between: two at once would leave one of them on a branch nobody reads, and a run accepted between would take the
 * edit's checkpoint for its own progress and be resumed without its input (architecture section 5, Recovery).
 */
export class StateEdits {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  /** True while an edit is under way or waits: no run may be accepted. */
  get active(): boolean {
    return this.#waiting > 0;
  }

  async run<T>(edit: () => Promise<T>): Promise<T> {
    this.#waiting += 1;
    const done = this.#last.then(edit, edit);
    this.#last = done;
    try {
      return await done;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Resolves when the edits that were asked for so far are done, however they ended. */
  async settled(): Promise<void> {
    await Promise.allSettled([this.#last]);
  }
}
