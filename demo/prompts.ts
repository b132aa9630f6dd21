/**
 * What the demo asks. One request in two forms: plain words for a language model, and the same steps as a script for the
 * embedded `scripted` model, which has no intelligence. Commands are the same in both, so the numbers are computed by
 * the subagents' tools either way.
 */

export const DATA_PATH = "data/seattle-weather.csv";

interface Analysis {
  readonly title: string;
  readonly question: string;
  readonly command: string;
  /** The line of the scripted synthesis: words around quotes of what this analysis' subagent said. */
  readonly line: (result: string) => string;
}

/** Three independent questions about the same read-only file: what parallel delegation is for. */
export const ANALYSES: readonly Analysis[] = [
  {
    title: "Rain per year",
    question: "Total precipitation in mm of each year.",
    command: `awk -F, 'NR>1 {sum[substr($1,1,4)]+=$2} END {for (y in sum) printf "rain %s %.1f mm\\n", y, sum[y]}' ${DATA_PATH} | sort`,
    line: (result) =>
      `Rain: ${["2012", "2013", "2014", "2015"].map((year) => `${year} {{${result}:after rain ${year}}}`).join(", ")}.`,
  },
  {
    title: "Warmest and coldest day",
    question: "The date and value of the highest temp_max and of the lowest temp_min.",
    command: `tail -n +2 ${DATA_PATH} | sort -t, -k3,3nr | head -n 1 | awk -F, '{printf "warmest %s %.1f C\\n", $1, $3}'; tail -n +2 ${DATA_PATH} | sort -t, -k4,4n | head -n 1 | awk -F, '{printf "coldest %s %.1f C\\n", $1, $4}'`,
    line: (result) => `Warmest day {{${result}:after warmest}}, coldest {{${result}:after coldest}}.`,
  },
  {
    title: "Days by weather",
    question: "How many days of each kind of weather.",
    command: `tail -n +2 ${DATA_PATH} | cut -d, -f6 | sort | uniq -c | sort -nr | awk '{printf "days %s %d\\n", $2, $1}'`,
    line: (result) =>
      `Days: ${["rain", "sun", "fog", "drizzle", "snow"].map((kind) => `{{${result}:word after days ${kind}}} ${kind}`).join(", ")}.`,
  },
];

/** For a language model. */
export function leadQuestion(): string {
  const tasks = ANALYSES.map((analysis, index) => `${index + 1}. ${analysis.question}`).join("\n");
  return (
    `The file ${DATA_PATH} in the workspace holds daily weather (date,precipitation,temp_max,temp_min,wind,weather).\n` +
    `Delegate these three independent analyses to three subagents in parallel, then report their numbers together:\n${tasks}\n` +
    "Each subagent must compute its numbers with one shell command and report them as printed."
  );
}

/** For `scripted`: three parallel delegations, then a synthesis made of quotes of what the subagents said. */
export function leadScript(): string {
  const delegations = ANALYSES.map((analysis, index) => {
    const marker = `CHILD${index + 1}`;
    return [
      `& delegate general-purpose :: ${analysis.title} :: <<'${marker}'`,
      analysis.question,
      "@ delay 10",
      `@ call bash ${JSON.stringify({ command: analysis.command })}`,
      "@ say {{result:1}}",
      marker,
    ].join("\n");
  });
  const synthesis = ANALYSES.map((analysis, index) => analysis.line(`result:${index + 1}`)).join("\n");
  return [
    "```script",
    "delay 5",
    ...delegations,
    "say <<ANSWER",
    "Seattle weather, 2012 to 2015",
    synthesis,
    "ANSWER",
    "```",
  ].join("\n");
}

/** The first 40 months of the data, one batch item each. */
export const BATCH_MONTHS: readonly string[] = Array.from({ length: 40 }, (_, index) => {
  const month = String((index % 12) + 1).padStart(2, "0");
  return `${2012 + Math.floor(index / 12)}-${month}`;
});

export function monthCommand(month: string): string {
  return `grep '^${month}-' ${DATA_PATH} | awk -F, '{sum+=$2; if ($3>max || NR==1) max=$3} END {printf "month ${month} rain %.1f max %.1f\\n", sum, max}'`;
}

export function monthPrompt(month: string, scripted: boolean): string {
  if (!scripted) {
    return `Run this shell command and answer with exactly the line it prints:\n${monthCommand(month)}`;
  }
  return `Rain and highest temperature of ${month}.\n@ call bash ${JSON.stringify({ command: monthCommand(month) })}\n@ say {{result:1}}`;
}
