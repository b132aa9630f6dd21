/**
 * When delegating is worth it, in words: the one source of the lead prompt's section, the `task` description and both
 * built-in roles. Owns every sentence of the policy and which surface states it, so that the surfaces cannot contradict
 * each other. Invariant: where one answer may hold one call only, nothing speaks of doing things at the same time or in
 * batches, and a gain in time is no reason (R19, R20).
 */
import type { DelegationLimits } from "../../domain/delegation/delegation-limit.ts";

/** `single`: the effective limit of one answer is 1. */
export type PolicyMode = "parallel" | "single";

/** Where the policy is told: the lead's system prompt, the `task` tool, a built-in role's description. */
export type PolicySurface = "lead" | "task" | "role";

export interface PolicyRule {
  readonly id: string;
  readonly surfaces: readonly PolicySurface[];
  /** The sentence by mode; null where the mode has no such rule. */
  readonly parallel: string | null;
  readonly single: string | null;
}

const COSTS =
  "start-up, duplicate discovery, synthesis of results, conflicts over shared state, and side effects you do not see";

const inBoth = (text: string) => ({ parallel: text, single: text });

/** In the order they are told. */
export const POLICY_RULES: readonly PolicyRule[] = [
  {
    id: "direct_default",
    surfaces: ["lead", "task"],
    ...inBoth("Direct work is the default. That a job is complex or has many steps is no reason to delegate it."),
  },
  {
    id: "worth",
    surfaces: ["lead", "task", "role"],
    parallel: `Delegate only for a latency, specialist or isolation benefit that clearly exceeds its costs: ${COSTS}.`,
    single: `Delegate only for a material specialist or isolation benefit that clearly exceeds its costs: ${COSTS}.`,
  },
  {
    id: "benefit_kinds",
    surfaces: ["lead"],
    parallel:
      "Latency: independent parts are done sooner in parallel. Specialist: the subagent has an ability, tools or " +
      "instructions that you lack. Isolation: long or noisy detail stays out of your context.",
    single:
      "Specialist: the subagent has an ability, tools or instructions that you lack. Isolation: long or noisy detail " +
      "stays out of your context. No other gain permits a `task` call.",
  },
  {
    id: "costs_not_vetoes",
    surfaces: ["lead", "task"],
    ...inBoth("Duplicate discovery and a cheap direct path are costs to weigh; neither of them forbids delegating."),
  },
  {
    id: "parallel_vetoes",
    surfaces: ["lead", "task"],
    parallel:
      "NEVER dispatch in parallel where one task needs another's output, or where tasks change the same mutable state; " +
      "nothing else forbids it.",
    single: null,
  },
  {
    id: "bounded_chain",
    surfaces: ["lead", "task"],
    ...inBoth("A bounded chain of dependent steps may go to one subagent as a whole."),
  },
  {
    id: "scopes",
    surfaces: ["lead", "task"],
    parallel: "Use the fewest subagents that bring the benefit, with independent scopes that do not overlap.",
    single: "Use the fewest subagents that bring the benefit.",
  },
  {
    id: "later_batches",
    surfaces: ["lead"],
    parallel:
      "Where more parts pay than one answer may start, work in batches of `task` calls: start those of a batch " +
      "together, in one answer, read their results, and judge each later batch again by these rules. Judging again does not split a " +
      "batch: what pays in parallel stays parallel within it.",
    single: null,
  },
  {
    id: "self_contained",
    surfaces: ["lead"],
    ...inBoth(
      "A subagent sees nothing of this conversation, unless its type says that it does: its prompt must hold " +
        "everything it needs, and say what to return.",
    ),
  },
  {
    id: "no_polling",
    surfaces: ["lead", "task"],
    ...inBoth("The result comes back as the result of the call; there is nothing to poll."),
  },
  {
    id: "results_are_checked",
    surfaces: ["lead"],
    ...inBoth(
      "Look at each result before you build on it. A result that is an error or capped is not a finding. Never " +
        "delegate again what the ledger shows as done or under way.",
    ),
  },
  {
    id: "batch_example",
    surfaces: ["lead"],
    parallel:
      "Example: there are more independent reports to write than one answer may start. Start the first batch together, " +
      "read what came back, then start the next batch if it still pays, or write the small rest yourself.",
    single: null,
  },
];

export function policyMode(limits: DelegationLimits): PolicyMode {
  return Math.min(limits.maxConcurrent, limits.maxTotal) > 1 ? "parallel" : "single";
}

/** What one surface states of the policy, a sentence each. */
export function policyFor(surface: PolicySurface, mode: PolicyMode): readonly string[] {
  return POLICY_RULES.filter((rule) => rule.surfaces.includes(surface)).flatMap((rule) => rule[mode] ?? []);
}

/** Only where there is a `bash` subagent to speak of. */
export const BASH_EXAMPLE =
  "Example: a command whose output you need is yours to run; a long, noisy series of commands may go to `bash`.";

/** The numbers that the limit hook holds the run to. */
export function limitsLine(limits: DelegationLimits): string {
  const perAnswer =
    policyMode(limits) === "parallel"
      ? `AT MOST ${limits.maxConcurrent} \`task\` CALLS IN ONE ANSWER`
      : "AT MOST ONE `task` CALL IN ONE ANSWER";
  return `HARD LIMITS: ${perAnswer}, AT MOST ${limits.maxTotal} \`task\` CALLS IN THIS RUN. Calls past a limit are discarded and lost.`;
}

/** What the built-in roles are for; why to use them is the policy's. */
const ROLES: Readonly<Record<string, string>> = {
  "general-purpose":
    "Carries out one self-contained job of several steps (explore, compute, edit, report) in its own context.",
  bash:
    "Command-line specialist for a long or noisy series of shell commands whose output would crowd your context. " +
    "A routine git, build, test or deploy command is not enough reason: run it yourself.",
};

/** A built-in's description; `undefined` for a name that is none. */
export function roleDescription(name: string, mode: PolicyMode): string | undefined {
  const role = ROLES[name];
  return role === undefined ? undefined : [role, ...policyFor("role", mode)].join(" ");
}

interface Listed {
  readonly name: string;
  readonly description: string;
  readonly source: string;
}

/** A description as the lead reads it: a built-in's speaks of what the run's limits allow, any other is its author's. */
export function describeFor(subagent: Listed, mode: PolicyMode): string {
  const role = subagent.source === "built-in" ? roleDescription(subagent.name, mode) : undefined;
  return role ?? subagent.description;
}
