/** Assistant shapes of the LangGraph API: until assistants can be stored, each graph has its default one. */
import { z } from "zod";
import { metadataSchema } from "./threads.ts";

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

export const searchAssistantsBodySchema = z.strictObject({
  graph_id: z.string().min(1).max(64).nullish(),
  name: z.string().min(1).max(256).nullish(),
  metadata: metadataSchema.nullish(),
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).default(0),
  sort_by: z.enum(["assistant_id", "graph_id", "name", "created_at", "updated_at"]).nullish(),
  sort_order: z.enum(["asc", "desc"]).nullish(),
});
export type SearchAssistantsBody = z.output<typeof searchAssistantsBodySchema>;

export const UNSUPPORTED_ASSISTANT_OPTIONS = ["select"] as const;
