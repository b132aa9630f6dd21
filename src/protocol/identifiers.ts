/** Identifier shapes of the wire (contracts, "Ids"). */
import { z } from "zod";

export const CLIENT_ID_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

/** `thread_id`, `run_id`, `assistant_id`, `batch_id` as clients may send them. */
export const clientIdSchema = z.string().regex(CLIENT_ID_PATTERN, "must match ^[A-Za-z0-9_-]{1,64}$");

/** Namespace of the default assistant of a graph: uuid5(graph_id, this). */
export const ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

export const LEAD_GRAPH_ID = "lead_agent";
