/**
 * How a run starts, as clients write it: a command instead of input, an older checkpoint, breakpoints. Shapes only; what
 * they name (interrupts, nodes, channels, checkpoints) is checked by the thread's object, which has the graph.
 */
import { z } from "zod";
import { metadataSchema } from "./threads.ts";

/** Nodes that one command goes to, and that one run stops at. */
const NODES_MAX = 100;

/** As `Send` is written: by the SDK with `input`, by LangGraph's own `toJSON` with `args`. */
const sendSchema = z.strictObject({
  node: z.string().min(1),
  input: z.unknown().optional(),
  args: z.unknown().optional(),
  lg_name: z.literal("Send").optional(),
});

const gotoSchema = z.union([z.string().min(1), sendSchema], {
  error: `must be a node's name, or {"node", "input"}`,
});

export const runCommandSchema = z.strictObject({
  /** The answer to the one interrupt that waits, or answers by the ids of interrupts. */
  resume: z.unknown().optional(),
  update: z
    .union([metadataSchema, z.array(z.tuple([z.string(), z.unknown()]))], {
      error: "must be an object, or a list of pairs [name, value]",
    })
    .nullish(),
  goto: z
    .union([gotoSchema, z.array(gotoSchema).max(NODES_MAX)], {
      error: `must be a node's name, {"node", "input"}, or a list of at most ${NODES_MAX} of them`,
    })
    .nullish(),
  /** LangGraph's `toJSON` writes it. */
  lg_name: z.literal("Command").optional(),
});
export type RunCommandBody = z.output<typeof runCommandSchema>;

/** `checkpoint_ns` and `checkpoint_map` are there for what clients send back of a state; only the thread's own is taken. */
export const runCheckpointSchema = z.strictObject({
  thread_id: z.string().nullish(),
  checkpoint_ns: z.string().nullish(),
  checkpoint_id: z.string().nullish(),
  checkpoint_map: metadataSchema.nullish(),
});

/** `"*"` means every node. */
export const breakpointsSchema = z.union([z.literal("*"), z.array(z.string().min(1)).max(NODES_MAX)], {
  error: `must be "*", or a list of at most ${NODES_MAX} names of nodes`,
});
export type Breakpoints = z.output<typeof breakpointsSchema>;
