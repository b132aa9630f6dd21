import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { FLOORS, missedFloors } from "./floors.ts";
import { MUTANTS } from "./mutants.ts";

const SCRIPT = join(import.meta.dirname, "..", "..", "scripts", "simulate.ts");
const SCHEDULES = "5000";
const ALL_FLOORS = `all ${Object.keys(FLOORS).length} floors are met`;

/** In a process of its own: the simulation takes the clock and the timers away. */
async function simulate(...args: string[]): Promise<{ readonly output: string; readonly failed: boolean }> {
  const ran = promisify(execFile)(process.execPath, ["--max-semi-space-size=64", SCRIPT, "--jobs", "1", ...args]);
  return ran.then(
    ({ stdout }) => ({ output: stdout, failed: false }),
    (error: { stdout?: string; stderr?: string }) => ({ output: `${error.stdout}${error.stderr}`, failed: true }),
  );
}

describe("objects, D1, queue and clock under faults", () => {
  it.concurrent("P1 to P8 hold after each of the same 5,000 schedules", { timeout: 900_000 }, async () => {
    const { output, failed } = await simulate("--from", "1", "--schedules", SCHEDULES);
    expect(failed, output).toBe(false);
    expect(output).toContain(`${SCHEDULES} schedules`);
    expect(output).toContain(ALL_FLOORS);
  });

  it.concurrent(
    "P1 to P8 hold after each of 5,000 schedules nobody has seen before",
    { timeout: 900_000 },
    async () => {
      const { output, failed } = await simulate("--schedules", SCHEDULES);
      expect(failed, output).toBe(false);
      expect(output).toContain(`${SCHEDULES} schedules`);
      expect(output).toContain(ALL_FLOORS);
      // oxlint-disable-next-line no-console -- the fresh seeds belong into the log, also of a run that passed
      console.log(output.trim());
    },
  );
});

describe("floors", () => {
  const enough = new Map(Object.entries(FLOORS).map(([what, perThousand]) => [what, perThousand * 5]));

  it("are met by as much as they say", () => {
    expect(missedFloors(enough, 5_000)).toEqual([]);
  });

  it("fail a set in which any one thing happened less", () => {
    for (const what of Object.keys(FLOORS)) {
      const fewer = new Map([...enough, [what, (enough.get(what) ?? 0) - 1]]);
      expect(missedFloors(fewer, 5_000)).toEqual([expect.stringContaining(`${what}: `)]);
    }
  });
});

describe("faults put into the domain on purpose", () => {
  it("finds every one of the named mutants", { timeout: 900_000 }, async () => {
    const { output, failed } = await simulate("--mutants");
    expect(failed, output).toBe(false);
    const found = output.split("\n").flatMap((line) => /^found (\S+)/.exec(line)?.[1] ?? []);
    expect(found).toEqual(MUTANTS.map(({ name }) => name));
    expect(found.length).toBeGreaterThanOrEqual(20);
    // oxlint-disable-next-line no-console -- how many schedules each took is what tells whether the checks see well
    console.log(output.trim());
  });
});
