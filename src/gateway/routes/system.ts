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
      schema: z.object({ version: z.string(), features: z.array(z.string()) }),
    },
  },
  handle: async ({ deps }) => json({ version: deps.version, features: deps.features }),
});

export const systemOperations = [ok, info] as const;
