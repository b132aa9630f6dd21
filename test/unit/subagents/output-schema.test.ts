import { describe, expect, test } from "vitest";
import { compileOutputSchema } from "../../../src/agent/subagents/output-schema.ts";

const record = (properties: Record<string, unknown>, more: Record<string, unknown> = {}) =>
  compileOutputSchema({ type: "object", properties, ...more });

describe("values of an output schema", () => {
  test("every violation is told, once, with its path", () => {
    const schema = record(
      {
        n: { type: "number" },
        i: { type: "integer" },
        list: { type: "array", items: { type: "string" } },
        inner: { type: "object", properties: { x: { const: 1 } }, required: ["x"], additionalProperties: false },
        pick: { enum: ["a", null] },
      },
      { required: ["n"], additionalProperties: false },
    );
    expect(schema.violations({ n: 1, i: 2, list: [], inner: { x: 1 }, pick: null })).toEqual([]);
    const bad = { i: 1.5, list: ["a", 1], inner: { y: 3 }, pick: "b", z: 1 };
    expect(schema.violations(bad).map((violation) => violation.split(":")[0])).toEqual([
      "(root)",
      "/i",
      "/list/1",
      "/inner",
      "/inner/y",
      "/pick",
      "/z",
    ]);
    expect(schema.violations([])).toHaveLength(1);
  });

  test("exactly one branch of oneOf must match", () => {
    const schema = record({ x: { oneOf: [{ type: "integer" }, { type: "number" }, { type: "string" }] } });
    expect(schema.violations({ x: 1.5 })).toEqual([]);
    expect(schema.violations({ x: "a" })).toEqual([]);
    expect(schema.violations({ x: 1 })[0]).toContain("exactly one");
    expect(schema.violations({ x: null })[0]).toContain("exactly one");
  });

  test("a property is open unless closed, and an inherited name is no property", () => {
    expect(record({}).violations({ more: 1 })).toEqual([]);
    expect(record({ toString: {} }, { required: ["toString"] }).violations({})).toHaveLength(1);
    expect(record({}, { additionalProperties: false }).violations(JSON.parse('{"__proto__":1}'))).toHaveLength(1);
  });

  test.each([
    ["a number that a JSON text can hold but no JSON value is", JSON.parse('{"x":1e999}')],
    ["not a number", { x: Number.NaN }],
    ["undefined", { x: undefined }],
    ["a bigint", { x: 1n }],
    ["an object of a class", { x: new Map() }],
    ["a list with a hole", { x: Array(2) }],
  ])("refuses what the validator would take or choke on: %s", (_what, value) => {
    expect(record({ x: {} }).violations(value)).toEqual([expect.stringMatching(/^\/x/)]);
    expect(record({ x: { type: "number" } }).violations(value)).toEqual([expect.stringMatching(/^\/x/)]);
  });

  test("P8 a long value is refused by its first violation, in time", () => {
    const branches = Array.from({ length: 60 }, () => ({ type: "string" }));
    const schema = record({ list: { type: "array", items: { oneOf: branches } } });
    const before = performance.now();
    const violations = schema.violations({ list: Array.from({ length: 9_900 }, () => 1) });
    expect(performance.now() - before).toBeLessThan(2_000);
    expect(violations[0]).toContain("/list/0: ");
    expect(violations.every((violation) => violation.startsWith("/list/0: "))).toBe(true);
  });

  test("a schema that its caller changes later is not the one that was asked for", () => {
    const mine = { type: "object", properties: { x: { type: "string" } } };
    const schema = compileOutputSchema(mine);
    mine.properties.x.type = "number";
    expect(schema.violations({ x: "a" })).toEqual([]);
    expect(schema.jsonSchema).toEqual({ type: "object", properties: { x: { type: "string" } } });
    expect(Object.getOwnPropertyNames(schema.jsonSchema)).toEqual(["type", "properties"]);
    expect(Object.getOwnPropertyNames(mine)).toEqual(["type", "properties"]);
  });
});
