/** Filters by time of Deputy's own lists: `after` is exclusive, as is `before`. */
import { z } from "zod";

/** A moment as text, in UTC with milliseconds as the stored ones are: they compare as text. */
const momentSchema = z.iso.datetime({ offset: true }).transform((moment) => new Date(moment).toISOString());

export const timeFilters = {
  created_after: momentSchema.optional(),
  created_before: momentSchema.optional(),
  updated_after: momentSchema.optional(),
  updated_before: momentSchema.optional(),
};
