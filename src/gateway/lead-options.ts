/**
 * Refuses runtime options that `lead_agent` could not honour, before anything is stored: a value of another type, a model
 * nobody configured. The same for every way to create a run, because all of them make their command here.
 */
import { UTF16_UNITS } from "../domain/shared/cut-text.ts";
import { type Result, ok } from "../domain/shared/result.ts";
import type { ApiRefusal } from "../protocol/errors.ts";
import { leadOptionsSchema } from "../protocol/lead-options.ts";
import type { CreateRunBody } from "../protocol/runs.ts";
import { refuse } from "./errors.ts";
import type { GatewayDeps } from "./ports.ts";

/** For runs of `lead_agent` only: graphs of the operator's own may mean something else by these names. */
export function checkLeadOptions(
  graphs: GatewayDeps["graphs"],
  body: Pick<CreateRunBody, "config" | "context">,
): Result<null, ApiRefusal> {
  const places = { "body.config.configurable": body.config?.configurable, "body.context": body.context };
  const issues = Object.entries(places).flatMap(([place, options]) => problemsIn(options ?? {}, place, graphs));
  const [first] = issues;
  if (first === undefined) return ok(null);
  return refuse("invalid_request", `${first.path}: ${first.message}`, { issues });
}

interface Problem {
  readonly path: string;
  readonly message: string;
}

/** Of a refused name, in the refusal. */
const SHOWN_NAME_CHARS_MAX = 64;

function problemsIn(options: object, place: string, graphs: GatewayDeps["graphs"]): Problem[] {
  const parsed = leadOptionsSchema.safeParse(options);
  if (!parsed.success) {
    return parsed.error.issues.map(({ path, message }) => ({ path: [place, ...path.map(String)].join("."), message }));
  }
  const { model_name: name } = parsed.data;
  const models = graphs.models();
  if (name === undefined || name === null || models.includes(name)) return [];
  const shown = JSON.stringify(UTF16_UNITS.first(name, SHOWN_NAME_CHARS_MAX));
  return [{ path: `${place}.model_name`, message: `no model ${shown}; must be one of ${models.join(", ")}` }];
}
