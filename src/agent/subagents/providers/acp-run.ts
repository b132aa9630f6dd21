/**
 * A child that an agent of another process is (subagent-seam 2.5).
 * Owns how it ends. Invariants: the first end stands; a cancel settles at once and never waits for the agent; a lost
 * connection is an `error` with what was said before it, and no second prompt.
 */
import type { Timers } from "../timers.ts";
import { promptBlocks, type SubagentRequest, type SubagentResult, type SubagentRun } from "../provider.ts";
import { ACP_CANCEL_GRACE_MS } from "./acp-limits.ts";
import type { AcpSession } from "./acp-session.ts";
import type { AcpTranscript } from "./acp-transcript.ts";

export interface AcpRunParts {
  readonly request: SubagentRequest;
  readonly session: AcpSession;
  readonly transcript: AcpTranscript;
  readonly timers: Timers;
}

/** The protocol's stop reasons. A reason that is not here is an error. */
const STOP_REASONS = new Map<unknown, Pick<SubagentResult, "stopReason" | "diagnostic">>([
  ["end_turn", { stopReason: "completed" }],
  ["max_tokens", { stopReason: "max-tokens" }],
  ["refusal", { stopReason: "refusal" }],
  ["cancelled", { stopReason: "aborted", diagnostic: "The agent ended its turn as cancelled" }],
  ["max_turn_requests", { stopReason: "error", diagnostic: "The agent reached its limit of model requests in a turn" }],
]);

const UNKNOWN_REASON = { stopReason: "error", diagnostic: "The agent stopped for an unknown reason" };

export class AcpRun implements SubagentRun {
  readonly id: string;
  readonly result: Promise<SubagentResult>;
  readonly #parts: AcpRunParts;
  readonly #ended = Promise.withResolvers<SubagentResult>();
  readonly #answered: Promise<void>;
  readonly #onAbort = (): void => this.cancel();
  #isEnded = false;
  #disposal: Promise<void> | undefined;

  constructor(parts: AcpRunParts) {
    this.#parts = parts;
    const { id, signal } = parts.request;
    this.id = id;
    this.result = this.#ended.promise;
    signal.addEventListener("abort", this.#onAbort, { once: true });
    // Between the session and this line nobody listened: a child that was stopped there is not asked for anything.
    if (signal.aborted) this.cancel();
    this.#answered = this.#isEnded ? Promise.resolve() : this.#drive();
  }

  cancel(): void {
    if (!this.#end({ stopReason: "aborted" })) return;
    // The socket may be gone: then there is nobody left to tell.
    this.#parts.session.cancel().catch(() => undefined);
  }

  dispose(): Promise<void> {
    this.#disposal ??= this.#quiesce();
    return this.#disposal;
  }

  async #drive(): Promise<void> {
    const { request, session } = this.#parts;
    try {
      const stopReason = await session.prompt(promptBlocks(request));
      this.#end(STOP_REASONS.get(stopReason) ?? UNKNOWN_REASON);
    } catch (error) {
      this.#end({ stopReason: "error", diagnostic: session.faultOf(error) });
    }
  }

  #end(how: Pick<SubagentResult, "stopReason" | "diagnostic">): boolean {
    if (this.#isEnded) return false;
    const { transcript, request } = this.#parts;
    this.#isEnded = true;
    request.signal.removeEventListener("abort", this.#onAbort);
    transcript.close();
    this.#ended.resolve({ output: transcript.output(), ...how });
    return true;
  }

  /** An agent that was told to stop has a while to do so before its connection is closed. */
  async #quiesce(): Promise<void> {
    const { session, timers } = this.#parts;
    this.cancel();
    const grace = Promise.withResolvers<void>();
    const timer = timers.set(ACP_CANCEL_GRACE_MS, () => grace.resolve());
    await Promise.race([this.#answered, grace.promise]);
    timers.clear(timer);
    await session.close();
  }
}
