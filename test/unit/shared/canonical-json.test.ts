import * as fc from "fast-check";
import { expect, it } from "vitest";
import { canonicalJson } from "../../../src/domain/shared/canonical-json.ts";

it("is one text for the same value, whatever the order of fields, and another for another value", () => {
  expect(canonicalJson({ b: [1, { d: 1, c: null }], a: "x" })).toBe('{"a":"x","b":[1,{"c":null,"d":1}]}');
  expect(canonicalJson({ a: [1, 2] })).not.toBe(canonicalJson({ a: [2, 1] }));
  expect(canonicalJson({ a: "1" })).not.toBe(canonicalJson({ a: 1 }));
  expect(canonicalJson({ 'a":1,"b': 1 })).not.toBe(canonicalJson({ a: 1, b: 1 }));
  expect(canonicalJson(JSON.parse('{"__proto__":{"a":1}}'))).toBe('{"__proto__":{"a":1}}');
});

it("is JSON of the very value", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const plain = JSON.parse(JSON.stringify(value)) as unknown;
      expect(JSON.parse(canonicalJson(plain))).toEqual(plain);
    }),
  );
});
