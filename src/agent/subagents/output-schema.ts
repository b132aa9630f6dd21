/**
 * An output schema ready to check values (subagent-seam 1.10). The subset is `checkOutputSchema`'s; values are checked by
 * `@cfworker/json-schema`, which needs no code generation. It takes any number for one, infinite ones too, and throws at
 * what no JSON holds, so values are checked to be JSON first.
 */
import { Validator, type OutputUnit, type Schema } from "@cfworker/json-schema";
import { findNonJson, pathText } from "../../domain/output-schema/json-value.ts";
import type { JsonSchemaParameters } from "../tools/tool.ts";

const DRAFT = "2020-12";

/** Characters of a value, as JSON, up to which every violation is told: of a longer one the first, since listing is quadratic. */
export const LISTED_VALUE_CHARS_MAX = 16_384;

/** Takes a copy: a schema the caller changes later is not the one that was asked for. */
export function compileOutputSchema(schema: unknown): JsonSchemaParameters {
  const jsonSchema = copyOf(schema);
  // The validator writes marks of its own into the schema it is given.
  const forValidator = copyOf(schema) as Schema;
  const verdict = new Validator(forValidator, DRAFT);
  const listing = new Validator(forValidator, DRAFT, false);
  return {
    jsonSchema,
    violations: (value) => {
      const notJson = findNonJson(value);
      if (notJson.length > 0) return notJson;
      const { valid, errors } = verdict.validate(value);
      if (valid) return [];
      const isListed = JSON.stringify(value).length <= LISTED_VALUE_CHARS_MAX;
      return (isListed ? listing.validate(value).errors : errors).filter(isCause).map(toViolation);
    },
  };
}

function copyOf(schema: unknown): Record<string, unknown> {
  return JSON.parse(JSON.stringify(schema)) as Record<string, unknown>;
}

/** The validator also tells of every level above a violation. */
const LEVELS: readonly string[] = ["properties", "items", "additionalProperties"];

function isCause({ keyword }: OutputUnit): boolean {
  return !LEVELS.includes(keyword);
}

function toViolation({ instanceLocation, keyword, error }: OutputUnit): string {
  // The validator's word for what `additionalProperties: false` refuses.
  const problem = keyword === "false" ? "Property is not allowed." : error;
  return `${pathText(instanceLocation.replace(/^#/, ""))}: ${problem}`;
}
