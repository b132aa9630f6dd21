/**
 * The demo's numbers computed straight from the file, without Deputy: what the subagents' answers are checked against.
 */

interface Day {
  readonly date: string;
  readonly rain: number;
  readonly max: number;
  readonly min: number;
}

export function parseDays(csv: string): Day[] {
  const [, ...lines] = csv.trim().split("\n");
  return lines.map((line) => {
    const [date = "", rain = "", max = "", min = ""] = line.split(",");
    return { date, rain: Number(rain), max: Number(max), min: Number(min) };
  });
}

export function rainOfYear(days: readonly Day[], year: string): string {
  return sum(days.filter((day) => day.date.startsWith(year)).map((day) => day.rain)).toFixed(1);
}

export function warmest(days: readonly Day[]): string {
  return Math.max(...days.map((day) => day.max)).toFixed(1);
}

/** The line a batch item of that month must give. */
export function monthLine(days: readonly Day[], month: string): string {
  const ofMonth = days.filter((day) => day.date.startsWith(`${month}-`));
  const rain = sum(ofMonth.map((day) => day.rain)).toFixed(1);
  return `month ${month} rain ${rain} max ${warmest(ofMonth)}`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
