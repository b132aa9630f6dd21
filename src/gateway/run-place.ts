/**
 * Where a run starts, as LangGraph's own config names it: `config.configurable` holds the thread and the checkpoint there.
 * Owns that what a client says there means what the body's fields and the path mean, or is refused: nobody forks a thread
 * and gets its head instead. Keys that say who the run is (`run_id`, `assistant_id`, `graph_id`) are left: a graph that
 * calls this one sends its own along, and the server's always stand in their place.
 */
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import { refuse } from "./errors.ts";

const PLACE_KEYS = ["thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"] as const;
type PlaceKey = (typeof PLACE_KEYS)[number];

type Json = Record<string, unknown>;

/** The body with its place where the body has it. `threadId`: of the path; `undefined` for a run that gets a fresh thread. */
export function withPlaceInBody(body: CreateRunBody, threadId: string | undefined): Result<CreateRunBody, ApiRefusal> {
  const given: Json = body.config?.configurable ?? {};
  if (!PLACE_KEYS.some((key) => Object.hasOwn(given, key))) return ok(body);
  const { thread_id, checkpoint_id: id, checkpoint_ns, checkpoint_map, ...configurable } = given;
  if (!isUnset(thread_id) && thread_id !== threadId) return otherThread(threadId);
  if (!isUnset(checkpoint_ns) && checkpoint_ns !== "") return unsupported("checkpoint_ns");
  if (!isUnset(checkpoint_map) && !isRootMap(checkpoint_map)) return unsupported("checkpoint_map");
  const placed = { ...body, config: { ...body.config, configurable } };
  if (isUnset(id)) return ok(placed);
  if (typeof id !== "string") return invalid("checkpoint_id", "must be a string");
  const said = body.checkpoint_id ?? body.checkpoint?.checkpoint_id ?? id;
  if (said !== id) return invalid("checkpoint_id", "must be the checkpoint that the body names beside it, or absent");
  return ok({ ...placed, checkpoint_id: id });
}

/** Of what is kept as a default for many runs, a place is none: the first such key, with its value set. */
export function refusePlace(configurable: unknown): ApiRefusal | undefined {
  const given = (configurable ?? {}) as Json;
  const key = PLACE_KEYS.find((place) => !isUnset(given[place]));
  if (key === undefined) return undefined;
  return invalid(key, "belongs to a run: an assistant's config is for runs on any thread").error;
}

function isUnset(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

/** States name the root's checkpoint in it as well; the id says the same. */
function isRootMap(map: unknown): boolean {
  return typeof map === "object" && Object.keys(map as Json).every((namespace) => namespace === "");
}

function otherThread(threadId: string | undefined) {
  return threadId === undefined
    ? invalid("thread_id", "this run gets a thread of its own; to run on a thread use /threads/{thread_id}/runs")
    : invalid("thread_id", "must be the thread of the path, or absent");
}

function invalid(key: PlaceKey, message: string) {
  const path = `body.config.configurable.${key}`;
  return refuse("invalid_request", `${path}: ${message}`, { issues: [{ path, message }] });
}

function unsupported(key: PlaceKey) {
  const field = `config.configurable.${key}`;
  return refuse("unsupported_option", `${field}: a run starts from the thread's own checkpoints.`, { field });
}
