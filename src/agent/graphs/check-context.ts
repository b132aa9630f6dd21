/**
 * Whether a run's context fits the schema its graph was made with. LangGraph asks the same when the run starts and fails it
 * with the schema's own error; here the error has a name of its own and says in words what is wrong where.
 */
import { getInteropZodObjectShape, interopSafeParse, isInteropZodObject } from "@langchain/core/utils/types";

export class InvalidContextError extends Error {
  override readonly name = "InvalidContextError";
}

/** `context` is what the run gives; without one LangGraph checks `configurable`, where older clients put it. */
export function checkContext(
  graph: object,
  { context, configurable }: { readonly context: unknown; readonly configurable: unknown },
): void {
  const schema = contextSchemaOf(graph);
  if (schema === undefined) return;
  const parsed = interopSafeParse(schema, context ?? configurable ?? {});
  if (parsed.success) return;
  const issues = (parsed.error as { issues?: readonly { path: PropertyKey[]; message: string }[] }).issues ?? [];
  const problems = issues.map(({ path, message }) => `${["context", ...path.map(String)].join(".")}: ${message}`);
  const fields = Object.keys(getInteropZodObjectShape(schema));
  throw new InvalidContextError(`${problems.join("; ")}; the graph's context has ${fields.join(", ") || "no fields"}`);
}

/** A zod object, where the graph was made with one. */
export function contextSchemaOf(graph: object) {
  const builder = (graph as { builder?: { _configRuntimeSchema?: unknown } }).builder;
  const schema = builder?._configRuntimeSchema;
  return isInteropZodObject(schema) ? schema : undefined;
}
