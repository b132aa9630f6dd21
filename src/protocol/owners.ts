/** An owner's data as a whole: what was erased of it. */
import { z } from "zod";

export const ownerErasureSchema = z
  .object({
    /** Nothing of the owner is left. */
    done: z.boolean(),
    /** By this request. */
    erased: z.object({ threads: z.int(), assistants: z.int() }),
    left: z.object({ threads: z.int() }),
  })
  .meta({ ref: "OwnerErasure" });
export type OwnerErasure = z.infer<typeof ownerErasureSchema>;
