/**
 * Live cards in the terminal: one line a subagent, redrawn in place on a terminal, printed once a change elsewhere.
 */

interface Card {
  readonly title: string;
  status: string;
  steps: number;
  tokens: number | undefined;
  readonly startedAt: number;
  endedAt: number | undefined;
}

interface TaskEventLike {
  readonly type?: unknown;
  readonly task_id?: unknown;
  readonly description?: unknown;
  readonly message_index?: unknown;
  readonly usage?: { readonly total_tokens?: number } | null;
}

const REDRAW_MS = 100;

export class Cards {
  readonly #out: NodeJS.WriteStream;
  readonly #cards = new Map<string, Card>();
  #drawnLines = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
    if (out.isTTY) this.#timer = setInterval(() => this.#draw(), REDRAW_MS);
  }

  /** Takes a payload of the run's custom stream; anything but a `task_*` event is ignored. */
  take(payload: unknown): void {
    const event = payload as TaskEventLike;
    if (typeof event.type !== "string" || !event.type.startsWith("task_") || typeof event.task_id !== "string") return;
    const card =
      this.#cards.get(event.task_id) ??
      this.#open(event.task_id, typeof event.description === "string" ? event.description : "subagent");
    if (event.type === "task_running") card.steps = Number(event.message_index ?? card.steps);
    card.tokens = event.usage?.total_tokens ?? card.tokens;
    if (event.type !== "task_started") card.status = event.type.slice("task_".length);
    if (event.type !== "task_started" && event.type !== "task_running") card.endedAt = Date.now();
    if (!this.#out.isTTY && event.type !== "task_running") this.#out.write(`${render(card)}\n`);
  }

  get count(): number {
    return this.#cards.size;
  }

  close(): void {
    clearInterval(this.#timer);
    if (this.#out.isTTY) this.#draw();
  }

  #open(taskId: string, title: string): Card {
    const card: Card = {
      title,
      status: "waiting",
      steps: 0,
      tokens: undefined,
      startedAt: Date.now(),
      endedAt: undefined,
    };
    this.#cards.set(taskId, card);
    return card;
  }

  #draw(): void {
    if (this.#drawnLines > 0) this.#out.write(`\u001B[${this.#drawnLines}A`);
    for (const card of this.#cards.values()) this.#out.write(`\u001B[2K${render(card)}\n`);
    this.#drawnLines = this.#cards.size;
  }
}

function render(card: Card): string {
  const seconds = (((card.endedAt ?? Date.now()) - card.startedAt) / 1_000).toFixed(1);
  const tokens = card.tokens === undefined ? "" : `, ${card.tokens} tokens`;
  return `  ${card.title.padEnd(26)} ${card.status.padEnd(10)} ${card.steps} steps${tokens}, ${seconds} s`;
}

const BAR_WIDTH = 30;

/** A progress bar that redraws in place on a terminal and prints its last state elsewhere. */
export function drawProgress(out: NodeJS.WriteStream, done: number, total: number): void {
  const filled = Math.round((done / total) * BAR_WIDTH);
  const line = `  [${"#".repeat(filled)}${".".repeat(BAR_WIDTH - filled)}] ${done}/${total} items`;
  if (out.isTTY) out.write(`\r\u001B[2K${line}${done === total ? "\n" : ""}`);
  else if (done === total) out.write(`${line}\n`);
}
