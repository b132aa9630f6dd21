/** A reader of a run's stream that keeps what it got, also when the stream breaks in the middle. */

export interface StreamFrame {
  readonly id: number;
  readonly event: string;
  readonly data: string;
}

export class StreamReader {
  #text = "";
  readonly ended: Promise<void>;

  constructor(response: Promise<Response>) {
    this.ended = this.#read(response);
  }

  /** Whole frames with an id, in the order they came. */
  frames(): StreamFrame[] {
    const blocks = this.#text.split("\n\n").slice(0, -1);
    return blocks.flatMap((block) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1];
      const id = field("id");
      return id === undefined ? [] : [{ id: Number(id), event: field("event") ?? "", data: field("data") ?? "" }];
    });
  }

  async #read(response: Promise<Response>): Promise<void> {
    const decoder = new TextDecoder();
    try {
      const { body } = await response;
      if (body === null) return;
      for await (const bytes of body) this.#text += decoder.decode(bytes as Uint8Array, { stream: true });
    } catch {
      // The server died: what came is kept.
    }
  }
}
