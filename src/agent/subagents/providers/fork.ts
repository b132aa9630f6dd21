/**
 * The `fork` provider: a child in this process that starts from its parent's completed turns (subagent-seam 2.2).
 * Owns the seed, steering and resuming. Invariants: the group with the delegating call is never in the seed, since its
 * results are missing; without a completed turn the child starts like a spawned one; the parent's text is never the
 * child's result; a conversation goes on in one line, so a run is resumed at most once.
 */
import type { BaseMessage } from "@langchain/core/messages";
import { findThreadState } from "../../graph/read-thread-state.ts";
import { completedTurns, withoutOpenCalls } from "../completed-turns.ts";
import type {
  CheckedSubagentRequest,
  SubagentProvider,
  SubagentRequest,
  SubagentResult,
  SubagentRun,
} from "../provider.ts";
import { SteeringQueue } from "../steering-queue.ts";
import { SubagentError } from "../subagent-error.ts";
import { InProcessRun } from "./in-process-run.ts";

export const FORK_PROVIDER_NAME = "fork";

export function forkProvider(): SubagentProvider {
  return {
    name: FORK_PROVIDER_NAME,
    capabilities: { outputSchema: true, depthLimit: true, toolFilter: true, persona: true },
    inheritsParentContext: true,
    start: async (request) => new ForkedRun(request, seedOf(request)),
  };
}

/**
 * UTF-8 bytes of a seed, as JSON: one megabyte of conversation and what stands around its texts. Forks share their parent's
 * messages, but each stores them with its first checkpoint and holds a request's body of that size until it is sent.
 */
export const FORK_SEED_BYTES_MAX = 1_200_000;

/** The parent's state as its step started, the same after a crash; outside a graph there is no parent's turn. */
function seedOf({ parent }: SubagentRequest): readonly BaseMessage[] {
  return boundedSeed(completedTurns(findThreadState(parent.config)?.messages ?? []));
}

/** A seed past the bound is refused, not cut: its child would be asked to go on from a conversation that it cannot see. */
function boundedSeed(seed: readonly BaseMessage[]): readonly BaseMessage[] {
  const bytes = seed.reduce((sum, message) => sum + bytesOf(message), 0);
  if (bytes <= FORK_SEED_BYTES_MAX) return seed;
  throw new RangeError(
    `This conversation is too long to fork: ${bytes} bytes, at most ${FORK_SEED_BYTES_MAX}. ` +
      "Use a subagent that does not see it, and tell it what it needs",
  );
}

function bytesOf(message: BaseMessage): number {
  return new TextEncoder().encode(JSON.stringify(message.toDict())).length;
}

type RunPhase = "running" | "settled" | "resumed" | "disposed";

const NOT_RESUMABLE_BECAUSE: Readonly<Record<Exclude<RunPhase, "settled">, string>> = {
  running: "the child is still running: send it a message",
  resumed: "the run was resumed: go on with the run that gave",
  disposed: "the run is disposed",
};

class ForkedRun implements SubagentRun {
  readonly id: string;
  readonly result: Promise<SubagentResult>;
  readonly #request: CheckedSubagentRequest;
  readonly #steering: SteeringQueue;
  readonly #run: InProcessRun;
  #phase: RunPhase = "running";

  constructor(request: CheckedSubagentRequest, history: readonly BaseMessage[]) {
    this.id = request.id;
    this.#request = request;
    this.#steering = new SteeringQueue(() => request.parent.services.newId());
    this.#run = new InProcessRun({ request, history, hooks: [this.#steering.hook] });
    // Before the caller can react to the result: whoever sees it settled finds the run settled.
    this.result = this.#run.result.finally(() => this.#settle());
    // A rejection is the caller's to see, on `result`; this only keeps one that nobody awaits from ending the process.
    this.result.catch(() => undefined);
  }

  cancel(reason?: string): void {
    this.#run.cancel(reason);
  }

  dispose(): Promise<void> {
    this.#phase = "disposed";
    this.#steering.close(NOT_RESUMABLE_BECAUSE.disposed);
    return this.#run.dispose();
  }

  sendMessage(content: string): Promise<void> {
    return this.#steering.send(content);
  }

  async resume(content: string): Promise<SubagentRun> {
    if (this.#phase !== "settled") throw new SubagentError("NOT_RESUMABLE", NOT_RESUMABLE_BECAUSE[this.#phase]);
    const request = { ...this.#request, prompt: content };
    const next = new ForkedRun(request, boundedSeed(withoutOpenCalls(this.#run.conversation)));
    this.#phase = "resumed";
    try {
      request.onResume?.(next);
    } catch (error) {
      await next.dispose();
      throw error;
    }
    return next;
  }

  #settle(): void {
    if (this.#phase !== "running") return;
    this.#phase = "settled";
    this.#steering.close("the child has settled: a message can only resume it");
  }
}
