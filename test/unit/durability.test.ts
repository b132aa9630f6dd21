import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { failpointsOf, holdFailpoints } from "../../src/platform/failpoints.ts";
import { killCells, MISSING, NOT_ABORTED, POINTS, SUBJECTS } from "../support/kill-cells.ts";

const page = readFileSync("docs/durability.md", "utf8");

/** `test/file.test.ts > beginning of the test's name`. */
function namedTests(text: string): { file: string; name: string }[] {
  return [...text.matchAll(/`(test\/[^`]+\.test\.ts) > ([^`]+)`/g)].map(([, file = "", name = ""]) => ({ file, name }));
}

function exists({ file, name }: { file: string; name: string }): boolean {
  if (!existsSync(file)) return false;
  const source = readFileSync(file, "utf8");
  return ['"', "'", "`"].some((quote) => source.includes(`${quote}${name}`));
}

describe("docs/durability.md", () => {
  it("names only tests that exist", () => {
    expect(namedTests(page).filter((named) => !exists(named))).toEqual([]);
    expect(
      exists({ file: "test/unit/durability.test.ts", name: ["names a test", "that nobody wrote"].join(" ") }),
    ).toBe(false);
  });

  it.each(["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9"])(
    "%s is attacked by a fault that a test makes",
    (promise) => {
      const rows = page.split("\n").filter((line) => new RegExp(`^\\| [^|]*\\b${promise}\\b`).test(line));
      expect(rows.flatMap(namedTests).length).toBeGreaterThan(0);
    },
  );
});

describe("failpoints", () => {
  it("do not exist unless a test turned them on", () => {
    expect(failpointsOf({})).toBeUndefined();
    expect(failpointsOf({ TEST_ROUTES: "0" })).toBeUndefined();
    expect(failpointsOf({ TEST_ROUTES: "1" })).toBeTypeOf("function");
  });

  it("are held by a test that shares the isolate, until it lets go", async () => {
    const failpoint = failpointsOf({ TEST_ROUTES: "1" });
    expect(failpoint?.("flush", { threadId: "t" })).toBeUndefined();
    const seen: string[] = [];
    holdFailpoints(async (name, { threadId }) => void seen.push(`${name} ${threadId}`));
    await failpoint?.("flush", { threadId: "t" });
    holdFailpoints(undefined);
    expect(failpoint?.("flush", { threadId: "t" })).toBeUndefined();
    expect(seen).toEqual(["flush t"]);
  });

  it("are refused in a deployed environment, without TEST_ROUTES, and for a server that is not this machine's", () => {
    expect(() => failpointsOf({ TEST_ROUTES: "1", AI: {} })).toThrow("must not set it");
    expect(() => failpointsOf({ FAILPOINT_URL: "http://127.0.0.1:1/" })).toThrow("TEST_ROUTES=1");
    const elsewhere = { TEST_ROUTES: "1", FAILPOINT_URL: "http://example.com/" };
    expect(() => failpointsOf(elsewhere)).toThrow("127.0.0.1");
  });
});

describe("the kill matrix", () => {
  it.each(["sigkill", "abort"] as const)(
    "%s: each point of each subject is a cell, or says why there is none",
    (kill) => {
      const cells = new Set(killCells(kill).map(({ point, subject }) => `${point}, ${subject}`));
      const wanting = POINTS.flatMap((point) =>
        SUBJECTS.filter((subject) => {
          const why = MISSING[point]?.[subject] ?? (kill === "abort" ? NOT_ABORTED[point]?.[subject] : undefined);
          return cells.has(`${point}, ${subject}`) === (why !== undefined);
        }).map((subject) => `${point}, ${subject}`),
      );
      expect(wanting).toEqual([]);
    },
  );
});
