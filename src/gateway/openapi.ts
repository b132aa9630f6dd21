/** The OpenAPI 3.1 document, generated at its first request and kept: generating it at start would cost start-up time. */
import type { Env, Hono } from "hono";
import { generateSpecs } from "hono-openapi";

export type OpenApiDocument = Awaited<ReturnType<typeof generateSpecs>>;

export function createOpenApiDocument<E extends Env>(app: Hono<E>, version: string): () => Promise<OpenApiDocument> {
  let document: Promise<OpenApiDocument> | undefined;
  return () => {
    document ??= generateSpecs(app, {
      excludeStaticFile: false,
      documentation: {
        info: {
          title: "Deputy",
          version,
          description: "Durable delegation for LangGraph agents: the LangGraph API, and batches, files and run events.",
        },
        security: [{ bearer: [] }, { apiKey: [] }],
        components: {
          securitySchemes: {
            bearer: { type: "http", scheme: "bearer" },
            apiKey: { type: "apiKey", in: "header", name: "x-api-key" },
          },
        },
      },
    });
    return document;
  };
}
