/** Path and query shapes that several routes share. */
import { z } from "zod";
import { clientIdSchema } from "../protocol/identifiers.ts";
import { STREAM_MODES } from "../protocol/runs.ts";

export const threadParams = z.object({ thread_id: clientIdSchema });
export const runParams = threadParams.extend({ run_id: clientIdSchema });
export const batchParams = z.object({ batch_id: clientIdSchema });

/** Booleans as query strings: the SDK sends `1` and `0`, people type `true` and `false`. */
export const queryFlag = z
  .enum(["0", "1", "true", "false"])
  .default("0")
  .transform((flag) => flag === "1" || flag === "true");

/** `stream_mode` may repeat. */
export const queryStreamModes = z.union([z.enum(STREAM_MODES), z.array(z.enum(STREAM_MODES)).min(1)]).optional();

const NAMESPACES_MAX = 64;
const namespace = z.string().max(2_000);

/**
 * `namespace` may repeat: frames of these graphs only. A path of nodes, `a|b`, or of their tasks, `a:1|b:2`; an empty one
 * is the run's own graph.
 */
export const queryNamespaces = z
  .union([namespace, z.array(namespace).max(NAMESPACES_MAX)])
  .optional()
  .transform((given): readonly string[] => [given ?? []].flat());
