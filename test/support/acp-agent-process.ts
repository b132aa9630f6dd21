/** Starts `acp-agent.ts` as a process of its own and talks to its log and its gates. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

export interface AgentLogEntry {
  readonly event: string;
  readonly details?: unknown;
}

export class AcpAgentProcess {
  readonly #child: ChildProcess;
  readonly #port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.#port = port;
  }

  static async start(): Promise<AcpAgentProcess> {
    const path = new URL("acp-agent.ts", import.meta.url).pathname;
    const child = spawn(process.execPath, [path], { stdio: ["ignore", "pipe", "inherit"] });
    const [line] = (await once(createInterface(child.stdout), "line")) as [string];
    return new AcpAgentProcess(child, (JSON.parse(line) as { port: number }).port);
  }

  /** `query` says how the handshake goes. */
  url(query = ""): string {
    return `ws://127.0.0.1:${this.#port}/agent?${query}`;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async log(event?: string): Promise<readonly AgentLogEntry[]> {
    return (await this.logSince(0)).filter((entry) => event === undefined || entry.event === event);
  }

  /** Of connections made since the log had `from` entries. */
  async logSince(from: number): Promise<readonly AgentLogEntry[]> {
    const response = await fetch(`${this.origin}/log?from=${from}`);
    return JSON.parse(await response.text()) as AgentLogEntry[];
  }

  /** Resolves when a plan is at that gate. */
  async reached(gate: string): Promise<void> {
    await fetch(`${this.origin}/reached?gate=${gate}`);
  }

  async open(gate: string): Promise<void> {
    await fetch(`${this.origin}/open?gate=${gate}`);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}
