/**
 * Bodies of `/subagents`. Fields and ranges are those of `subagents.custom_agents` in `deputy.config.ts`, which a test
 * holds against these; the API adds a name, a version and a switch.
 */
import { z } from "zod";
import { clientIdSchema } from "./identifiers.ts";

const nameSchema = clientIdSchema;

/** Bytes of a name are few and of a value enough for a token; hop-by-hop names are the connection's own. */
const HEADER_NAME =
  /^(?!(?:connection|upgrade|host|te|trailer|keep-alive|content-length|transfer-encoding|proxy-.*|sec-websocket-.*)$)[a-z0-9-]{1,64}$/;
const HEADER_VALUE = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/;
/** Encrypted, or to this machine; neither user name nor fragment. */
const ACP_URL =
  /^(?:wss:\/\/[^\s/?#@\\]{1,255}|ws:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?)(?:[/?][^\s#\\]{0,2000})?$/;
const ABSOLUTE_PATH = /^(?:\/|[A-Za-z]:[\\/])[^\0]{0,1000}$/;
const ACP_HEADERS_MAX = 16;

export const acpEndpointSchema = z.strictObject({
  url: z
    .string()
    .regex(ACP_URL, "must be wss:, or ws: to localhost, 127.0.0.1 or [::1], without user name and fragment"),
  headers: z
    .record(
      z.string().regex(HEADER_NAME, "header names are lower case, and not those of the connection itself"),
      z.string().regex(HEADER_VALUE, "header values are 1 to 4,096 visible ASCII characters and spaces"),
    )
    .refine((headers) => Object.keys(headers).length <= ACP_HEADERS_MAX, `at most ${ACP_HEADERS_MAX} headers`)
    .default({}),
  cwd: z.string().regex(ABSOLUTE_PATH, "must be an absolute path").default("/"),
  permission: z.enum(["reject", "allow"]).default("reject"),
});

const description = z.string().min(1).max(4_000);
const timeoutSeconds = z.int().min(1).max(86_400).default(900);

const localShape = {
  description,
  system_prompt: z.string().min(1).max(100_000),
  tools: z.array(nameSchema).nullable().default(null),
  disallowed_tools: z.array(nameSchema).default(["task", "ask_clarification", "present_files"]),
  model: z.string().min(1).default("inherit"),
  max_turns: z.int().min(1).max(1_000).default(50),
  timeout_seconds: timeoutSeconds,
  provider: z.enum(["spawn", "fork"]).default("spawn"),
  /** How deep the subagent, and whatever it delegates to, may stand below the lead; its own child is at 1. */
  max_depth: z.int().min(1).max(3).default(3),
};

/** An agent of another process has its own prompt, tools, model and bounds. */
const acpShape = {
  description,
  timeout_seconds: timeoutSeconds,
  provider: z.literal("acp"),
  acp: acpEndpointSchema,
};

/** What a provider lacks is refused by name, never ignored. */
function refusedKeys(because: string): z.core.$ZodErrorMap {
  return ({ code, keys }) => (code === "unrecognized_keys" ? `${because} ${keys.join(", ")}` : undefined);
}

/** A definition of either kind, with `more` beside it. */
function definitionWith<M extends z.ZodRawShape>(more: M) {
  return z.discriminatedUnion("provider", [
    z.strictObject({ ...localShape, ...more }, { error: refusedKeys("a subagent of this process takes no") }),
    z.strictObject(
      { ...acpShape, ...more },
      { error: refusedKeys("an agent reached by acp has its own prompt, tools, model and bounds; it takes no") },
    ),
  ]);
}

export const subagentDefinitionSchema = definitionWith({});
export type SubagentDefinitionBody = z.output<typeof subagentDefinitionSchema>;

export const createSubagentBodySchema = definitionWith({ name: nameSchema, enabled: z.boolean().default(true) });

/** Replaces the definition whole; `version` is the one that was read. */
export const updateSubagentBodySchema = definitionWith({ version: z.int().min(1) });

/** What everyone may know of a subagent they may use. */
export const subagentSummarySchema = z
  .object({ name: z.string(), source: z.enum(["built_in", "config", "managed"]), description: z.string() })
  .meta({ ref: "SubagentSummary" });
export type SubagentSummary = z.infer<typeof subagentSummarySchema>;

const storedShape = {
  name: z.string(),
  source: z.literal("managed"),
  version: z.int(),
  enabled: z.boolean(),
  /** Who owns the name; while somebody does, the definition is kept and not used. */
  shadowed_by: z.enum(["built_in", "config"]).nullable(),
  created_at: z.string(),
  updated_at: z.string(),
  updated_by: z.string(),
};

/** A stored definition as administrators see it, headers included. */
export const managedSubagentSchema = z
  .discriminatedUnion("provider", [
    z.object({ ...storedShape, ...localShape }),
    z.object({ ...storedShape, ...acpShape }),
  ])
  .meta({ ref: "ManagedSubagent" });
export type ManagedSubagentView = z.infer<typeof managedSubagentSchema>;
