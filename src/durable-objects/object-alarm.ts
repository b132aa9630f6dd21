/**
 * The object's one alarm. Everything that needs a later wake is a source of a due time; the earliest wins. Only this
 * module calls `setAlarm`, because a second call overwrites the first and each one is a billed row.
 *
 * An alarm is moved earlier at once, never later: an early alarm finds nothing due and sets the next one, which costs
 * less than a row at the end of every run.
 */
export interface AlarmSource {
  /** Milliseconds since the epoch, or `undefined` when nothing is due. */
  nextDueAt(): number | undefined;
}

export class ObjectAlarm {
  readonly #storage: DurableObjectStorage;
  readonly #sources: readonly AlarmSource[];
  readonly #onRow: () => void;
  #scheduledAt: number | null | undefined;

  constructor(storage: DurableObjectStorage, sources: readonly AlarmSource[], onRow: () => void = () => {}) {
    this.#storage = storage;
    this.#sources = sources;
    this.#onRow = onRow;
  }

  /** Sets the alarm when something is due before it. */
  async arm(): Promise<void> {
    this.#scheduledAt ??= await this.#storage.getAlarm();
    const dueAt = this.#earliest();
    if (dueAt === undefined) return;
    if (this.#scheduledAt !== null && this.#scheduledAt !== undefined && this.#scheduledAt <= dueAt) return;
    this.#scheduledAt = dueAt;
    this.#onRow();
    await this.#storage.setAlarm(dueAt);
  }

  /** The alarm fired: it is gone until armed again. */
  fired(): void {
    this.#scheduledAt = null;
  }

  #earliest(): number | undefined {
    const times = this.#sources.map((source) => source.nextDueAt()).filter((time) => time !== undefined);
    return times.length === 0 ? undefined : Math.min(...times);
  }
}
