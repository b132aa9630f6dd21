/**
 * Which JSON Schemas can be asked of a child: an object at the root, and the keywords below (subagent-seam 1.10).
 * Owns the subset and nothing of values: whether one fits is for a validator. Everything outside is named with its path,
 * all of it at once; nothing is dropped, since a constraint that is not enforced would be a promise.
 */
import { childPath, findNonJson, isPlainRecord, pathText } from "./json-value.ts";

/** Levels of a schema; a validator recurses along them. */
export const OUTPUT_SCHEMA_DEPTH_MAX = 32;
/** Characters of a schema as JSON. It stands in every model request of the child. */
export const OUTPUT_SCHEMA_CHARS_MAX = 65_536;

const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
const ANNOTATIONS = ["description", "title", "default", "examples"];
const OBJECT_KEYWORDS = ["properties", "required", "additionalProperties"];
const SCALAR_KEYWORDS = ["enum", "const"];
const KEYWORDS = ["type", "oneOf", ...OBJECT_KEYWORDS, "items", ...SCALAR_KEYWORDS, ...ANNOTATIONS];

type Schema = Record<string, unknown>;

/** Every violation as `path: problem`; none for a schema that can be enforced. */
export function checkOutputSchema(schema: unknown): readonly string[] {
  const notJson = findNonJson(schema);
  if (notJson.length > 0) return notJson;
  const chars = JSON.stringify(schema).length;
  if (chars > OUTPUT_SCHEMA_CHARS_MAX) {
    return [`(root): the schema has ${chars} characters as JSON; at most ${OUTPUT_SCHEMA_CHARS_MAX} are allowed`];
  }
  const isObjectRoot = isPlainRecord(schema) && schema["type"] === "object";
  return isObjectRoot ? checkNode(schema, "", 0) : ['(root): must be a JSON Schema of type "object"'];
}

function checkNode(node: unknown, path: string, depth: number): string[] {
  const at = (problem: string): string => `${pathText(path)}: ${problem}`;
  if (!isPlainRecord(node)) return [at("a schema must be an object")];
  if (depth >= OUTPUT_SCHEMA_DEPTH_MAX) return [at(`nests deeper than ${OUTPUT_SCHEMA_DEPTH_MAX} levels`)];
  const unknown = Object.keys(node).filter((keyword) => !KEYWORDS.includes(keyword));
  return [
    ...unknown.map((keyword) => at(`keyword '${keyword}' is not supported; supported: ${KEYWORDS.join(", ")}`)),
    ...checkType(node).map(at),
    ...misplaced(node).map(at),
    ...checkAnnotations(node).map(at),
    ...checkScalars(node).map(at),
    ...checkRequired(node).map(at),
    ...checkChildren(node, path, depth),
  ];
}

function checkType({ type }: Schema): string[] {
  if (type === undefined || TYPES.includes(type as string)) return [];
  return [`'type' must be one of ${TYPES.join(", ")}, got ${JSON.stringify(type)}`];
}

/** A keyword where it would mean nothing is a mistake of the author's. */
function misplaced(node: Schema): string[] {
  const { type } = node;
  const isObject = type === "object";
  const isArray = type === "array";
  const problems: string[] = [];
  const refuse = (keywords: readonly string[], where: string): void => {
    const found = keywords.filter((keyword) => Object.hasOwn(node, keyword));
    problems.push(...found.map((keyword) => `keyword '${keyword}' ${where}`));
  };
  if (Object.hasOwn(node, "oneOf")) {
    refuse(["type", ...OBJECT_KEYWORDS, "items", ...SCALAR_KEYWORDS], "may not stand beside 'oneOf'");
    return problems;
  }
  if (!isObject) refuse(OBJECT_KEYWORDS, 'needs type "object"');
  if (!isArray) refuse(["items"], 'needs type "array"');
  if (isObject || isArray) refuse(SCALAR_KEYWORDS, "needs a scalar type");
  return problems;
}

function checkAnnotations({ description, title, examples }: Schema): string[] {
  const texts = Object.entries({ description, title }).filter(([, text]) => text !== undefined);
  return [
    ...texts.filter(([, text]) => typeof text !== "string").map(([keyword]) => `'${keyword}' must be a string`),
    ...(examples === undefined || Array.isArray(examples) ? [] : ["'examples' must be an array"]),
  ];
}

function checkScalars(node: Schema): string[] {
  const { enum: allowed, const: fixed } = node;
  const hasConst = Object.hasOwn(node, "const");
  const problems = hasConst ? checkScalar("const", fixed, node) : [];
  if (allowed === undefined) return problems;
  if (!Array.isArray(allowed) || allowed.length === 0) return [...problems, "'enum' must be a non-empty array"];
  problems.push(...allowed.flatMap((value) => checkScalar("enum", value, node)));
  if (hasConst && !allowed.includes(fixed)) problems.push("'const' is not one of 'enum'");
  return problems;
}

function checkScalar(keyword: string, value: unknown, { type }: Schema): string[] {
  if (typeof value === "object" && value !== null) return [`'${keyword}' allows scalars only`];
  const fits = typeof type !== "string" || !TYPES.includes(type) || isOfType(value, type);
  return fits ? [] : [`'${keyword}' holds ${JSON.stringify(value)}, which is not of type "${type}"`];
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  // Of other types nothing is scalar: `misplaced` has said so.
  return type === "object" || type === "array" || typeof value === type;
}

function checkRequired({ required, properties }: Schema): string[] {
  if (required === undefined) return [];
  if (!Array.isArray(required)) return ["'required' must be an array of property names"];
  const known = isPlainRecord(properties) ? properties : {};
  return required
    .filter((name) => typeof name !== "string" || !Object.hasOwn(known, name))
    .map((name) => `'required' names ${JSON.stringify(name)}, which is not in 'properties'`);
}

function checkChildren(node: Schema, path: string, depth: number): string[] {
  const { properties, additionalProperties, items, oneOf } = node;
  const problems: string[] = [];
  const inside = (child: unknown, at: string): void => void problems.push(...checkNode(child, at, depth + 1));
  const own = (problem: string): void => void problems.push(`${pathText(path)}: ${problem}`);
  if (isPlainRecord(properties)) {
    const at = childPath(path, "properties");
    for (const [name, child] of Object.entries(properties)) inside(child, childPath(at, name));
  } else if (properties !== undefined) own("'properties' must be an object");
  if (additionalProperties !== undefined && typeof additionalProperties !== "boolean") {
    own("'additionalProperties' must be true or false");
  }
  if (items !== undefined) inside(items, childPath(path, "items"));
  if (oneOf === undefined) return problems;
  if (!Array.isArray(oneOf) || oneOf.length < 2) own("'oneOf' must be an array of two schemas or more");
  else oneOf.forEach((child, index) => inside(child, childPath(childPath(path, "oneOf"), index)));
  return problems;
}
