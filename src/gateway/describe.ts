/** An operation's entry in the OpenAPI document, from the same shapes that validate it. */
import { type DescribeRouteOptions, resolver } from "hono-openapi";
import { z } from "zod";
import { type ErrorCode, STATUS_BY_CODE, errorBodySchema } from "../protocol/errors.ts";
import type { Operation, ResponseDoc } from "./operation.ts";

type Spec = Operation["spec"];

export function describeOperation(spec: Spec): DescribeRouteOptions {
  const requestBody = bodyOf(spec);
  return {
    // A getter, read when the document is made: converting every shape at start would cost start-up time.
    get parameters() {
      return [
        ...parametersOf(spec.params, "path"),
        ...parametersOf(spec.query?.schema, "query"),
        ...headerParameters(spec.headers ?? {}),
      ];
    },
    operationId: spec.id,
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.open ? { security: [] } : {}),
    ...(requestBody === undefined ? {} : { requestBody }),
    responses: { ...successes(spec.responses), ...failures(errorCodesOf(spec)) },
  };
}

/** Every code the route can answer: its own and those that its shape implies. */
export function errorCodesOf(spec: Spec): ErrorCode[] {
  const codes = new Set<ErrorCode>(spec.errors);
  if (!spec.open) for (const code of ["unauthorized", "auth_not_configured"] as const) codes.add(code);
  if (spec.role !== undefined) codes.add("forbidden");
  if (spec.params !== undefined || spec.query !== undefined) codes.add("invalid_request");
  if (spec.body !== undefined)
    for (const code of ["invalid_json", "invalid_request", "too_large"] as const) codes.add(code);
  if (spec.rawBody !== undefined) codes.add("too_large");
  if (spec.body?.unsupported !== undefined || spec.query?.unsupported !== undefined) codes.add("unsupported_option");
  if (!spec.open) for (const code of ["internal_error", "overloaded"] as const) codes.add(code);
  return [...codes];
}

function bodyOf(spec: Spec): DescribeRouteOptions["requestBody"] {
  if (spec.rawBody !== undefined) {
    return { required: true, content: { [spec.rawBody.media]: { schema: { type: "string", format: "binary" } } } };
  }
  if (spec.body === undefined) return undefined;
  return { required: true, content: { "application/json": { schema: resolver(spec.body.schema) } } };
}

function successes(responses: Readonly<Record<number, ResponseDoc>>): DescribeRouteOptions["responses"] {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, schema, media, bytes }]) => {
      if (schema === undefined && media === undefined) return [status, { description }];
      const content = {
        [media ?? "application/json"]: schema === undefined ? {} : { schema: outputSchema(schema) },
        ...(bytes ? { "*/*": { schema: { type: "string", format: "binary" } as const } } : {}),
      };
      return [status, { description, content }];
    }),
  );
}

function failures(codes: readonly ErrorCode[]): DescribeRouteOptions["responses"] {
  const byStatus = Map.groupBy(codes, (code) => String(STATUS_BY_CODE[code]));
  const content = { "application/json": { schema: outputSchema(errorBodySchema) } };
  return Object.fromEntries(
    [...byStatus].map(([status, same]) => [status, { description: `Refused: ${same.join(", ")}.`, content }]),
  );
}

function outputSchema(schema: z.ZodType): ReturnType<typeof resolver> {
  return resolver(schema, { options: { io: "output" } });
}

type Parameters = NonNullable<DescribeRouteOptions["parameters"]>;

function parametersOf(schema: z.ZodType | undefined, where: "path" | "query"): Parameters {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: "input" }) as {
    properties?: Record<string, { description?: string }>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...shape }]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: shape,
  })) as Parameters;
}

function headerParameters(headers: Readonly<Record<string, string>>): Parameters {
  return Object.entries(headers).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
}
