import { describe, expect, test } from "vitest";
import {
  checkOutputSchema,
  OUTPUT_SCHEMA_CHARS_MAX,
  OUTPUT_SCHEMA_DEPTH_MAX,
} from "../../../src/domain/output-schema/check-output-schema.ts";
import { JSON_VALUES_MAX } from "../../../src/domain/output-schema/json-value.ts";

const object = (properties: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  type: "object",
  properties,
  ...more,
});

/** Violations of one property's schema, without the property's path. */
const ofNode = (node: unknown) =>
  checkOutputSchema(object({ x: node })).map((violation) => violation.replace("/properties/x: ", ""));

describe("R141 the subset of JSON Schema that can be asked of a child", () => {
  test("takes every keyword it names, nested", () => {
    const every = object(
      {
        text: { type: "string", description: "d", title: "t", default: "x", examples: ["a", { b: [null] }] },
        pick: { type: "integer", enum: [1, 2], const: 2 },
        nothing: { type: "null", const: null },
        any: {},
        either: { oneOf: [{ type: "string" }, { type: "number" }], description: "one of two" },
        list: { type: "array", items: object({ flag: { type: "boolean" } }, { required: ["flag"] }) },
        "a/b~c": { type: "string" },
      },
      { required: ["text", "list"], additionalProperties: false },
    );
    expect(checkOutputSchema(every)).toEqual([]);
    expect(checkOutputSchema({ type: "object" })).toEqual([]);
  });

  test("names every violation, each with its path", () => {
    const schema = object(
      {
        a: { type: "string", pattern: "^x$" },
        "b/c": { type: "array", items: { type: "text" } },
        d: { oneOf: [{ type: "string" }, { type: "array", items: 5 }] },
      },
      { required: ["a", "gone"], additionalProperties: {} },
    );
    expect(checkOutputSchema(schema).map((violation) => violation.replace(/; supported.*|got.*/, ""))).toEqual([
      "(root): 'required' names \"gone\", which is not in 'properties'",
      "/properties/a: keyword 'pattern' is not supported",
      "/properties/b~1c/items: 'type' must be one of object, array, string, number, integer, boolean, null, ",
      "/properties/d/oneOf/1/items: a schema must be an object",
      "(root): 'additionalProperties' must be true or false",
    ]);
  });

  test.each([
    ["a type of no name", { type: "text" }, "'type' must be one of"],
    ["several types", { type: ["string", "null"] }, "'type' must be one of"],
    ["one branch", { oneOf: [{ type: "string" }] }, "two schemas or more"],
    ["branches that are no list", { oneOf: {} }, "two schemas or more"],
    ["a constraint beside branches", { oneOf: [{}, {}], type: "string" }, "'type' may not stand beside 'oneOf'"],
    ["properties of no object", { properties: {} }, "'properties' needs type \"object\""],
    ["required of an array", { type: "array", required: [] }, "'required' needs type \"object\""],
    ["items of no array", { type: "object", items: {} }, "'items' needs type \"array\""],
    ["an enum of objects", { type: "object", enum: [1] }, "'enum' needs a scalar type"],
    ["an empty enum", { enum: [] }, "non-empty"],
    ["an enum that holds an object", { enum: [{}] }, "scalars only"],
    ["a const that is a list", { const: [] }, "scalars only"],
    ["a const outside of its enum", { enum: [1, 2], const: 3 }, "'const' is not one of 'enum'"],
    ["an enum of another type", { type: "integer", enum: [1.5] }, 'not of type "integer"'],
    ["a description that is no text", { description: 5 }, "'description' must be a string"],
    ["examples that are no list", { examples: "x" }, "'examples' must be an array"],
    ["a reference", { $ref: "#" }, "keyword '$ref' is not supported"],
    ["a boolean as a schema", true, "a schema must be an object"],
    ["properties that are no object", { type: "object", properties: [] }, "'properties' must be an object"],
    ["required that is no list", { type: "object", required: "x" }, "'required' must be an array"],
    ["required of an inherited name", { type: "object", properties: {}, required: ["toString"] }, "toString"],
  ])("refuses %s", (_what, node, problem) => {
    expect(ofNode(node)).toHaveLength(1);
    expect(ofNode(node)[0]).toContain(problem);
  });

  test.each([
    ["a function as an annotation", { default: () => 1 }],
    ["undefined", { default: undefined }],
    ["a number that JSON has not", { default: Number.NaN }],
    ["an object of a class", { default: new Date(0) }],
    ["a list with a hole", { examples: Array.from({ length: 2 }).fill(1).concat(Array(1)) }],
    ["a symbol as a key", { default: { [Symbol("s")]: 1 } }],
  ])("refuses %s: the schema must be JSON", (_what, node) => {
    const [violation] = checkOutputSchema(object({ x: node }));
    expect(violation).toMatch(/^\/properties\/x/);
  });

  test("refuses anything but an object at the root", () => {
    for (const root of [null, 5, "object", [], { type: "array" }, { oneOf: [{}, {}] }, {}]) {
      expect(checkOutputSchema(root)).toEqual(['(root): must be a JSON Schema of type "object"']);
    }
  });

  test("P8 is bounded: a schema that holds itself, nests too deep, or is too long is refused", () => {
    const circular: Record<string, unknown> = object({});
    circular["properties"] = { self: circular };
    expect(checkOutputSchema(circular)[0]).toMatch(/holds itself/);
    let deep: Record<string, unknown> = { type: "string" };
    for (let level = 0; level < OUTPUT_SCHEMA_DEPTH_MAX; level += 1) deep = object({ x: deep });
    expect(checkOutputSchema(deep)).toEqual([expect.stringContaining("nests deeper than")]);
    const long = object({ x: { type: "string", description: "d".repeat(OUTPUT_SCHEMA_CHARS_MAX) } });
    expect(checkOutputSchema(long)).toEqual([expect.stringContaining(`at most ${OUTPUT_SCHEMA_CHARS_MAX}`)]);
    const wide = object({ x: { enum: Array.from({ length: JSON_VALUES_MAX }, (_, index) => index) } });
    expect(checkOutputSchema(wide)).toEqual([expect.stringContaining(`more than ${JSON_VALUES_MAX} values`)]);
  });
});
