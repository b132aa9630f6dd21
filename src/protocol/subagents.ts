/**
 * Bodies of `/subagents`. Fields and ranges are those of `subagents.custom_agents` in `deputy.config.ts`, which a test
 * holds against these; the API adds a name, a version and a switch.
 */
import { z } from "zod";
import { clientIdSchema } from "./identifiers.ts";

const nameSchema = clientIdSchema;

/** The providers of the seam that a definition may name. */
export const SUBAGENT_PROVIDERS = ["spawn", "fork"] as const;

export const subagentDefinitionSchema = z.strictObject({
  description: z.string().min(1).max(4_000),
  system_prompt: z.string().min(1).max(100_000),
  tools: z.array(nameSchema).nullable().default(null),
  disallowed_tools: z.array(nameSchema).default(["task", "ask_clarification", "present_files"]),
  model: z.string().min(1).default("inherit"),
  max_turns: z.int().min(1).max(1_000).default(50),
  timeout_seconds: z.int().min(1).max(86_400).default(900),
  provider: z.enum(SUBAGENT_PROVIDERS).default("spawn"),
  /** How deep the subagent, and whatever it delegates to, may stand below the lead; its own child is at 1. */
  max_depth: z.int().min(1).max(3).default(3),
});
export type SubagentDefinitionBody = z.output<typeof subagentDefinitionSchema>;

export const createSubagentBodySchema = subagentDefinitionSchema.extend({
  name: nameSchema,
  enabled: z.boolean().default(true),
});

/** Replaces the definition whole; `version` is the one that was read. */
export const updateSubagentBodySchema = subagentDefinitionSchema.extend({ version: z.int().min(1) });

/** What everyone may know of a subagent they may use. */
export const subagentSummarySchema = z
  .object({ name: z.string(), source: z.enum(["built_in", "config", "managed"]), description: z.string() })
  .meta({ ref: "SubagentSummary" });
export type SubagentSummary = z.infer<typeof subagentSummarySchema>;

/** A stored definition as administrators see it. */
export const managedSubagentSchema = z
  .object({
    name: z.string(),
    source: z.literal("managed"),
    version: z.int(),
    enabled: z.boolean(),
    /** Who owns the name; while somebody does, the definition is kept and not used. */
    shadowed_by: z.enum(["built_in", "config"]).nullable(),
    ...subagentDefinitionSchema.shape,
    created_at: z.string(),
    updated_at: z.string(),
    updated_by: z.string(),
  })
  .meta({ ref: "ManagedSubagent" });
export type ManagedSubagentView = z.infer<typeof managedSubagentSchema>;
