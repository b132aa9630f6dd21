/**
 * Which tools a principal may use: the port, and one run's view of it (R123).
 * Owns when the port is asked and what its answers mean. Does not own any policy (`configured-policy.ts` has the
 * operator's) nor where a denial is told (`hooks/authorization.ts`).
 * Invariants: it never fails open: a throw, a malformed answer and silence mean deny; what was denied at assembly is not
 * in the agent, and what is denied at execution is not executed, whatever assembly was told.
 */
import { UTF16_UNITS } from "../../domain/shared/cut-text.ts";
import type { Principal } from "../../domain/trust/principal.ts";
import { systemTimers, type Timers } from "../subagents/timers.ts";

export type ToolDecision =
  | { readonly kind: "allow" }
  /** `reason` is shown to the model. */
  | { readonly kind: "deny"; readonly reason: string };

/**
 * The port. Asked about every tool when an agent is put together, and again before each call, unknown names included.
 * It must not act: a name may be asked about at any time, any number of times, from several runs at once.
 */
export type ToolPolicy = (principal: Principal, tool: string) => ToolDecision | Promise<ToolDecision>;

/** A policy that has not answered by then has denied: the run must not hang on it. */
export const POLICY_ANSWER_MS_MAX = 5_000;

/** A reason is a sentence for the model, not a document. */
export const DENIAL_REASON_CHARS_MAX = 500;

export interface ToolAuthorizationParts {
  readonly policy: ToolPolicy;
  readonly principal: Principal;
  readonly timers?: Timers;
  /** Told why a policy gave no answer; the model is not. */
  readonly reportFault?: (what: string, details: Readonly<Record<string, unknown>>) => void;
}

export class ToolAuthorization {
  readonly #parts: ToolAuthorizationParts;
  readonly #prepared = new Map<string, ToolDecision>();

  constructor(parts: ToolAuthorizationParts) {
    this.#parts = parts;
  }

  /** Asks for these names ahead of `permits`, which cannot wait. */
  async prepare(tools: readonly string[]): Promise<void> {
    const decided = await Promise.all(tools.map(async (tool) => [tool, await this.decide(tool)] as const));
    for (const [tool, decision] of decided) this.#prepared.set(tool, decision);
  }

  /** Whether an agent being put together may have the tool. One that was not prepared needs a policy that does not wait. */
  permits(tool: string): boolean {
    return (this.#prepared.get(tool) ?? this.#decideNow(tool)).kind === "allow";
  }

  /** The policy's answer of this moment. Never rejects. */
  async decide(tool: string): Promise<ToolDecision> {
    const { policy, principal, timers = systemTimers } = this.#parts;
    const late = Promise.withResolvers<ToolDecision>();
    const timer = timers.set(POLICY_ANSWER_MS_MAX, () => {
      late.resolve(this.#fault(tool, `no answer in ${POLICY_ANSWER_MS_MAX} ms`));
    });
    try {
      return await Promise.race([this.#asked(tool, async () => policy(principal, tool)), late.promise]);
    } finally {
      timers.clear(timer);
    }
  }

  async #asked(tool: string, ask: () => Promise<unknown>): Promise<ToolDecision> {
    try {
      return this.#read(tool, await ask());
    } catch (error) {
      return this.#fault(tool, String(error));
    }
  }

  #decideNow(tool: string): ToolDecision {
    try {
      const answer = this.#parts.policy(this.#parts.principal, tool);
      if (!(answer instanceof Promise)) return this.#read(tool, answer);
      answer.catch(() => undefined);
      return this.#fault(tool, "a policy that waits was asked without prepare()");
    } catch (error) {
      return this.#fault(tool, String(error));
    }
  }

  #read(tool: string, answer: unknown): ToolDecision {
    const { kind, reason } = (answer ?? {}) as { kind?: unknown; reason?: unknown };
    if (kind === "allow") return { kind };
    if (kind === "deny" && typeof reason === "string")
      return { kind, reason: UTF16_UNITS.first(reason, DENIAL_REASON_CHARS_MAX) };
    return this.#fault(tool, "the answer is neither an allow nor a deny with a reason");
  }

  #fault(tool: string, why: string): ToolDecision {
    const { owner, role } = this.#parts.principal;
    this.#parts.reportFault?.("tool policy failed", { tool, owner, role, why });
    return { kind: "deny", reason: "the permission check failed" };
  }
}
