/** Workspace files over HTTP (contracts, "Workspace"). */
import { z } from "zod";

export const storedFileSchema = z
  .object({ path: z.string(), size: z.int(), created: z.boolean() })
  .meta({ ref: "StoredFile" });

export const fileListingSchema = z
  .object({
    path: z.string(),
    entries: z.array(
      z.object({
        path: z.string(),
        kind: z.enum(["file", "directory"]),
        size: z.int(),
        modified_at: z.string(),
      }),
    ),
  })
  .meta({ ref: "FileListing" });
