/** Assistant shapes of the LangGraph API: what owners store, and the deployment's own, which look the same. */
import { z } from "zod";
import { queryFlag } from "./query-flag.ts";
import { wholeNumber } from "./query-number.ts";
import { clientIdSchema } from "./identifiers.ts";
import { runConfigSchema } from "./runs.ts";
import { metadataSchema } from "./threads.ts";

/** Shown in lists. */
const ASSISTANT_NAME_CHARS_MAX = 256;
const ASSISTANT_DESCRIPTION_CHARS_MAX = 4_000;

/** What the reference API calls one that was given no name. */
export const UNNAMED_ASSISTANT = "Untitled";

export const assistantSchema = z
  .object({
    assistant_id: z.string(),
    graph_id: z.string(),
    name: z.string(),
    description: z.string().nullable(),
    config: metadataSchema,
    context: metadataSchema,
    metadata: metadataSchema,
    version: z.int(),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ ref: "Assistant" });
export type Assistant = z.infer<typeof assistantSchema>;

/** One kept version; `created_at` is when it was made. */
export const assistantVersionSchema = assistantSchema.omit({ updated_at: true }).meta({ ref: "AssistantVersion" });
export type AssistantVersion = z.infer<typeof assistantVersionSchema>;

/** JSON Schema, or null where the graph tells nothing. */
const jsonSchemaSchema = z.record(z.string(), z.unknown()).nullable();

export const graphSchemasSchema = z
  .object({
    graph_id: z.string(),
    input_schema: jsonSchemaSchema,
    output_schema: jsonSchemaSchema,
    state_schema: jsonSchemaSchema,
    config_schema: jsonSchemaSchema,
    context_schema: jsonSchemaSchema,
  })
  .meta({ ref: "GraphSchemas" });
export type GraphSchemas = z.infer<typeof graphSchemasSchema>;

/** What a graph looks like, as LangGraph draws it. */
export const graphDrawingSchema = z
  .object({
    nodes: z.array(z.looseObject({ id: z.union([z.string(), z.number()]), data: z.unknown().optional() })),
    edges: z.array(
      z.looseObject({
        source: z.union([z.string(), z.number()]),
        target: z.union([z.string(), z.number()]),
        data: z.string().optional(),
        conditional: z.boolean().optional(),
      }),
    ),
  })
  .meta({ ref: "GraphDrawing" });
export type GraphDrawing = z.infer<typeof graphDrawingSchema>;

/** What a create says and a patch replaces; a field that is null counts as not given. */
const fields = {
  name: z.string().min(1).max(ASSISTANT_NAME_CHARS_MAX).nullish(),
  description: z.string().max(ASSISTANT_DESCRIPTION_CHARS_MAX).nullish(),
  config: runConfigSchema.nullish(),
  context: metadataSchema.nullish(),
  metadata: metadataSchema.nullish(),
};

export const createAssistantBodySchema = z.strictObject({
  ...fields,
  assistant_id: clientIdSchema.nullish(),
  graph_id: clientIdSchema,
  if_exists: z.enum(["raise", "do_nothing"]).default("raise"),
});
export type CreateAssistantBody = z.output<typeof createAssistantBodySchema>;

/** What is given replaces, `metadata` is merged key by key. */
export const patchAssistantBodySchema = z.strictObject({ ...fields, graph_id: clientIdSchema.nullish() });
export type PatchAssistantBody = z.output<typeof patchAssistantBodySchema>;

export const countAssistantsBodySchema = z.strictObject({
  graph_id: z.string().min(1).max(64).nullish(),
  name: z.string().min(1).max(ASSISTANT_NAME_CHARS_MAX).nullish(),
  metadata: metadataSchema.nullish(),
});
export type CountAssistantsBody = z.output<typeof countAssistantsBodySchema>;

export const searchAssistantsBodySchema = countAssistantsBodySchema.extend({
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).default(0),
  sort_by: z.enum(["assistant_id", "graph_id", "name", "created_at", "updated_at"]).nullish(),
  sort_order: z.enum(["asc", "desc"]).nullish(),
  /** Which fields the answer has; all of them when absent. */
  select: z.array(assistantSchema.keyof()).min(1).nullish(),
});
export type SearchAssistantsBody = z.output<typeof searchAssistantsBodySchema>;

export const assistantVersionsBodySchema = z.strictObject({
  metadata: metadataSchema.nullish(),
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).default(0),
});

export const latestAssistantBodySchema = z.strictObject({ version: z.int().min(1) });

/** The SDK always sends it. */
export const deleteAssistantQuerySchema = z.strictObject({ delete_threads: queryFlag });

/** How many levels of nested graphs a drawing shows: deeper ones than anybody writes. */
const XRAY_LEVELS_MAX = 100;

export const graphQuerySchema = z.strictObject({
  xray: z
    .union(
      [z.enum(["true", "false"]).transform((value) => value === "true"), wholeNumber({ min: 0, max: XRAY_LEVELS_MAX })],
      { error: `must be "true", "false", or a number of levels up to ${XRAY_LEVELS_MAX}` },
    )
    .default(false),
});

/** Names of nodes, `|` between levels. */
const SUBGRAPH_NAMESPACE_CHARS_MAX = 1_000;
export const subgraphNamespaceSchema = z.string().min(1).max(SUBGRAPH_NAMESPACE_CHARS_MAX);

export const subgraphsQuerySchema = z.strictObject({ recurse: queryFlag });
