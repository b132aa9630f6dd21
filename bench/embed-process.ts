/** `embed-server.ts` as a process of its own, which ends with this one: its input closes then. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

export class EmbedServer {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** `args` choose the saver. Rejects when the process ends before it listens. */
  static async start(args: readonly string[]): Promise<EmbedServer> {
    const script = join(import.meta.dirname, "embed-server.ts");
    const child = spawn(process.execPath, [script, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`embed-server.ts ${args.join(" ")} ended with ${String(code)}`);
    });
    ended.catch(() => undefined);
    const [line] = (await Promise.race([once(createInterface(child.stdout), "line"), ended])) as [string];
    return new EmbedServer(child, (JSON.parse(line) as { port: number }).port);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await exited;
  }
}
