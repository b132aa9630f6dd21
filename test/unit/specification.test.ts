import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

/** Issues whose requirements must be shown; raised by whoever finishes the next one. */
const DUE = 3;

interface Row {
  readonly id: string;
  readonly due: string;
  readonly where: string;
  readonly pinnedBy: string;
}

const LINE = /^\| (R\d+) \| [^|]+ \| (\d+|later) \| ([^|]*) \| ([^|]*) \|$/;

function rows(): Row[] {
  return readFileSync("docs/specification.md", "utf8")
    .split("\n")
    .map((line) => LINE.exec(line))
    .filter((match) => match !== null)
    .map(([, id = "", due = "", where = "", pinnedBy = ""]) => ({
      id,
      due,
      where: where.trim(),
      pinnedBy: pinnedBy.trim(),
    }));
}

/** `test/file.test.ts > name of the test`, several joined by `;`. A name may be a beginning, never a middle. */
function missingTests(row: Row): string[] {
  return row.pinnedBy
    .split(";")
    .map((entry) => entry.trim().replaceAll("`", ""))
    .filter((entry) => {
      const [file = "", name = ""] = entry.split(" > ");
      return !existsSync(file) || name === "" || !startsTitle(name, readFileSync(file, "utf8"));
    });
}

/** A title is a literal of its own; words of a comment or of another test's title are none. */
function startsTitle(name: string, source: string): boolean {
  return ['"', "'", "`"].some((quote) => source.includes(`${quote}${name}`));
}

function missingFiles(row: Row): string[] {
  return row.where
    .split(",")
    .map((entry) => entry.trim().replaceAll("`", ""))
    .filter((entry) => !existsSync(entry));
}

describe("docs/specification.md", () => {
  const all = rows();
  const due = all.filter((row) => Number(row.due) <= DUE);

  it("lists every requirement from R1 to R211 once", () => {
    expect(all.map((row) => row.id)).toEqual(Array.from({ length: 211 }, (_, index) => `R${index + 1}`));
    expect(due.length).toBe(161);
  });

  it.each(due)("$id says where it lives and which test pins it", (row) => {
    expect(missingFiles(row)).toEqual([]);
    expect(missingTests(row)).toEqual([]);
  });

  it("would fail for a due row without a test", () => {
    const bare: Row = { id: "R0", due: "2", where: "src/worker.ts", pinnedBy: "" };
    expect(missingTests(bare)).toEqual([""]);
    for (const name of ["a name that stands nowhere", "follows an arrow of the architecture"]) {
      expect(missingTests({ ...bare, pinnedBy: `test/unit/layers.test.ts > ${name}` })).toHaveLength(1);
    }
  });
});
