import "./async-context.ts";
import { DurableObject } from "cloudflare:workers";
import type { Env } from "./env.ts";

export class ThreadObject extends DurableObject<Env> {}

export default {
  fetch: () => Response.json({ ok: true }),
  queue: async () => {},
  scheduled: async () => {},
} satisfies ExportedHandler<Env>;
