/**
 * The runtime options of `lead_agent` in a run's `config.configurable` or `context`: names and types (R186, R188, R189).
 * Ranges are not refused here: a number out of range is clamped and reported. Other names pass, they are the graph's.
 */
import { z } from "zod";

/** However large: `z.int` would refuse what a double cannot count exactly, and a number out of range is clamped. */
const count = (what: string) => z.custom<number>(Number.isInteger, `must be a whole number: ${what}`).nullish();
const flag = z.boolean({ error: "must be true or false" }).nullish();

export const leadOptionsSchema = z.looseObject({
  thinking_enabled: flag,
  subagent_enabled: flag,
  model_name: z.string({ error: "must be a string: the name of a model" }).nullish(),
  max_concurrent_subagents: count("`task` calls one answer may start"),
  max_total_subagents: count("`task` calls the run may start"),
});
