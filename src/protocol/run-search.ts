/** `POST /runs/search`, Deputy's own: an owner's runs over all threads, as the lists' database knows them. */
import { z } from "zod";
import { clientIdSchema } from "./identifiers.ts";
import { RUN_STATUSES, runSchema } from "./runs.ts";
import { metadataSchema } from "./threads.ts";
import { timeFilters } from "./time-filters.ts";

/** Past it, time filters lead further: every run before the page is walked. */
const SEARCH_OFFSET_MAX = 100_000;

export const foundRunSchema = runSchema
  .pick({
    run_id: true,
    thread_id: true,
    assistant_id: true,
    created_at: true,
    updated_at: true,
    status: true,
    metadata: true,
    error: true,
  })
  .meta({ ref: "FoundRun" });
export type FoundRun = z.infer<typeof foundRunSchema>;

const foundRunFieldSchema = foundRunSchema.keyof();

export const listedFoundRunSchema = foundRunSchema.partial().meta({ ref: "ListedFoundRun" });

export const searchRunsBodySchema = z.strictObject({
  thread_id: clientIdSchema.optional(),
  assistant_id: clientIdSchema.optional(),
  status: z.enum(RUN_STATUSES).optional(),
  metadata: metadataSchema.optional(),
  ...timeFilters,
  select: z.array(foundRunFieldSchema).min(1).max(foundRunFieldSchema.options.length).optional(),
  limit: z.int().min(1).max(1_000).default(10),
  offset: z.int().min(0).max(SEARCH_OFFSET_MAX).default(0),
  /** By `created_at`. */
  sort_order: z.enum(["asc", "desc"]).default("desc"),
});
export type SearchRunsBody = z.output<typeof searchRunsBodySchema>;
