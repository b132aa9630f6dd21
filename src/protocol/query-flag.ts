/** Booleans as query strings: the SDK sends `1` and `0`, or `true` and `false`, and people type either. */
import { z } from "zod";

export const queryFlag = z
  .enum(["0", "1", "true", "false"])
  .default("0")
  .transform((flag) => flag === "1" || flag === "true");
