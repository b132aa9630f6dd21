/** Assistant shapes of the LangGraph API: what owners store, and the deployment's own, which look the same. */
import { z } from "zod";
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

const fields = {
  graph_id: clientIdSchema,
  name: z.string().min(1).max(ASSISTANT_NAME_CHARS_MAX),
  description: z.string().max(ASSISTANT_DESCRIPTION_CHARS_MAX),
  config: runConfigSchema,
  context: metadataSchema,
  metadata: metadataSchema,
};

/** A field that is null counts as not given. */
export const createAssistantBodySchema = z.strictObject({
  assistant_id: clientIdSchema.nullish(),
  graph_id: fields.graph_id,
  name: fields.name.nullish(),
  description: fields.description.nullish(),
  config: fields.config.nullish(),
  context: fields.context.nullish(),
  metadata: fields.metadata.nullish(),
  if_exists: z.enum(["raise", "do_nothing"]).default("raise"),
});
export type CreateAssistantBody = z.output<typeof createAssistantBodySchema>;

/** What is given replaces, `metadata` is merged key by key. */
export const patchAssistantBodySchema = z.strictObject({
  graph_id: fields.graph_id.nullish(),
  name: fields.name.nullish(),
  description: fields.description.nullish(),
  config: fields.config.nullish(),
  context: fields.context.nullish(),
  metadata: fields.metadata.nullish(),
});
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
});
export type SearchAssistantsBody = z.output<typeof searchAssistantsBodySchema>;

/** Options of the reference API that Deputy does not honour yet: refused by name. */
export const UNSUPPORTED_ASSISTANT_OPTIONS = ["select"] as const;

export const deleteAssistantQuerySchema = z.strictObject({
  /** The SDK always sends it. `true` is refused by name. */
  delete_threads: z.enum(["false", "0"]).optional(),
});
