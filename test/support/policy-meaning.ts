/**
 * What the delegation policy must mean on each surface, told independently of its wording: patterns that have to be there
 * and patterns that may never be. `violations` names the rules a text breaks, so that a test can also ask of a weakened
 * text which rule noticed.
 */
export type Mode = "parallel" | "single";
export type Surface = "lead" | "task" | "role";

interface Meaning {
  readonly rule: string;
  readonly surfaces: readonly Surface[];
  readonly modes?: readonly Mode[];
  readonly must?: readonly RegExp[];
  readonly never?: readonly RegExp[];
}

const ALL: readonly Surface[] = ["lead", "task", "role"];
const LONG: readonly Surface[] = ["lead", "task"];

const MEANINGS: readonly Meaning[] = [
  {
    rule: "R12 direct work is the default and complexity is no reason",
    surfaces: LONG,
    must: [/direct work is the default/i, /complex[^.]*\bno reason\b/i],
    never: [/delegat\w+ (is|as) the default/i, /always delegate/i, /prefer (to )?delegat/i],
  },
  {
    rule: "R13 the benefit clearly exceeds the costs, and only then",
    surfaces: ALL,
    must: [/delegate only for [^.]*benefit that clearly exceeds its costs/i],
    never: [/may exceed|roughly|at least equals|whenever it helps/i],
  },
  ...["start-up", "duplicate discovery", "synthesis", "conflict", "side effect"].map((cost): Meaning => ({
    rule: `R13 names the cost: ${cost}`,
    surfaces: ALL,
    must: [new RegExp(`costs:[^.]*${cost}`, "i")],
  })),
  {
    rule: "R13 the kinds of benefit: latency, specialist, isolation",
    surfaces: ALL,
    modes: ["parallel"],
    must: [/only for a latency, specialist or isolation benefit/i],
  },
  {
    rule: "R20 with one call only a material specialist or isolation benefit",
    surfaces: ALL,
    modes: ["single"],
    must: [/only for a material specialist or isolation benefit/i],
    never: [/latency|sooner|faster|time benefit/i],
  },
  {
    rule: "R14 both vetoes, in parallel only, and no third",
    surfaces: LONG,
    modes: ["parallel"],
    must: [
      /never dispatch in parallel[^.]*another's output/i,
      /never dispatch in parallel[^.]*same mutable state/i,
      /nothing else forbids it/i,
    ],
    never: [/(rarely|usually|try not to|avoid) dispatch/i],
  },
  {
    rule: "R15 duplicate discovery and a cheap direct path are costs and no vetoes",
    surfaces: LONG,
    must: [/duplicate discovery and a cheap direct path are costs[^.]*neither[^.]*forbids/i],
  },
  {
    rule: "R15 no surface makes a veto of a cost",
    surfaces: ALL,
    never: [
      /(duplicate discovery|cheap direct path)[^.;]*\b(veto|vetoes|forbid|forbids|rules? out|prevents?)\b/i,
      /never delegate (when|where|if)/i,
    ],
  },
  {
    rule: "R16 a bounded chain may go to one subagent",
    surfaces: LONG,
    must: [/bounded chain of dependent steps may go to one subagent/i],
    never: [/(chain|steps)[^.]*(must not|never|may not) go/i],
  },
  { rule: "R17 the fewest subagents", surfaces: LONG, must: [/fewest subagents/i], never: [/as many subagents/i] },
  {
    rule: "R17 independent scopes that do not overlap",
    surfaces: LONG,
    modes: ["parallel"],
    must: [/independent scopes that do not overlap/i],
  },
  {
    rule: "R18 each later batch is judged again and keeps its parallelism",
    surfaces: ["lead"],
    modes: ["parallel"],
    must: [/judge each later batch again by these rules/i, /stays parallel within it/i, /example:[^.]*independent/i],
    never: [/one after the other|one at a time/i],
  },
  {
    rule: "R19 with one call nothing speaks of doing things at once or in batches",
    surfaces: ALL,
    modes: ["single"],
    never: [
      /parallel|concurren|simultan|at the same time|at once|together|side by side|batch|\bgroup|\bround|several calls/i,
    ],
  },
  { rule: "results are returned, not polled", surfaces: LONG, must: [/nothing to poll/i] },
];

function applies(meaning: Meaning, surface: Surface, mode: Mode): boolean {
  return meaning.surfaces.includes(surface) && (meaning.modes ?? ["parallel", "single"]).includes(mode);
}

/** The rules that `text` breaks as that surface in that mode. */
export function violations(text: string, surface: Surface, mode: Mode): string[] {
  const plain = text.replaceAll(/\s+/g, " ");
  return MEANINGS.filter((meaning) => applies(meaning, surface, mode))
    .filter(
      ({ must = [], never = [] }) => must.some((each) => !each.test(plain)) || never.some((each) => each.test(plain)),
    )
    .map((meaning) => meaning.rule);
}
