/**
 * A TCP proxy on loopback that cuts connections on command, in the middle of whatever they carry: what a phone in a
 * tunnel does to a stream. Owns sockets only; it reads nothing of what passes.
 */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
  /** Bytes still let through to the client before the cut; `undefined` lets all through. */
  left: number | undefined;
}

export class CuttingProxy {
  readonly #links = new Set<Link>();
  readonly #server = createServer((client) => {
    this.#open(client);
  });
  readonly #target: number;
  #opened = 0;

  constructor(targetPort: number) {
    this.#target = targetPort;
  }

  async start(): Promise<string> {
    await new Promise<void>((listening) => this.#server.listen(0, "127.0.0.1", listening));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections accepted so far. */
  get opened(): number {
    return this.#opened;
  }

  /** Cuts every connection once it has passed `bytes` more to its client. */
  cutAfter(bytes: number): void {
    for (const link of this.#links) {
      link.left = bytes;
      if (bytes === 0) this.#cut(link);
    }
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((done) => this.#server.close(() => done()));
    this.cutAfter(0);
    await closed;
  }

  #open(client: Socket): void {
    this.#opened += 1;
    const link: Link = { client, upstream: connect(this.#target, "127.0.0.1"), left: undefined };
    this.#links.add(link);
    client.on("data", (bytes) => link.upstream.write(bytes));
    link.upstream.on("data", (bytes) => {
      this.#pass(link, bytes);
    });
    for (const socket of [client, link.upstream]) {
      socket.on("error", () => {
        this.#cut(link);
      });
      socket.on("close", () => {
        this.#cut(link);
      });
    }
  }

  #pass(link: Link, bytes: Buffer): void {
    if (link.left === undefined) return void link.client.write(bytes);
    const passed = bytes.subarray(0, link.left);
    link.left -= passed.length;
    if (link.left > 0) return void link.client.write(passed);
    link.client.write(passed, () => {
      this.#cut(link);
    });
  }

  #cut(link: Link): void {
    this.#links.delete(link);
    link.client.destroy();
    link.upstream.destroy();
  }
}
