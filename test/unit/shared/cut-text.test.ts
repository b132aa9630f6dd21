import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CODE_POINTS, type Cut, cutText, UTF16_UNITS } from "../../../src/domain/shared/cut-text.ts";

const points = (text: string): number => Array.from(text).length;
const inside: Cut = { ruler: UTF16_UNITS, keeps: "both_ends", mark: () => "<>", markChars: 2 };
const onTop: Cut = { ...inside, mark: (omitted) => `<${omitted}>`, markChars: 0 };

describe("cut text", () => {
  test("keeps what its caller says, with the mark inside the bound or on top of it", () => {
    expect(cutText("abcdefghij", 9, inside)).toBe("abcdef<>j");
    expect(cutText("abcdefghij", 9, { ...inside, keeps: "beginning" })).toBe("abcdefg<>");
    expect(cutText("abcdefghij", 6, onTop)).toBe("abcd<4>ij");
    expect(cutText("abcdefghij", 10, inside)).toBe("abcdefghij");
  });

  test("gives a plain beginning where the mark leaves no room", () => {
    expect(cutText("abcdefghij", 2, inside)).toBe("ab");
    expect(cutText("abcdefghij", 2, { ...inside, keeps: "beginning" })).toBe("ab");
  });

  test("never splits a pair, and counts it as its ruler says", () => {
    expect(cutText("😀😀😀😀", 3, onTop)).toBe("😀<6>");
    expect(cutText("😀😀😀😀", 3, { ...onTop, ruler: CODE_POINTS })).toBe("😀😀<2>😀");
  });

  test("stays well formed and within its bound for any text (P8)", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "漢", "😀", "\n"), maxLength: 60 });
    const keeps = fc.constantFrom("beginning", "both_ends");
    fc.assert(
      fc.property(text, keeps, fc.integer({ min: 0, max: 50 }), (value, kept, max) => {
        const inUnits = cutText(value, max, { ...inside, keeps: kept });
        expect(inUnits.length).toBeLessThanOrEqual(max);
        const inPoints = cutText(value, max, { ...inside, keeps: kept, ruler: CODE_POINTS });
        expect(points(inPoints)).toBeLessThanOrEqual(max);
        expect([inUnits, inPoints].every((each) => each.isWellFormed())).toBe(true);
        expect(inPoints === value).toBe(points(value) <= max);
      }),
    );
  });
});

/** Half a pair in a request is refused by some providers, so one long description could end every later turn. */
test("no text of the source is cut to its bound by units, which can leave half a pair", () => {
  const cut = /\.(?:slice|substring)\(0, [A-Z_]*CHARS[A-Z_]*\)(?!\.toWellFormed\(\))/;
  const files = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  expect(files.length).toBeGreaterThan(300);
  expect(files.filter((name) => cut.test(readFileSync(join("src", name), "utf8")))).toEqual([]);
  expect(cut.test("text.slice(0, ERROR_TEXT_CHARS_MAX)")).toBe(true);
});
