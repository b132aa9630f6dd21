/** Path and query shapes that several routes share. */
import { z } from "zod";
import { clientIdSchema } from "../protocol/identifiers.ts";
import { streamModesSchema } from "../protocol/runs.ts";

export const threadParams = z.object({ thread_id: clientIdSchema });
export const runParams = threadParams.extend({ run_id: clientIdSchema });
export const batchParams = z.object({ batch_id: clientIdSchema });

/** `stream_mode` may repeat. */
export const queryStreamModes = streamModesSchema.optional();

const NAMESPACES_MAX = 64;
const NAMESPACE_CHARS_MAX = 2_000;
const namespace = z.string().max(NAMESPACE_CHARS_MAX);

/**
 * `namespace` may repeat: frames of these graphs only. A path of nodes, `a|b`, or of their tasks, `a:1|b:2`; an empty one
 * is the run's own graph.
 */
export const queryNamespaces = z
  .union([namespace, z.array(namespace).max(NAMESPACES_MAX)], {
    error: `must be at most ${NAMESPACES_MAX} namespaces of at most ${NAMESPACE_CHARS_MAX} characters`,
  })
  .optional()
  .transform((given): readonly string[] => [given ?? []].flat());
