/** Liveness and what is served. Open: they say nothing about anyone's data. */
import { z } from "zod";
import { json } from "../answers.ts";
import { operation } from "../operation.ts";

const ok = operation({
  method: "get",
  path: "/ok",
  id: "getOk",
  tag: "system",
  summary: "Whether the gateway answers.",
  open: true,
  responses: { 200: { description: "It does.", schema: z.object({ ok: z.literal(true) }) } },
  handle: async () => json({ ok: true }),
});

const info = operation({
  method: "get",
  path: "/info",
  id: "getInfo",
  tag: "system",
  summary: "Version and enabled features.",
  open: true,
  responses: {
    200: {
      description: "About this server.",
      schema: z.object({
        version: z.string(),
        langgraph_js_version: z.string().nullable(),
        context: z.literal("js"),
        flags: z.object({ assistants: z.boolean(), crons: z.boolean(), langsmith: z.boolean() }),
        features: z.array(z.string()),
      }),
    },
  },
  handle: async ({ deps: { version, langgraphVersion, features } }) =>
    json({
      version,
      langgraph_js_version: langgraphVersion ?? null,
      context: "js",
      flags: { assistants: true, crons: features.includes("crons"), langsmith: false },
      features,
    }),
});

export const systemOperations = [ok, info] as const;
