/** docs/limits.md against the source: every named bound and every field of the configuration, with its number. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { deputyConfigSchema } from "../../src/config.ts";

const page = readFileSync("docs/limits.md", "utf8");
const cells = page
  .split("\n")
  .filter((line) => line.startsWith("| `"))
  .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
  .map((parts) => parts.slice(1, -1));

interface Constant {
  readonly file: string;
  readonly name: string;
  readonly value: number;
}

/** A bound's name ends in its unit or in MAX; versions, sizes of formats and the like do not. */
const BOUND = /_(MAX|MS|LIMIT|BYTES|CHARS|SECONDS)$/;
/** Named like bounds and not: parts of a stored format, a browser's cache. */
const NO_BOUNDS = ["LENGTH_BYTES", "PREFLIGHT_SECONDS"];
const UNITS: Readonly<Record<string, number>> = { MIB: 1_048_576, MEBIBYTE: 1_048_576 };
const CONSTANT = /^(?:export )?const ([A-Z0-9_]+)(?:: number)? = ([0-9A-Z_* ]+);/gm;

/** The product a bound is written as; `undefined` for what is no number. */
function evaluate(expression: string): number | undefined {
  const factors = expression.split("*").map((factor) => {
    const text = factor.trim().replaceAll("_", "");
    return /^\d+$/.test(text) ? Number(text) : UNITS[text];
  });
  return factors.reduce<number | undefined>(
    (product, factor) => (product === undefined || factor === undefined ? undefined : product * factor),
    1,
  );
}

function constantsOf(file: string): Constant[] {
  return [...readFileSync(`src/${file}`, "utf8").matchAll(CONSTANT)].flatMap(([, name = "", expression = ""]) => {
    const value = evaluate(expression);
    return value === undefined ? [] : [{ file, name, value }];
  });
}

const constants = readdirSync("src", { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .flatMap(constantsOf);

/** As the page writes numbers. */
const written = (value: number) => value.toLocaleString("en-US");
const key = (name: string, file: string) => `${name} in ${file}`;

/** Rows of "Fixed bounds": name, value, unit, file, what happens. */
const fixed = new Map(
  cells
    .filter((row) => row.length === 5)
    .map(([name = "", value = "", , file = ""]) => [key(name.replaceAll("`", ""), file.replaceAll("`", "")), value]),
);

describe("docs/limits.md, fixed bounds", () => {
  it("names every bound of the source with its value (P8)", () => {
    const bounds = constants.filter(({ name }) => BOUND.test(name) && !NO_BOUNDS.includes(name));
    expect(bounds.length).toBeGreaterThan(80);
    const wrong = bounds
      .filter(({ name, file, value }) => fixed.get(key(name, file)) !== written(value))
      .map(
        ({ name, file, value }) =>
          `${key(name, file)} is ${written(value)}, the page has ${fixed.get(key(name, file))}`,
      );
    expect(wrong).toEqual([]);
  });

  it("names nothing that the source no longer has", () => {
    const known = new Map(constants.map(({ name, file, value }) => [key(name, file), written(value)]));
    expect([...fixed].filter(([bound, value]) => known.get(bound) !== value)).toEqual([]);
  });

  it("reads the ways bounds are written", () => {
    expect(["7", "1_500_000", "8 * 1_024 * 1_024", "10 * MIB", "MIB"].map(evaluate)).toEqual([
      7, 1_500_000, 8_388_608, 10_485_760, 1_048_576,
    ]);
    expect(evaluate("OTHER_BOUND")).toBeUndefined();
  });
});

interface Shape {
  readonly type?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly additionalProperties?: Shape;
  readonly oneOf?: readonly Shape[];
}

interface Field {
  readonly path: string;
  readonly shape: Shape;
  readonly range: Shape;
}

/** Every leaf of the configuration; `*` stands for a name in a record. */
function fieldsOf(shape: Shape, path = ""): Field[] {
  const range = shape.anyOf?.find((each) => each.type !== "null") ?? shape;
  if (range.oneOf !== undefined) return kindsOf(range.oneOf, path);
  if (range.properties !== undefined) {
    const prefix = path === "" ? "" : `${path}.`;
    return Object.entries(range.properties).flatMap(([name, each]) => fieldsOf(each, `${prefix}${name}`));
  }
  if (range.items?.properties !== undefined) return fieldsOf(range.items, `${path}[]`);
  const { additionalProperties: named } = range;
  if (named?.properties !== undefined || named?.oneOf !== undefined) return fieldsOf(named, `${path}.*`);
  return [{ path, shape, range }];
}

/** Objects of several kinds: a field of more than one is written once, as the first has it. */
function kindsOf(kinds: readonly Shape[], path: string): Field[] {
  const fields = kinds.flatMap((each) => fieldsOf(each, path));
  return fields.filter(({ path: own }, place) => fields.findIndex((field) => field.path === own) === place);
}

function writtenDefault({ default: value }: Shape): string {
  if (value === undefined) return "none";
  if (typeof value === "number") return written(value);
  return value === null || typeof value === "boolean" ? String(value) : `\`${JSON.stringify(value)}\``;
}

const schema: Shape = z.toJSONSchema(deputyConfigSchema, { io: "input", unrepresentable: "any" }) as Shape;
const fields = fieldsOf(schema);
/** Rows of "Configuration": field, default, range, what it does. */
const configured = new Map(
  cells.filter((row) => row.length === 4).map(([field = "", ...rest]) => [field.replaceAll("`", ""), rest]),
);

describe("docs/limits.md, configuration", () => {
  it("names every field of deputy.config.ts with its default", () => {
    expect(fields.length).toBeGreaterThan(40);
    const wrong = fields
      .filter(({ path, shape }) => configured.get(path)?.[0] !== writtenDefault(shape))
      .map(({ path, shape }) => `${path}: ${writtenDefault(shape)}, the page has ${configured.get(path)?.[0]}`);
    expect(wrong).toEqual([]);
  });

  it("gives every number its range", () => {
    const numbers = fields.filter(({ range }) => range.minimum !== undefined && range.maximum !== undefined);
    expect(numbers.length).toBeGreaterThan(25);
    const wrong = numbers
      .map(({ path, range }) => ({ path, words: `${written(range.minimum!)} to ${written(range.maximum!)}` }))
      .filter(({ path, words }) => configured.get(path)?.[1]?.startsWith(words) !== true);
    expect(wrong).toEqual([]);
  });

  it("names no field that does not exist", () => {
    const known = new Set(fields.map(({ path }) => path));
    expect([...configured.keys()].filter((path) => !known.has(path))).toEqual([]);
  });
});
